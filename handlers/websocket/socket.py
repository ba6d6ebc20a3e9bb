"""WebSocketConnection: one client's socket from its upgrade on, over the `websockets` library, which knows RFC 6455 and 7692.

Bounds: a message has at most webSocketMaxTextFrameSize bytes, compressed or not; one turn of the loop takes TURN_BYTES at
most, and begins no slice after FRAMES_PER_TURN frames; a client that does not read is not read either, and its brokers wait.
"""

import asyncio
import logging
from typing import Protocol, cast

from websockets.extensions.permessage_deflate import enable_server_permessage_deflate
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from ports.logs import line

from .errors import CloseCode, Refused
from .session import Session
from .settings import WebSocketSettings
from .ways import Peer

log = logging.getLogger(__name__)
logging.getLogger("websockets.server").setLevel(logging.ERROR)  # it tells of each connection what is told here, too

SLICE_BYTES = 1024
FRAMES_PER_TURN = 64
TURN_BYTES = 64 * 1024
REASON_BYTES_MAX = 120
OPEN_SECONDS_MAX = 30.0
CLOSE_SECONDS_MAX = 5.0


class Sessions(Protocol):
    """Parts that the connections of one server share."""

    settings: WebSocketSettings

    def session(self, connection: "WebSocketConnection", target: str, headers: dict[str, str], peer: Peer) -> Session:
        """Refused."""

    def opened(self, connection: "WebSocketConnection") -> None: ...
    def gone(self, connection: "WebSocketConnection") -> None: ...


