"""WebSocketService: the WebSocket sessions of one server. Its web ports hand it each upgrade; `close` ends all sessions."""

import asyncio
from collections.abc import Mapping

from ports.clock import Clock
from ports.rng import Rng

from .errors import CloseCode, Refused
from .requests import asked, proof_of
from .session import Session
from .settings import WebSocketSettings
from .socket import WebSocketConnection
from .ways import Peer, Way


class WebSocketService:
    """Satisfies `socket.Sessions`."""

    def __init__(self, settings: WebSocketSettings, way: Way, clock: Clock, rng: Rng) -> None:
        self.settings = settings
        self._way, self._clock, self._rng = way, clock, rng
        self._connections: dict[WebSocketConnection, None] = {}
        self._is_closed = False

    def accept(self) -> asyncio.Protocol:
        """Protocol of a connection whose next bytes are an upgrade."""
        return WebSocketConnection(self)

    def session(self, connection: WebSocketConnection, target: str, headers: Mapping[str, str], peer: Peer) -> Session:
        if self._is_closed:
            raise Refused(503, "The server stops")
        about = asked(target)
        proof = proof_of(headers, about.query, has_certificate=bool(peer.certificate))
        return Session(about, proof, peer, self._way, self._clock, self._rng, connection)

    def opened(self, connection: WebSocketConnection) -> None:
        self._connections[connection] = None

    def gone(self, connection: WebSocketConnection) -> None:
        self._connections.pop(connection, None)

    def close(self) -> None:
        """Ends all sessions with 1001. Closing twice is fine."""
        self._is_closed = True
        for connection in list(self._connections):
            connection.end(CloseCode.GOING_AWAY, "the server stops")
