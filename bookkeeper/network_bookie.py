"""NetworkBookie: one bookie across a socket, as `bookkeeper.ports.BookieClient`. Speaks version 2, so also to Apache's bookies.

One connection, made when it is needed and again after it was lost. A request that is not answered in time ends the connection:
version 2 names no request, so that a late answer could pass for that of a later one. What was under way fails with AWAY, which
says nothing of whether it was done, nor of what the bookie has. Bounds: ADD_BYTES_MAX of adds under way, beyond which they are
refused with ETOOMANYREQUESTS; ENTRIES_UNANSWERED_MAX of them sent, and READS_MAX reads: further ones wait.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from bookkeeper.network_pending import Awaited, PendingAdd, PendingAdds, PendingRead
from ports.logs import line
from ports.read_buffer import ReadBuffer, SharedRoom
from wire.bookie.frames import next_frame
from wire.bookie.version2 import ADD_ENTRY, FLAG_FENCING, FLAG_RECOVERY_ADD, READ_ENTRY, packet_header
from wire.bookie_codes import BookieCode, BookieError
from wire.errors import MalformedCommand, RemoteError
from wire.kernels.bookie_requests import add_requests, read_requests
from wire.kernels.bookie_responses import take_added, take_read
from wire.run import EntryRun
from wire.run_parts import cut

log = logging.getLogger(__name__)

ADD_BYTES_MAX = 64 * 1024 * 1024
READS_MAX = 64
ENTRIES_UNANSWERED_MAX = 5000
"""Apache's bookie refuses adds when 10,000 wait for one of its threads (maxPendingAddRequestsPerThread)."""
ENTRIES_PER_READ_MAX = 1000
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""Of an answer; nothing is reserved for it before it comes."""
FIRST_ENTRY_BYTES = 64 * 1024
"""How large entries are thought to be before any was read: so many are asked for at once as the caller has room for."""
TICK_SECONDS = 0.5
LAST = -1
AWAY = BookieCode.ETOOMANYREQUESTS
"""Of a bookie that cannot be asked now. Not EIO: a reader takes that for the bookie's word that the entry is lost there."""

_Add: TypeAlias = tuple[EntryRun, bytes, bool, "asyncio.Future[None]"]
_ADD, _READ = packet_header(ADD_ENTRY), packet_header(READ_ENTRY)


