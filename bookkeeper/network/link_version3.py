"""Version3Link: a connection that speaks version 3 of the bookie protocol. See `network_link`.

Adds and reads are sent one message for each entry. All else is `ask`ed under a txnId of its own. Bounds: ASKED_MAX requests
that are asked and not answered, beyond which they are refused with AWAY.
"""

import asyncio
from array import array
from collections.abc import Callable, Iterator
from typing import Any

from bookkeeper.network.link import AWAY, FRAME_BYTES_MAX, Add, Link, heard, last_entry_of
from ports.network.read_buffer import SharedRoom
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.frames import next_frame
from wire.bookie.version3_requests import (
    Response,
    add_frames,
    code_of,
    decode_response,
    last_entry_request,
    read_frames,
    request_frame,
)
from wire.errors import MalformedCommand
from wire.generated import bookie_protocol_pb2 as api
from wire.run import WIRE_HEADER_BYTES, EntryRun

ASKED_MAX = 10_000
"""Most of them are long polls of readers that follow open ledgers."""


class Version3Link(Link):
    """Adds, reads, and everything else that version 3 has."""

    def __init__(self, name: str, room: SharedRoom, timeout_seconds: float, on_lost: Callable[[], None]) -> None:
        super().__init__(name, room, timeout_seconds, on_lost)
        self._next_txn_id = 0
        self._asked: dict[int, tuple[float, asyncio.Future[Response]]] = {}

    async def ask(
        self, operation: api.OperationType, ledger_id: int, *, waits_seconds: float = 0.0, **bodies: object
    ) -> Response:
        """The answer, whatever its status. `waits_seconds`: so long the bookie may wait before it answers. BookieError AWAY."""
        if len(self._asked) >= ASKED_MAX:
            raise BookieError(AWAY, ledger_id, f"{self._name}: {ASKED_MAX} requests are not answered")
        future: asyncio.Future[Response] = self._loop.create_future()
        future.add_done_callback(heard)
        (txn_id,) = self._txn_ids(1)
        self._asked[txn_id] = (self._loop.time() + self._timeout + waits_seconds, future)
        self._send(request_frame(operation, txn_id, 0, **bodies))
        return await asyncio.shield(future)

    async def read_last(self, ledger_id: int, fence_key: bytes | None) -> bytes | None:
        """See `Link.read_last`."""
        response = await self.ask(api.READ_ENTRY, ledger_id, readRequest=last_entry_request(ledger_id, fence_key))
        return last_entry_of(ledger_id, code_of(response.status), response.readResponse.body, self._name)

    def _txn_ids(self, count: int) -> range:
        first = self._next_txn_id
        self._next_txn_id += count
        return range(first, first + count)

    def _add_frames(self, add: Add) -> bytes:
        assert isinstance(add.run, EntryRun), "this version has no mixes"
        txn_ids = self._txn_ids(add.run.count)
        return add_frames(add.run, txn_ids[0], add.master_key, recovery=add.recovery, is_deferred=add.is_deferred)

    def _read_frames(self, ledger_id: int, first_entry_id: int, count: int) -> bytes:
        return read_frames(ledger_id, first_entry_id, count, self._txn_ids(count)[0])

    def _deadlines(self) -> Iterator[float]:
        yield from super()._deadlines()
        yield from (deadline for deadline, _ in self._asked.values())

    def _take_owners(self) -> "Iterator[asyncio.Future[Any]]":
        yield from super()._take_owners()
        asked, self._asked = self._asked, {}
        yield from (future for _, future in asked.values())

    def _consume(self, buffer: memoryview, end: int) -> int:
        at = 0
        while at < end and not self._reason:
            whole = next_frame(buffer, at, end, FRAME_BYTES_MAX)
            if whole is None:
                return at
            self._answered(decode_response(whole[0]))
            at = whole[1]
        return at

    def _answered(self, response: Response) -> None:
        _, future = self._asked.pop(response.header.txnId, (0.0, None))
        if future is not None:
            if not future.done():
                future.set_result(response)
        elif response.HasField("addResponse"):
            added = response.addResponse
            self._added(added.ledgerId, added.entryId, 1, code_of(added.status))
        elif response.HasField("readResponse"):
            self._read_answered(response.readResponse)
        elif response.status != api.EOK:
            raise MalformedCommand(f"{api.StatusCode.Name(response.status)} without a word about what")

    def _read_answered(self, read: api.ReadResponse) -> None:
        code = code_of(read.status)
        if code == BookieCode.EOK and len(read.body) >= WIRE_HEADER_BYTES:
            offsets = array("I", (0, len(read.body)))
            self._read(EntryRun(read.ledgerId, read.entryId, read.body, offsets, WIRE_HEADER_BYTES))
        else:
            self._not_read(read.ledgerId, read.entryId, code)