class WebSocketConnection(asyncio.Protocol):
    """One client. Made at an upgrade, whose request is the first that it gets. Satisfies `session.Client`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._loop = asyncio.get_running_loop()
        limit = sessions.settings.web_socket_max_text_frame_size
        self._wire = ServerProtocol(extensions=enable_server_permessage_deflate(None), max_size=limit)
        self._transport: asyncio.Transport
        self._session: Session | None = None
        self._opening: asyncio.Task[None] | None = None
        self._unused = bytearray()
        self._text = bytearray()
        self._is_turn_asked = self._is_blocked = self._is_paused = self._is_closed = False
        self._heard_at = self._told_at = self._pinged_at = self._loop.time()
        self._watchdog: asyncio.TimerHandle | None = None
        self.address = ""

    # ---- The socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        self._peer = Peer((str(peer[0]), int(peer[1])), transport.get_extra_info("peercert"))
        self.address = f"{peer[0]}:{peer[1]}"
        self._sessions.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        log.info(line("WebSocket client disconnected", peer=self.address, reason=exc or "closed"))
        self._release()
        self._sessions.gone(self)

    def eof_received(self) -> bool:
        self._wire.receive_eof()
        return False

    def data_received(self, data: bytes) -> None:
        self._unused += data
        self._heard_at = self._loop.time()
        self._go_on()

    def pause_writing(self) -> None:
        self._is_blocked = True
        if self._session is not None and self._opening is None:
            self._session.client_blocked(is_blocked=True)
        self.reading_changed()

    def resume_writing(self) -> None:
        self._is_blocked = False
        if self._session is not None and self._opening is None:
            self._session.client_blocked(is_blocked=False)
        self.reading_changed()

    # ---- Reading

    def _go_on(self) -> None:
        """Takes what was read, in slices; the rest has the next turn of the loop."""
        self._is_turn_asked = False
        used = frames = 0
        while used < len(self._unused) and used < TURN_BYTES and frames < FRAMES_PER_TURN and not self._must_wait:
            self._wire.receive_data(self._unused[used : used + SLICE_BYTES])
            used += SLICE_BYTES
            frames += self._take_events()
        del self._unused[:used]
        self._flush()
        self.reading_changed()
        if self._unused and not self._must_wait:
            self._ask_turn()

    def _ask_turn(self) -> None:
        if not self._is_turn_asked:
            self._is_turn_asked = True
            self._loop.call_soon(self._go_on)

    @property
    def _must_wait(self) -> bool:
        """Whether nothing more is taken from the client now."""
        if self._opening is not None or self._is_blocked:
            return True
        return self._session is not None and not self._is_closed and not self._session.takes_more

    def reading_changed(self) -> None:
        must_pause = self._must_wait or len(self._unused) > TURN_BYTES
        if must_pause != self._is_paused and not self._transport.is_closing():
            self._is_paused = must_pause
            if must_pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
        if self._unused and not self._must_wait:
            self._ask_turn()

    def _take_events(self) -> int:
        """Number of frames."""
        events = self._wire.events_received()
        for event in events:
            if isinstance(event, Request):
                self._opening = self._loop.create_task(self._open(event), name="WebSocket upgrade")
            elif isinstance(event, Frame):
                self._frame(event)
        return len(events)

    def _frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.BINARY:
            self.end(CloseCode.UNSUPPORTED_DATA, "messages are JSON, in text frames")
        if frame.opcode not in (Opcode.TEXT, Opcode.CONT) or self._is_closed:
            return
        self._text += frame.data
        if frame.fin:
            text, self._text = bytes(self._text), bytearray()
            if self._session is not None:
                self._session.on_text(text)

    # ---- Upgrade

    async def _open(self, request: Request) -> None:
        try:
            async with asyncio.timeout(OPEN_SECONDS_MAX):
                await self._opened(request)
        except Refused as refused:
            self._refuse(request, refused)
        except TimeoutError:
            self._refuse(request, Refused(504, f"no answer of a broker within {OPEN_SECONDS_MAX:g} s"))
        finally:
            self._opening = None
        self._flush()
        self.reading_changed()

    async def _opened(self, request: Request) -> None:
        """Refused."""
        response = self._wire.accept(request)
        if response.status_code != 101:
            self._wire.send_response(response)
            return
        headers = {name.lower(): value for name, value in request.headers.raw_items()}
        self._session = self._sessions.session(self, request.path, headers, self._peer)
        await self._session.open()
        self._wire.send_response(response)
        log.info(line("WebSocket session", peer=self.address, kind=self._session.asked.kind, topic=self._session.asked.topic))
        self._watch()

    def _refuse(self, request: Request, refused: Refused) -> None:
        log.warning(line("WebSocket session refused", peer=self.address, status=refused.status, reason=str(refused)[:300]))
        if self._session is not None:
            self._session.close()
        self._wire.send_response(self._wire.reject(refused.status, f"{refused}\n"))

    # ---- Writing

    def tell(self, text: str) -> None:
        if self._wire.state is State.OPEN and not self._is_closed:
            self._wire.send_text(text.encode())
            self._told_at = self._loop.time()
            self._flush()

    def end(self, code: int, reason: str) -> None:
        """Closes with a code and a reason. Ending twice is fine."""
        if self._is_closed:
            return
        log.info(line("WebSocket session ended", peer=self.address, code=int(code), reason=reason[:300]))
        self._release()
        if self._wire.state is State.OPEN:
            self._wire.send_close(int(code), reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore"))
            self._flush()
        self._watchdog = self._loop.call_later(CLOSE_SECONDS_MAX, self._transport.abort)

    def _flush(self) -> None:
        data = self._wire.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(b"".join(data))
        if self._wire.state is not State.OPEN and self._opening is None and not self._is_closed:
            self._release()
        if data and not data[-1]:  # the library's mark of an end, after which the server closes first
            self._transport.close()

    def _release(self) -> None:
        self._is_closed = True
        for handle in (self._watchdog, self._opening):
            if handle is not None:
                handle.cancel()
        self._watchdog = None
        if self._session is not None:
            self._session.close()

    # ---- Time

    def _watch(self) -> None:
        settings, now = self._sessions.settings, self._loop.time()
        idle, ping = settings.web_socket_session_idle_timeout_millis / 1000, settings.web_socket_ping_duration_seconds
        if idle and now - max(self._heard_at, self._told_at) >= idle:
            self.end(CloseCode.GOING_AWAY, f"no message for {idle:g} s (webSocketSessionIdleTimeoutMillis)")
            return
        if 0 < ping <= now - self._pinged_at and self._wire.state is State.OPEN:
            self._pinged_at = now
            self._wire.send_ping(b"PING")
            self._flush()
        moments = [self._pinged_at + ping] if ping > 0 else []
        moments += [max(self._heard_at, self._told_at) + idle] if idle else []
        if moments and not self._is_closed:
            self._watchdog = self._loop.call_at(min(moments), self._watch)