class NetworkBookie:
    """One bookie. `close` ends it; a call after that fails."""

    def __init__(self, name: str, host: str, port: int, room: SharedRoom, timeout_seconds: float = 30.0) -> None:
        self.name, self._host, self._port, self._room = name, host, port, room
        self._timeout = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._link: _Link | None = None
        self._connecting: asyncio.Future[_Link] | None = None
        self._turns = asyncio.Semaphore(READS_MAX)
        self._last_reads: dict[int, asyncio.Future[None]] = {}
        self._entry_bytes = FIRST_ENTRY_BYTES
        self._add_bytes = 0
        self._queued: list[_Add] = []
        """Adds that wait for the connection, in order."""
        self._is_closed = False

    # BookieClient

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        """See `BookieClient.add`."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self._add_bytes + run.size_bytes > ADD_BYTES_MAX and self._add_bytes:
            future.set_exception(BookieError(BookieCode.ETOOMANYREQUESTS, run.ledger_id, f"{self.name}: too much under way"))
            return future
        self._add_bytes += run.size_bytes
        future.add_done_callback(lambda _: self._added(run.size_bytes))
        if self._link is not None:
            self._link.add(run, master_key, recovery, future)
        else:
            self._queued.append((run, master_key, recovery, future))
            self._connect()
        return future

    def _added(self, size_bytes: int) -> None:
        self._add_bytes -= size_bytes

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """See `BookieClient.read`. One read per entry is sent, all at once; what is beyond `bytes_max` is thrown away."""
        count = max(1, min(count_max, bytes_max // max(1, self._entry_bytes), ENTRIES_PER_READ_MAX))
        async with self._turns:
            link = await self._connected(ledger_id)
            run = await link.read(ledger_id, first_entry_id, count)
        self._entry_bytes = (self._entry_bytes + run.size_bytes // run.count) // 2
        return cut(run, run.first_entry_id, run.count, bytes_max)

    async def fence(self, ledger_id: int, master_key: bytes) -> int:
        """See `BookieClient.fence`."""
        entry = await self._read_last(ledger_id, master_key)
        return -1 if entry is None else int.from_bytes(entry[16:24], signed=True)

    async def last_entry_id(self, ledger_id: int) -> int:
        """See `BookieClient.last_entry_id`."""
        entry = await self._read_last(ledger_id, None)
        return -1 if entry is None else int.from_bytes(entry[8:16], signed=True)

    async def _read_last(self, ledger_id: int, fence_key: bytes | None) -> bytes | None:
        """One at a time for each ledger: the answer to a plain read must never pass for that of a fence."""
        while ledger_id in self._last_reads:
            await asyncio.wait([self._last_reads[ledger_id]])
        turn = self._last_reads[ledger_id] = self._loop.create_future()
        try:
            link = await self._connected(ledger_id)
            return await link.read_last(ledger_id, fence_key)
        finally:
            del self._last_reads[ledger_id]
            turn.set_result(None)

    async def close(self) -> None:
        """What is under way fails. Closing twice is fine."""
        self._is_closed = True
        if self._link is not None:
            self._link.end("closed")

    # The connection

    async def _connected(self, ledger_id: int) -> "_Link":
        if self._link is not None:
            return self._link
        try:
            return await asyncio.shield(self._connect())
        except OSError as error:
            raise BookieError(AWAY, ledger_id, f"{self.name}: {error}") from error

    def _connect(self) -> "asyncio.Future[_Link]":
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._open(), name=f"connect to {self.name}")
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._connecting

    async def _open(self) -> "_Link":
        try:
            link = await self._open_link()
        except OSError as error:
            for run, _, _, future in self._take_queued():
                future.set_exception(BookieError(AWAY, run.ledger_id, f"{self.name}: {error}"))
            raise
        finally:
            self._connecting = None
        self._link = link
        for run, master_key, recovery, future in self._take_queued():
            link.add(run, master_key, recovery, future)
        return link

    async def _open_link(self) -> "_Link":
        if self._is_closed:
            raise ConnectionError("closed")
        try:
            async with asyncio.timeout(self._timeout):
                _, link = await self._loop.create_connection(
                    lambda: _Link(self.name, self._room, self._timeout, self._lost), self._host, self._port
                )
        except TimeoutError:
            raise ConnectionError(f"no connection in {self._timeout:g} s") from None
        except (UnicodeError, OverflowError) as error:  # as the bookie itself registered it
            raise ConnectionError(f"{self._host}:{self._port} is no address: {error}") from error
        return link

    def _take_queued(self) -> list[_Add]:
        """Those that somebody still waits for."""
        queued, self._queued = self._queued, []
        return [each for each in queued if not each[3].done()]

    def _lost(self) -> None:
        self._link = None


class _Link(asyncio.BufferedProtocol):
    """One connection and what is under way on it."""

    def __init__(self, name: str, room: SharedRoom, timeout_seconds: float, on_lost: Callable[[], None]) -> None:
        self._name, self._timeout, self._on_lost = name, timeout_seconds, on_lost
        self._loop = asyncio.get_running_loop()
        self._input = ReadBuffer(room)
        self._unsent: deque[_Add] = deque()
        self._entries = 0
        """Sent and not answered."""
        self._adds: PendingAdds[asyncio.Future[None]] = PendingAdds()
        self._reads: deque[PendingRead[asyncio.Future[EntryRun]]] = deque()
        self._last_reads: dict[int, tuple[float, asyncio.Future[bytes | None]]] = {}
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._reason = ""

    def add(self, run: EntryRun, master_key: bytes, recovery: bool, future: "asyncio.Future[None]") -> None:
        """Sent when there is room for it at the bookie, in order."""
        self._unsent.append((run, master_key, recovery, future))
        self._send_adds()

    def _send_adds(self) -> None:
        while self._unsent and (self._entries < ENTRIES_UNANSWERED_MAX or not self._entries):
            run, master_key, recovery, future = self._unsent.popleft()
            self._entries += run.count
            awaited = Awaited(run.first_entry_id, run.count)
            self._adds.sent(run.ledger_id, PendingAdd(awaited, run.count, self._loop.time() + self._timeout, future))
            self._send(add_requests(run, _ADD | FLAG_RECOVERY_ADD if recovery else _ADD, master_key))

    async def read(self, ledger_id: int, first_entry_id: int, count: int) -> EntryRun:
        future: asyncio.Future[EntryRun] = self._loop.create_future()
        future.add_done_callback(_heard)
        awaited = Awaited(first_entry_id, count)
        self._reads.append(PendingRead(ledger_id, first_entry_id, awaited, self._loop.time() + self._timeout, future))
        self._send(read_requests(_READ, ledger_id, first_entry_id, count))
        return await asyncio.shield(future)

    async def read_last(self, ledger_id: int, fence_key: bytes | None) -> bytes | None:
        """The last entry, None when there is none."""
        future: asyncio.Future[bytes | None] = self._loop.create_future()
        future.add_done_callback(_heard)
        self._last_reads[ledger_id] = (self._loop.time() + self._timeout, future)
        if fence_key is None:
            self._send(read_requests(_READ, ledger_id, LAST, 1))
        else:
            plain = read_requests(_READ | FLAG_FENCING, ledger_id, LAST, 1)
            self._send((len(plain) - 4 + len(fence_key)).to_bytes(4) + plain[4:] + fence_key)
        return await asyncio.shield(future)

    def _send(self, frames: bytes) -> None:
        if self._reason:
            self._fail_all()  # lost in this very moment
        else:
            self._transport.write(frames)

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
        yield from (read.deadline for read in self._reads)
        yield from (deadline for deadline, _ in self._last_reads.values())

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._input.room()

    def buffer_updated(self, nbytes: int) -> None:
        buffer, end = self._input.filled(nbytes)
        used = end
        try:
            used = self._consume(buffer, end)
        except RemoteError as mistake:
            self.end(mistake.reason)
        self._input.keep(used)

    def _consume(self, buffer: memoryview, end: int) -> int:
        at = 0
        while at < end and not self._reason:
            added = take_added(buffer, at, end)
            if added is not None:
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
            return
        for read in self._reads:
            if read.ledger_id == ledger_id and read.refused(entry_id, code or BookieCode.EIO):
                break
        self._finish_reads()

    def _added(self, ledger_id: int, first: int, count: int, code: int) -> None:
        for add in self._adds.answered(ledger_id, first, count, code):
            self._entries -= add.count
            if add.owner.done():
                continue
            if add.code:
                add.owner.set_exception(BookieError(_known(add.code), ledger_id, f"{self._name}: at add"))
            else:
                add.owner.set_result(None)
        self._send_adds()

    def _read(self, run: EntryRun) -> None:
        left: EntryRun | None = run
        for read in self._reads:
            if left is not None and read.ledger_id == run.ledger_id:
                left = read.read(left)
        self._finish_reads()

    def _finish_reads(self) -> None:
        for read in [read for read in self._reads if not read.awaited]:
            self._reads.remove(read)
            result = read.result()
            if isinstance(result, EntryRun):
                read.owner.set_result(result)
            else:
                place = f"{self._name}: entry {read.first_entry_id}"
                read.owner.set_exception(BookieError(_known(result), read.ledger_id, place))

    def _read_last(self, ledger_id: int, code: int, entry: bytes) -> None:
        _, future = self._last_reads.pop(ledger_id, (0.0, None))
        if future is None:
            return
        if code == BookieCode.ENOENTRY:
            future.set_result(None)
        elif code == BookieCode.EOK and len(entry) >= 32 and entry[:8] == ledger_id.to_bytes(8, signed=True):
            future.set_result(entry)
        else:
            error = BookieError(_known(code or BookieCode.EIO), ledger_id, f"{self._name}: the last entry")
            future.set_exception(error)

    def _fail_all(self) -> None:
        error = f"{self._name}: {self._reason}"
        adds, self._adds = self._adds, PendingAdds()
        unsent, self._unsent = self._unsent, deque()
        reads, self._reads = self._reads, deque()
        last_reads, self._last_reads = self._last_reads, {}
        owners: list[asyncio.Future[None] | asyncio.Future[EntryRun] | asyncio.Future[bytes | None]] = []
        owners += [add.owner for add in adds]
        owners += [future for *_, future in unsent]
        owners += [read.owner for read in reads]
        owners += [future for _, future in last_reads.values()]
        for owner in owners:
            if not owner.done():
                owner.set_exception(BookieError(AWAY, -1, error))


def _heard(future: "asyncio.Future[EntryRun] | asyncio.Future[bytes | None]") -> None:
    """A failure is no news to a caller that was cancelled: asyncio must not report that nobody took it."""
    if not future.cancelled():
        future.exception()


def _known(code: int) -> BookieCode:
    """A code that nobody knows says no more than that it failed."""
    return BookieCode(code) if code in BookieCode.__members__.values() else BookieCode.EIO
