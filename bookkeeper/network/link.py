"""Link: one connection to a bookie and its requests under way, whatever the version of the protocol.

Owns the socket, the order of adds, the answers that each request waits for, and the time-outs. The versions write requests and
read answers (`link_version2`, `link_version3`). A request that is not answered in time ends the connection:
version 2 names no request, so that a late answer could pass for that of a later one. Requests under way fail with AWAY.
Bounds: ENTRIES_UNANSWERED_MAX of adds are sent, further ones wait; callers bound their reads.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from bookkeeper.network.pending_requests import Awaited, PendingAdd, PendingAdds, PendingMix, PendingRead
from ports.logs import line
from ports.loop.turn import turn_of
from ports.network.read_buffer import ReadBuffer, SharedRoom
from wire.bookie.codes import BookieCode, BookieError
from wire.errors import RemoteError
from wire.run import EntryMix, EntryRun

log = logging.getLogger(__name__)

ENTRIES_UNANSWERED_MAX = 5000
"""Apache's bookie refuses adds when 10,000 wait for one of its threads (maxPendingAddRequestsPerThread)."""
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""Size of an answer at most; memory is not reserved before the answer comes."""
TICK_SECONDS = 0.5
LAST = -1
AWAY = BookieCode.ETOOMANYREQUESTS
"""Code for a bookie that cannot be asked now. Not EIO: a reader takes that as an answer that the bookie lost the entry."""


class Add(NamedTuple):
    """A run to be stored, or a mix, where the version of the protocol has mixes; `future` tells the caller of the end."""

    run: EntryRun | EntryMix
    master_key: bytes
    recovery: bool
    is_deferred: bool
    """The add may be answered before it is on disk (DEFERRED_SYNC)."""
    future: "asyncio.Future[None]"


class Link(asyncio.BufferedProtocol):
    """Adds and reads of runs. Each version fills in the methods at the end."""

    def __init__(self, name: str, room: SharedRoom, timeout_seconds: float, on_lost: Callable[[], None]) -> None:
        self._name, self._timeout, self._on_lost = name, timeout_seconds, on_lost
        self._loop = asyncio.get_running_loop()
        self._turn = turn_of(self._loop)
        self._input = ReadBuffer(room)
        self._unsent: deque[Add] = deque()
        self._entries = 0
        """Sent and not answered."""
        self._adds: PendingAdds[asyncio.Future[None]] = PendingAdds()
        self._mixes: deque[PendingMix[asyncio.Future[None]]] = deque()
        self._reads: deque[PendingRead[asyncio.Future[EntryRun]]] = deque()
        self._transport: asyncio.Transport
        self._gathered: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._reason = ""

    def add(self, add: Add) -> None:
        """Sent when there is room for it at the bookie, in order."""
        self._unsent.append(add)
        self._send_adds()

    def _send_adds(self) -> None:
        while self._unsent and (self._entries < ENTRIES_UNANSWERED_MAX or not self._entries):
            add = self._unsent.popleft()
            run = add.run
            count = run.count
            self._entries += count
            deadline = self._loop.time() + self._timeout
            if isinstance(run, EntryMix):
                self._mixes.append(PendingMix(run, self._answers_to(run), deadline, add.future))
            else:
                self._adds.sent(run.ledger_id, PendingAdd(run.first_entry_id, count, deadline, add.future))
            self._send(self._add_frames(add))

    async def read(self, ledger_id: int, first_entry_id: int, count: int) -> EntryRun:
        future: asyncio.Future[EntryRun] = self._loop.create_future()
        future.add_done_callback(heard)
        awaited = Awaited(first_entry_id, count)
        self._reads.append(PendingRead(ledger_id, first_entry_id, awaited, self._loop.time() + self._timeout, future))
        self._send(self._read_frames(ledger_id, first_entry_id, count))
        return await asyncio.shield(future)

    def _send(self, frames: bytes) -> None:
        if self._reason:
            self._fail_all()  # lost in this very moment
            return
        if not self._gathered:
            self._turn.at_end(self._send_gathered)
        self._gathered.append(frames)

    def _send_gathered(self) -> None:
        """Send the frames of one event or one round of the loop: a write costs more than the frames in it."""
        frames, self._gathered = self._gathered, []
        if not self._reason:
            self._transport.writelines(frames)

    def end(self, reason: str) -> None:
        if not self._reason:
            self._reason = reason
            if reason != "closed":
                log.warning(line("connection to a bookie ended", bookie=self._name, reason=reason))
            self._transport.abort()
            self._on_lost()
            self._fail_all()

    # The socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(str(exc or "the bookie closed it"))
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        if min(self._deadlines(), default=float("inf")) < self._loop.time():
            self.end(f"no answer in {self._timeout:g} s")
        else:
            self._timer = self._loop.call_later(TICK_SECONDS, self._tick)

    def _deadlines(self) -> Iterator[float]:
        yield from (add.deadline for add in self._adds)
        yield from (mix.deadline for mix in self._mixes)
        yield from (read.deadline for read in self._reads)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._input.room()

    def buffer_updated(self, nbytes: int) -> None:
        buffer, end = self._input.filled(nbytes)
        used = end
        with self._turn:
            try:
                used = self._consume(buffer, end)
            except RemoteError as mistake:
                self.end(mistake.reason)
            self._input.keep(used)

    # Answers

    def _added(self, ledger_id: int, first: int, count: int, code: int) -> None:
        for add in self._adds.answered(ledger_id, first, count, code):
            self._entries -= add.count
            if add.owner.done():
                continue
            if add.code:
                add.owner.set_exception(BookieError(known(add.code), ledger_id, f"{self._name}: at add"))
            else:
                add.owner.set_result(None)
        if self._unsent:
            self._send_adds()

    def _read(self, run: EntryRun) -> None:
        left = [run]
        for read in self._reads:
            if read.ledger_id == run.ledger_id:
                left = [rest for part in left for rest in read.read(part)]
        self._finish_reads()

    def _not_read(self, ledger_id: int, entry_id: int, code: int) -> None:
        for read in self._reads:
            if read.ledger_id == ledger_id and read.refused(entry_id, code or BookieCode.EIO):
                break
        self._finish_reads()

    def _finish_reads(self) -> None:
        for read in [read for read in self._reads if not read.awaited]:
            self._reads.remove(read)
            result = read.result()
            if isinstance(result, EntryRun):
                read.owner.set_result(result)
            else:
                place = f"{self._name}: entry {read.first_entry_id}"
                read.owner.set_exception(BookieError(known(result), read.ledger_id, place))

    def _fail_all(self) -> None:
        owners = list(self._take_owners())
        for owner in owners:
            if not owner.done():
                owner.set_exception(BookieError(AWAY, -1, f"{self._name}: {self._reason}"))

    def _take_owners(self) -> "Iterator[asyncio.Future[Any]]":
        """All who wait: nothing is under way any more."""
        adds, self._adds = self._adds, PendingAdds()
        mixes, self._mixes = self._mixes, deque()
        unsent, self._unsent = self._unsent, deque()
        reads, self._reads = self._reads, deque()
        yield from (add.owner for add in adds)
        yield from (mix.owner for mix in mixes)
        yield from (add.future for add in unsent)
        yield from (read.owner for read in reads)

    # Methods of each version

    async def read_last(self, ledger_id: int, fence_key: bytes | None) -> bytes | None:
        """The last entry, None when there is none; the ledger is fenced before, if there is a key. One for each ledger at a
        time."""
        raise NotImplementedError

    def _add_frames(self, add: Add) -> bytes:
        raise NotImplementedError

    def _answers_to(self, mix: EntryMix) -> bytes:
        """Good answers to the whole mix."""
        raise NotImplementedError

    def _read_frames(self, ledger_id: int, first_entry_id: int, count: int) -> bytes:
        raise NotImplementedError

    def _consume(self, buffer: memoryview, end: int) -> int:
        """Take all whole answers in buffer[:end]; where they end. RemoteError."""
        raise NotImplementedError


def last_entry_of(ledger_id: int, code: int, entry: bytes, name: str) -> bytes | None:
    """Last entry in an answer; None for no entry. BookieError."""
    if code == BookieCode.ENOENTRY:
        return None
    if code == BookieCode.EOK and len(entry) >= 32 and entry[:8] == ledger_id.to_bytes(8, signed=True):
        return entry
    raise BookieError(known(code or BookieCode.EIO), ledger_id, f"{name}: the last entry")


def heard(future: "asyncio.Future[Any]") -> None:
    """Mark a failure as read: a caller that was cancelled does not read it, and asyncio must not report that."""
    if not future.cancelled():
        future.exception()


def known(code: int) -> BookieCode:
    """The code; EIO for one that `BookieCode` lacks, which says no more than that the request failed."""
    return BookieCode(code) if code in BookieCode.__members__.values() else BookieCode.EIO
