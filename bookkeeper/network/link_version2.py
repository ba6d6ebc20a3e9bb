"""Version2Link: a connection that speaks version 2 of the bookie protocol, run by run. See `network_link`."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bookkeeper.network.link import FRAME_BYTES_MAX, LAST, Add, Link, heard, known, last_entry_of
from bookkeeper.network.pending_requests import ANSWER_BYTES, PendingAdd, PendingMix
from ports.network.read_buffer import SharedRoom
from wire.bookie.codes import BookieCode, BookieError, NotAsOne
from wire.bookie.frames import next_frame
from wire.bookie.version2 import (
    ADD_ENTRY,
    FLAG_FENCING,
    FLAG_HIGH_PRIORITY,
    FLAG_RECOVERY_ADD,
    READ_ENTRY,
    packet_header,
)
from wire.errors import MalformedCommand
from wire.kernels.bookie_requests import add_requests, read_requests
from wire.kernels.bookie_responses import take_added, take_read
from wire.kernels.mixes import mix_responses
from wire.run import EntryMix

ENTRIES_PER_READ_MAX = 1000
_ADD, _READ = packet_header(ADD_ENTRY), packet_header(READ_ENTRY)
_RECOVERY_ADD = _ADD | FLAG_RECOVERY_ADD | FLAG_HIGH_PRIORITY
"""With priority a bookie whose disk is full takes it (PendingAddOp, WriteEntryProcessor)."""


class Version2Link(Link):
    """Adds and reads alone: the rest takes version 3."""

    def __init__(self, name: str, room: SharedRoom, timeout_seconds: float, on_lost: Callable[[], None]) -> None:
        super().__init__(name, room, timeout_seconds, on_lost)
        self._last_reads: dict[int, tuple[float, asyncio.Future[bytes | None]]] = {}

    async def read_last(self, ledger_id: int, fence_key: bytes | None) -> bytes | None:
        """See `Link.read_last`."""
        future: asyncio.Future[bytes | None] = self._loop.create_future()
        future.add_done_callback(heard)
        self._last_reads[ledger_id] = (self._loop.time() + self._timeout, future)
        if fence_key is None:
            self._send(read_requests(_READ, ledger_id, LAST, 1))
        else:
            plain = read_requests(_READ | FLAG_FENCING, ledger_id, LAST, 1)
            self._send((len(plain) - 4 + len(fence_key)).to_bytes(4) + plain[4:] + fence_key)
        return await asyncio.shield(future)

    def _add_frames(self, add: Add) -> bytes:
        return add_requests(add.run, _RECOVERY_ADD if add.recovery else _ADD, add.master_key)

    def _answers_to(self, mix: EntryMix) -> bytes:
        return mix_responses(mix, _ADD, BookieCode.EOK)

    def _read_frames(self, ledger_id: int, first_entry_id: int, count: int) -> bytes:
        return read_requests(_READ, ledger_id, first_entry_id, count)

    def _deadlines(self) -> Iterator[float]:
        yield from super()._deadlines()
        yield from (deadline for deadline, _ in self._last_reads.values())

    def _take_owners(self) -> "Iterator[asyncio.Future[Any]]":
        yield from super()._take_owners()
        last_reads, self._last_reads = self._last_reads, {}
        yield from (future for _, future in last_reads.values())

    def _consume(self, buffer: memoryview, end: int) -> int:
        at = 0
        while at < end and not self._reason:
            matched = self._match(buffer, at, end) if self._mixes else 0
            if matched:
                at += matched * ANSWER_BYTES
                continue
            added = take_added(buffer, at, end)
            if added is not None:
                if self._mixes and not self._adds.awaits(added.ledger_id, added.first_entry_id, added.count):
                    self._split_mixes()
                self._added(added.ledger_id, added.first_entry_id, added.count, added.code)
                at = added.end
                continue
            is_of_last = end - at >= 28 and buffer[at + 20] > 127
            found = None if is_of_last else take_read(buffer, at, end, ENTRIES_PER_READ_MAX, FRAME_BYTES_MAX)
            if found is not None:
                self._read(found[0])
                at = found[1]
                continue
            whole = next_frame(buffer, at, end, FRAME_BYTES_MAX)
            if whole is None:
                return at
            self._answered(whole[0])
            at = whole[1]
        return at

    # Mixes

    def _match(self, buffer: memoryview, at: int, end: int) -> int:
        """Number of answers from `at` on that the oldest mix waits for."""
        mix = self._mixes[0]
        count = mix.match(buffer, at, end)
        self._entries -= count
        if not mix.left:
            self._mixes.popleft()
            self._finish(mix)
        if count and self._unsent:
            self._send_adds()
        return count

    def _split_mixes(self) -> None:
        """A bookie answers in another order, or refuses some: from here on each entry of a mix is waited for by itself."""
        mixes, self._mixes = self._mixes, deque()
        for mix in mixes:
            for ledger_id, entry_id in mix.rest():
                answer: asyncio.Future[None] = self._loop.create_future()
                answer.add_done_callback(partial(self._entry_answered, mix))
                self._adds.sent(ledger_id, PendingAdd(entry_id, 1, mix.deadline, answer))

    def _entry_answered(self, mix: "PendingMix[asyncio.Future[None]]", answer: "asyncio.Future[None]") -> None:
        error = answer.exception()
        mix.answered(error.code if isinstance(error, BookieError) else BookieCode.EOK)
        if not mix.left:
            self._finish(mix)

    def _finish(self, mix: "PendingMix[asyncio.Future[None]]") -> None:
        code = mix.code
        if mix.owner.done():
            return
        if code == BookieCode.EOK:
            mix.owner.set_result(None)
        elif code is None:
            mix.owner.set_exception(NotAsOne())
        else:
            mix.owner.set_exception(BookieError(known(code), mix.mix.ledger_id, f"{self._name}: at add"))

    # The others

    def _answered(self, body: bytes) -> None:
        """A read that failed, or one of the last entry."""
        if len(body) < 24 or body[:2] != bytes((2, READ_ENTRY)):
            raise MalformedCommand(f"an answer of {len(body)} bytes that begins with {body[:4].hex()}")
        code, ledger_id, entry_id = (
            int.from_bytes(body[4:8]),
            int.from_bytes(body[8:16], signed=True),
            int.from_bytes(body[16:24], signed=True),
        )
        if entry_id == LAST:
            self._read_last(ledger_id, code, body[24:])
        else:
            self._not_read(ledger_id, entry_id, code)

    def _read_last(self, ledger_id: int, code: int, entry: bytes) -> None:
        _, future = self._last_reads.pop(ledger_id, (0.0, None))
        if future is None:
            return
        try:
            future.set_result(last_entry_of(ledger_id, code, entry, self._name))
        except BookieError as error:
            future.set_exception(error)
