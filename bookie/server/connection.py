"""BookieConnection: one client's socket as an asyncio protocol. Bytes in, requests to the bookie; answers out, put together.

Adds and reads of version 2 are taken as runs by the kernels, everything else one frame at a time. A peer's mistake gets
the protocol's error or a closed connection, and one line in the log. TLS is begun by a request (START_TLS), as Apache's do.
Bounds: ADD_BYTES_MAX of adds, POLLS_MAX that wait, REQUESTS_MAX of everything else, READS_AT_ONCE of them being done; at any,
and while the peer does not read its answers, nothing is read from it. Half a frame and unread answers have TICK_SECONDS.
FRAMES_PER_TURN are handled in one turn of the loop; further frames that were read have the next turns.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Coroutine
from typing import Any, Protocol, cast

from bookie.server.adds import RUN_ENTRIES_MAX, Adds
from bookie.server.confirmations import Confirmations
from bookie.server.operations import Operations
from bookie.server.request_stats import RequestStats
from bookie.server.security.security import HandshakeFailed, Security, shake_hands
from bookie.server.session import TICK_SECONDS, Session
from bookie.server.settings import BookieServerSettings
from bookie.striped_bookie import AnyBookie
from ports.logs import line
from ports.loop.owner import tell
from ports.network.outbox import Outbox
from ports.network.read_buffer import ReadBuffer, SharedRoom
from ports.network.rest import FRAMES_PER_TURN, Rest
from wire.bookie.codes import BookieCode
from wire.bookie.frames import next_frame
from wire.bookie.requests import Add, Answers, LongPoll, Rejected, Request, StartTls
from wire.bookie.runs import ReadRun
from wire.bookie.version3 import Version3Answers
from wire.errors import MalformedCommand, RemoteError
from wire.kernels.bookie_requests import take_reads

log = logging.getLogger("bookie.server")

REQUESTS_MAX = 1000
POLLS_MAX = 10_000
READS_AT_ONCE = 8
SHORT_READ_ENTRIES_MAX, SCATTERED_RUNS_MIN = 8, 4
"""Entries of a short read at most; and the number of short reads from which those that come together are read together."""
LINGER_SECONDS = 5.0
"""Time that a connection which the bookie ends may take to send its last bytes."""
_ADD, _READ = 1, 2


class Server(Protocol):
    """Parts that the connections of one bookie share."""

    bookie: AnyBookie
    settings: BookieServerSettings
    operations: Operations
    confirmations: Confirmations
    room: SharedRoom
    stats: RequestStats
    security: Security

    def admit(self, connection: "BookieConnection") -> None: ...
    def dismiss(self, connection: "BookieConnection") -> None: ...


class BookieConnection(asyncio.BufferedProtocol):
    """One client. It is the `Peer` of the operations."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._session = Session()
        self._input = ReadBuffer(server.room)
        self._frame_bytes_max = server.settings.netty_max_frame_size_bytes
        self._requests: dict[asyncio.Task[None], None] = {}
        self._polls: dict[asyncio.Task[None], None] = {}
        self._turns = asyncio.Semaphore(READS_AT_ONCE)
        self._writable = asyncio.Event()
        self._writable.set()
        self._adds = Adds(server.bookie, server.confirmations, self, self._frame_bytes_max, self._load_changed, server.stats)
        self._short_reads: list[ReadRun] = []
        """Short reads of one ledger, from the bytes that are being parsed."""
        self._is_full = False
        self._is_reading = True
        self._rest = Rest(tell(self._go_on))
        self._rejected_count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._guard = server.security.guard()
        """Guard until the peer is known, then None."""
        self._handshake: asyncio.Task[None] | None = None
        """The handshake that is under way or has been."""
        self._is_shaking_hands = self._is_gone = False
        self._transport: asyncio.Transport
        self._outbox: Outbox
        self.address = ""
        self.is_open = False

    # ---- Peer

    def answer(self, frames: bytes) -> None:
        self._outbox.deliver(frames)

    async def writable(self) -> None:
        await self._writable.wait()

    # ---- The socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        self._outbox = Outbox(self._transport, self._transport.abort)
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        self.address = f"{peer[0]}:{peer[1]}"
        found = transport.get_extra_info("socket")
        if found is not None and self._server.settings.server_sock_keepalive:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.is_open = True
        self._server.admit(self)
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)

    def connection_lost(self, exc: Exception | None) -> None:
        """Once, also when it is called twice: asyncio does not report the end of a connection in the middle of a handshake."""
        if self._is_gone:
            return
        self._is_gone = True
        log.info(line("disconnected", peer=self.address, reason=exc or "closed", rejected=self._rejected_count))
        self._release()
        self._server.dismiss(self)

    def end(self, reason: str) -> None:
        """Close the connection; bytes written before are still sent."""
        if self.is_open:
            log.warning(line("connection ended", peer=self.address, reason=reason))
            self.close()

    def close(self) -> None:
        if self.is_open:
            self._outbox.flush()
            self._release()
            self._transport.close()
            self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.abort)

    def _release(self) -> None:
        """Release the connection; work under way goes on to its end, since a fence must not be cut off."""
        self.is_open = False
        self._rest.close()
        self._outbox.close()
        self._writable.set()
        for poll in self._polls:
            poll.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()
        self._reading_changed()

    def resume_writing(self) -> None:
        self._writable.set()
        self._reading_changed()

    def _reading_changed(self) -> None:
        is_reading = not (self._is_full or self._rest.is_behind or self._is_shaking_hands) and self._writable.is_set()
        if is_reading == self._is_reading or not self.is_open:
            return
        self._is_reading = is_reading
        if is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _tick(self) -> None:
        reason = self._session.tick(
            half_frame_bytes=self._input.kept_bytes,
            unsent_bytes=0 if self._writable.is_set() else self._transport.get_write_buffer_size(),
            is_reading=self._is_reading,
        )
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)
        if reason:
            self.end(reason)

    # ---- Reading

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._input.room()

    def buffer_updated(self, nbytes: int) -> None:
        self._input.filled(nbytes)
        if self._is_shaking_hands:
            self._input.keep(0)  # it came right behind the handshake, whose end is reported next
            return
        self._session.heard()
        if not self._rest.is_behind:
            self._go_on()

    def _go_on(self) -> None:
        """Handle the bytes read, or a part of them: the rest has the next turn of the loop."""
        buffer, start, end = self._input.unused()
        used = end
        try:
            used = self._consume(buffer, start, end)
        except RemoteError as mistake:
            self.end(mistake.reason)
        except Exception:
            log.exception(line("a request failed", peer=self.address))
            self.end("internal error")
        is_behind = self._rest.is_behind
        if is_behind:
            self._input.hold(used)
        else:
            self._input.keep(used)
        self._outbox.flush()
        if is_behind or not self._is_reading:
            self._reading_changed()

    def _consume(self, buffer: memoryview, at: int, end: int) -> int:
        """Handle the frames; returns the end of the used bytes."""
        frames = 0
        while at < end and self.is_open:
            if self._is_shaking_hands:
                raise MalformedCommand(f"{end - at} bytes in the clear after START_TLS")
            frames += 1
            if frames > FRAMES_PER_TURN:
                self._rest.fall_behind()
                break
            opcode = buffer[at + 5] if self._guard is None and end - at > 24 and buffer[at + 4] == 2 else 0
            if opcode == _ADD:
                after = self._adds.take(buffer, at, end)
                if after > at:
                    self._session.took_run()
                    at = after
                    continue
            elif opcode == _READ:
                reads = take_reads(buffer, at, end, RUN_ENTRIES_MAX)
                if reads is not None:
                    self._session.took_run()
                    self._read(reads)
                    at = reads.end
                    continue
            found = next_frame(buffer, at, end, self._frame_bytes_max)
            if found is None:
                break
            self._begin_short_reads()
            self._handle(self._session.decode(found[0]))
            at = found[1]
        if self._short_reads:
            self._begin_short_reads()
        return at

    def _read(self, run: ReadRun) -> None:
        """Read at once, or together with the short reads that came with this one."""
        if run.count > SHORT_READ_ENTRIES_MAX:
            self._run(self._server.operations.read_run(run, self))
            return
        if self._short_reads and (self._short_reads[0].ledger_id, self._short_reads[0].header) != (run.ledger_id, run.header):
            self._begin_short_reads()
        self._short_reads.append(run)

    def _begin_short_reads(self) -> None:
        """Begin many short reads as one: a task for each costs more than its read."""
        runs, self._short_reads = self._short_reads, []
        if len(runs) >= SCATTERED_RUNS_MIN:
            self._run(self._server.operations.read_scattered(runs, self))
            return
        for run in runs:
            self._run(self._server.operations.read_run(run, self))

    def _handle(self, request: Request) -> None:
        operation = request.operation
        if isinstance(operation, StartTls):
            self._start_tls(request.answers)
            return
        if self._guard is not None and not self._is_allowed(request):
            return
        match operation:
            case Add():
                self._adds.add(operation, request.answers)
            case Rejected():
                self._reject(operation)
            case LongPoll():
                self._poll(request)
            case _:
                self._run(self._server.operations.perform(operation, request.answers, self))

    def _reject(self, rejected: Rejected) -> None:
        """A line for the first one only: a peer must not fill the log."""
        if not self._rejected_count:
            log.warning(line("request rejected", peer=self.address, reason=rejected.reason))
        self._rejected_count += 1
        self.answer(rejected.answer)

    # ---- Who the peer is

    def _is_allowed(self, request: Request) -> bool:
        """False: the guard answers this request. It goes when the peer is known, and later requests are allowed."""
        assert self._guard is not None
        verdict = self._guard.judge(request)
        if verdict.answer:
            self.answer(verdict.answer)
        if verdict.end:
            self.end(verdict.end)
        self._dismiss_guard()
        return False

    def _dismiss_guard(self) -> None:
        if self._guard is not None and self._guard.is_satisfied:
            self._guard = None

    def _start_tls(self, answers: Answers) -> None:
        assert isinstance(answers, Version3Answers), answers
        tls = self._server.security.tls
        if tls is None or self._handshake is not None:
            reason = "START_TLS, and no tlsProviderFactoryClass" if tls is None else "START_TLS a second time"
            self._reject(Rejected(answers.tls_started(BookieCode.EBADREQ), reason))
            return
        if self._requests or self._polls or self._adds.load:
            raise MalformedCommand("START_TLS while other requests are under way: their answers would be in the clear")
        self._is_shaking_hands = True
        self.answer(answers.tls_started(BookieCode.EOK))
        self._outbox.flush()
        self._reading_changed()
        self._handshake = self._loop.create_task(self._shake_hands(tls.context()), name="TLS handshake")

    async def _shake_hands(self, context: ssl.SSLContext) -> None:
        try:
            self._transport, certificate = await shake_hands(self._transport, self, context)
        except HandshakeFailed as failure:
            self.end(str(failure))
            self.connection_lost(None)
            return
        self._outbox = Outbox(self._transport, self._transport.abort)
        self._is_shaking_hands, self._is_reading = False, True
        log.info(line("TLS handshake done", peer=self.address, cipher=self._transport.get_extra_info("cipher")[0]))
        if not self.is_open:
            self._transport.abort()
            return
        reason = self._guard.secured(certificate) if self._guard is not None else ""
        if reason:
            log.warning(line("a peer is not authorized", peer=self.address, reason=reason))
        self._dismiss_guard()
        self._input.room()
        self.buffer_updated(0)

    # ---- Requests under way

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(self._in_turn(work))
        self._requests[task] = None
        task.add_done_callback(self._request_done)
        self._load_changed()

    def _poll(self, request: Request) -> None:
        """Long poll: may wait, and delays no other request."""
        task = self._loop.create_task(self._server.operations.perform(request.operation, request.answers, self))
        self._polls[task] = None
        task.add_done_callback(self._request_done)
        self._load_changed()

    async def _in_turn(self, work: Coroutine[Any, Any, None]) -> None:
        async with self._turns:
            await work

    def _request_done(self, task: asyncio.Task[None]) -> None:
        self._requests.pop(task, None)
        self._polls.pop(task, None)
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            log.error(line("a request failed", peer=self.address), exc_info=failure)
            if not isinstance(failure, OSError):
                self.end("internal error")
        self._load_changed()

    def _load_changed(self) -> None:
        """Full at any bound, until all are half empty."""
        load = max(self._adds.load, len(self._requests) / REQUESTS_MAX, len(self._polls) / POLLS_MAX)
        if load >= 1:
            self._is_full = True
        elif load <= 0.5:
            self._is_full = False
        self._reading_changed()
