"""Connection: one client's socket as an asyncio protocol. Bytes in, commands to their handlers; answers out, put together.

Per read: consecutive SENDs and ACKs are taken as runs by the kernels, everything else one frame at a time. Owns the order of
things on the wire, back-pressure both ways, keep-alive, and the end: any fault of a peer is one log line and a closed
connection. The handlers' modules decide the meaning of commands.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from itertools import chain
from typing import Any, cast

from ports.logs import line
from ports.loop.owner import ask, tell, weakly
from ports.loop.slices import do_in_slices
from ports.loop.turn import turn_of
from ports.network.outbox import BLOCKED_ANSWER_BYTES_MAX, Outbox
from ports.network.read_buffer import ReadBuffer
from ports.network.rest import FRAMES_PER_TURN, Rest
from wire.errors import RemoteError
from wire.frames import COMMAND_BYTES_MAX, PING, PONG, Frame, next_frame
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect
from wire.kernels.sends import take_mix, take_sends
from wire.run import HEADER_BYTES_CRC32C

from ..errors import BrokerError, ServerError
from ..security.authorization.callers import Caller
from ..topic.dispatch.deliveries import deliveries_of
from ..transaction.here import ParticipantsHere
from . import replies
from .access.command_needs import ANSWERED_AT_ONCE
from .access.guard import SERVER_VERSION, Guard
from .access.revocation import Attached
from .consumers.consumer_requests import ConsumerRequests
from .consumers.consumers import Consumers
from .errors import ProtocolViolation
from .liveness import Liveness
from .producers.producers import Producers
from .producers.publish_gate import PublishGate
from .producers.receipts import Receipts
from .requests.lookups import Lookups
from .requests.schemas import Schemas, SchemasOfTopics
from .requests.topic_lists import TopicLists
from .requests.transaction_ends import TransactionEnds
from .requests.transactions import Transactions
from .requests.under_way import RequestsUnderWay
from .routes import ROUTES, Families, Route
from .server import Server
from .session import Session, Tick

log = logging.getLogger(__name__)

RUN_ENTRIES_MAX = 1 << 16
HANDSHAKE_BYTES_MAX = 256 * 1024
"""Bytes of a frame before CONNECT is answered: the largest is a CONNECT with its credentials."""
LINGER_SECONDS = 5.0
"""Time for a connection that we end to send its written bytes."""

_SEND, _ACK = int(BaseCommand.SEND), int(BaseCommand.ACK)


class Connection(asyncio.BufferedProtocol):
    """One client. It is the `Link` of its handlers."""

    def __init__(self, server: Server) -> None:
        self._server = server
        settings = server.settings
        self._loop = asyncio.get_running_loop()
        self._turn = turn_of(self._loop)
        self._deliveries = deliveries_of(self._loop)
        self._session = Session()
        self._input = ReadBuffer(server.room)
        changed = tell(self._reading_changed)
        self._gate = PublishGate(server.memory, settings.max_pending_publish_requests_per_connection, changed)
        self._receipts = Receipts(self._gate)
        self._producers = Producers(self, server.service, settings, self._gate, self._receipts)
        self._consumers = Consumers(self, server.service, settings)
        self._topic_lists = TopicLists(self, server.service.catalogue, server.service.settings)
        self._families = Families(
            self._producers,
            self._consumers,
            ConsumerRequests(self, self._consumers),
            Lookups(self, server.service.lookup, server.service.creation, server.service.meters),
            self._topic_lists,
            TransactionEnds(
                self,
                ParticipantsHere(server.service.catalogue, server.service.lifecycle),
                is_enabled=server.coordinators is not None,
            ),
            Schemas(self, SchemasOfTopics(server.service.schemas, server.service.deletion), server.service.lifecycle),
            Transactions(self, server.coordinators, server.security),
        )
        self._requests = RequestsUnderWay(changed, server.starts)
        self._frame_bytes_max = min(HANDSHAKE_BYTES_MAX, settings.frame_bytes_max)
        self._guard: Guard | None = None
        self._header_bytes = HEADER_BYTES_CRC32C
        self._is_reading = True
        self._rest = Rest(tell(self._go_on))
        ping, listens, check_ms = tell(self._ping), ask(self._listens), settings.connection_liveness_check_timeout_millis
        self._liveness = Liveness(ping, tell(self.end), listens, check_ms)
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self._outbox: Outbox
        self._host = ""
        self.address = ""
        self.is_open = False

    # ---- Link

    @property
    def client_version(self) -> str:
        return self._session.client_version

    @property
    def protocol_version(self) -> int:
        return self._session.protocol_version

    @property
    def caller(self) -> Caller | None:
        """The peer; None without authentication."""
        return None if self._guard is None else self._guard.caller

    @property
    def gets_broker_entry_metadata(self) -> bool:
        is_exposed = self._server.settings.exposing_broker_entry_metadata_to_client_enabled
        return is_exposed and self._session.knows_broker_entry_metadata

    @property
    def is_writable(self) -> bool:
        return self._outbox.is_writable

    async def is_alive(self) -> bool:
        return self.protocol_version < 1 or await self._liveness.check()  # the oldest know no PING

    def answer(self, frames: bytes) -> None:
        if self._receipts.parts:
            self._receipts.flush()
        self._deliveries.send_first(self)
        self._outbox.answer(frames)

    def deliver(self, frames: bytes) -> None:
        if self._receipts.parts:
            self._receipts.flush()
        self._deliveries.send_first(self)
        self._outbox.deliver(frames)

    def run(
        self,
        command: BaseCommand | None,
        work: Coroutine[Any, Any, None],
        on_failure: Callable[[BrokerError], None],
        *,
        is_making: bool = False,
    ) -> None:
        if is_making:
            work = self._requests.in_turn(work)
        if command is not None and self._guard is not None and self._guard.must_ask(command.type):
            work = self._guard.permitted(command, work)
        self._requests.begin(work, on_failure)

    def in_slices(self, work: Iterator[None]) -> None:
        self._rest.begin(work)

    def end(self, reason: str) -> None:
        if self.is_open:
            log.warning(line("connection ended", peer=self.address, reason=reason))
            self._close()

    # ---- The socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        self._outbox = Outbox(self._transport, tell(self._overflowed))
        self._receipts.write = self._outbox.answer
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        self._host, self.address = str(peer[0]), f"{peer[0]}:{peer[1]}"
        self.is_open = True
        if self._server.security is not None:
            self._guard = Guard(self._server.security, weakly(self), transport.get_extra_info("peercert"), ask(self._attached))
        refusal = self._server.admit(self, self._host)
        if refusal is not None:
            self._refuse(ServerError.NOT_ALLOWED, refusal)
            return
        self._timer = self._loop.call_later(self._server.settings.keep_alive_interval_seconds, self._tick)

    def _attached(self) -> Iterator[Attached]:
        return chain(self._producers.attached_all(), self._consumers.attached_all())

    def _refuse(self, code: ServerError, reason: str) -> None:
        """Closes the whole connection, with the reason."""
        self.answer(replies.error(replies.NO_REQUEST, BrokerError(code, reason)))
        self.end(reason)

    def connection_lost(self, exc: Exception | None) -> None:
        log.info(line("disconnected", peer=self.address, reason=exc or "closed"))
        self._release()
        self._input = ReadBuffer(self._server.room)  # half a frame is megabytes, and this object may live for long
        self._server.service.meters.connections_throttled -= not self._is_reading
        if self._timer is not None:
            self._timer.cancel()
        self._server.dismiss(self, self._host)
        del self._families, self._producers, self._consumers, self._topic_lists  # they know this object, and would stay with it

    def close(self) -> None:
        """The server stops: written bytes are still sent."""
        if self.is_open:
            self._close()

    def _close(self) -> None:
        self._outbox.close()
        self._transport.close()
        self._release()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.abort)

    def _release(self) -> None:
        """Ends everything of the connection; after that, answers the callers that asked whether the peer is alive."""
        if not self.is_open:
            return
        self.is_open = False
        self._rest.close()
        self._requests.close()
        self._outbox.close()
        do_in_slices(chain(self._producers.ends(), self._consumers.ends()), self._liveness.ended)
        self._topic_lists.close()
        if self._guard is not None:
            self._guard.close()

    def _overflowed(self) -> None:
        """The peer does not read; nor would it read an error."""
        self.end(f"more than {BLOCKED_ANSWER_BYTES_MAX} bytes of answers wait for a peer that does not read")
        self._transport.abort()

    def pause_writing(self) -> None:
        self._outbox.blocked()

    def resume_writing(self) -> None:
        self._outbox.unblocked()
        if self.is_open:
            self._consumers.writable()

    def _reading_changed(self) -> None:
        is_reading = not self._gate.is_shut and not self._requests.is_too_many and not self._rest.is_behind
        if is_reading == self._is_reading or not self.is_open:
            return
        self._is_reading = is_reading
        self._server.service.meters.connections_throttled += -1 if is_reading else 1
        if is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _tick(self) -> None:
        verdict = self._session.tick(is_reading=self._is_reading)
        if verdict in (Tick.HANDSHAKE_UNFINISHED, Tick.PEER_SILENT):
            self.end(verdict.value)
            return
        if verdict is Tick.SEND_PING or not self._is_reading:  # a peer that we do not read still gets a sign of life
            self._ping()
        self._timer = self._loop.call_later(self._server.settings.keep_alive_interval_seconds, self._tick)

    def _ping(self) -> None:
        self.answer(PING)

    def _listens(self) -> bool:
        return self._is_reading

    # ---- Reading

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._input.room()

    def buffer_updated(self, nbytes: int) -> None:
        self._input.filled(nbytes)
        self._liveness.heard()
        if not self._rest.is_behind:
            self._go_on()

    def _go_on(self) -> None:
        """Handles the bytes read, or a part of them: the rest has the next turn of the loop."""
        buffer, start, end = self._input.unused()
        used = end
        with self._turn:
            try:
                used = self._consume(buffer, start, end) if self._rest.is_through() else start
            except RemoteError as mistake:
                self.end(mistake.reason)
            except Exception:
                log.exception(line("a handler failed", peer=self.address))
                self.end("internal error")
            if self._rest.is_behind:
                self._input.hold(used)
            else:
                self._input.keep(used)
        self._reading_changed()

    def _consume(self, buffer: memoryview, at: int, end: int) -> int:
        """Returns the place up to which the bytes are used. The function is long because a call per run would cost."""
        session, frames = self._session, 0
        while at < end and self.is_open and not self._rest.is_behind:
            frames += 1
            if frames > FRAMES_PER_TURN:
                self._rest.fall_behind()
                break
            kind = buffer[at + 9] if session.is_connected and end - at > 12 else 0
            if kind == _SEND:
                parts_max = FRAMES_PER_TURN + 1 - frames
                mix = take_mix(buffer, at, end, HEADER_BYTES_CRC32C, parts_max, RUN_ENTRIES_MAX, self._frame_bytes_max)
                if mix is not None:
                    session.heard()
                    self._producers.publish_mix(mix, buffer)
                    at = mix.frames[-1]
                    frames += len(mix.producer_ids) - 1
                    continue
                sends = take_sends(buffer, at, end, self._header_bytes, RUN_ENTRIES_MAX, self._frame_bytes_max)
                if sends is not None:
                    session.heard()
                    header_bytes = self._producers.publish(sends)
                    if header_bytes == self._header_bytes:
                        at = sends.end
                    else:
                        self._header_bytes = header_bytes
                    continue
            elif kind == _ACK:
                after = self._consumers.acknowledge_plain(buffer, at, end)
                if after > at:
                    session.heard()
                    at = after
                    continue
            frame = next_frame(buffer, at, end, self._frame_bytes_max, COMMAND_BYTES_MAX)
            if frame is None:
                return at
            session.heard()
            self._handle(frame)
            at = frame.end
        return at

    def _handle(self, frame: Frame) -> None:
        command = frame.command
        self._session.check(command.type)
        if command.type == BaseCommand.CONNECT:
            self._connect(command.connect)
        elif command.type == BaseCommand.PING:
            self.answer(PONG)
        elif command.type == BaseCommand.AUTH_RESPONSE and self._guard is not None:
            self._guarded(partial(self._guard.respond, command))
        elif command.type != BaseCommand.PONG:
            route = ROUTES.get(command.type)
            if route is None:
                raise ProtocolViolation(f"{BaseCommand.Type.Name(command.type)} was not asked for")
            self._perform(route, frame)

    def _perform(self, route: Route, frame: Frame) -> None:
        """A command that needs a permission is given to `run` with its work, or begins once it is permitted."""
        family, method, command = route[0](self._families), route[1], frame.command
        if self._guard is not None and self._guard.must_ask(command.type) and command.type in ANSWERED_AT_ONCE:
            told = partial(replies.denied, command)
            self.run(command, _called(method, family, command), lambda failure: self.answer(told(failure)))
        else:
            method(family, command, frame.payload)

    def _connect(self, command: CommandConnect) -> None:
        if not self._server.service.is_started:
            self._refuse(ServerError.SERVICE_NOT_READY, "The broker is starting")
            return
        if self._guard is not None and not self._guarded(partial(self._guard.connect, command)):
            return
        version = self._session.connect(command)
        self._frame_bytes_max = self._server.settings.frame_bytes_max
        who = {} if self.caller is None else {"role": str(self.caller)[:300]}
        log.info(line("connected", peer=self.address, client=self.client_version, protocol=version, **who))
        watchers = self._server.service.settings.enable_broker_topic_list_watcher
        self.answer(replies.connected(SERVER_VERSION, version, self._server.settings.max_message_size, watchers=watchers))

    def _guarded(self, door: Callable[[], None]) -> bool:
        """Whether the peer is admitted, or stays. A refused peer gets the reason, and the connection ends."""
        try:
            door()
        except BrokerError as refusal:
            self._refuse(refusal.code, refusal.message)
            return False
        return True


async def _called(method: Callable[[Any, BaseCommand, memoryview], None], family: Any, command: BaseCommand) -> None:
    """A handler that is called once its command may be done; such a command has no payload."""
    method(family, command, memoryview(b""))
