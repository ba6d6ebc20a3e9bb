"""WebSockets: the WebSocket endpoints of a broker, made at the first upgrade: until then nothing of them is imported."""

import asyncio
from typing import TYPE_CHECKING

from broker.connection.server import Server
from handlers.websocket.settings import WebSocketSettings
from ports.clock import Clock
from ports.rng import Rng

if TYPE_CHECKING:
    from handlers.websocket.service import WebSocketService


class WebSockets:
    """Called for each upgrade; `close` before the broker's parts stop."""

    def __init__(self, settings: WebSocketSettings, server: Server, clock: Clock, rng: Rng) -> None:
        self._settings, self._server, self._clock, self._rng = settings, server, clock, rng
        self._service: WebSocketService | None = None

    def __call__(self) -> asyncio.Protocol:
        if self._service is None:
            from handlers.websocket.service import WebSocketService
            from handlers.websocket.ways import InsideBroker

            self._service = WebSocketService(self._settings, InsideBroker(self._server), self._clock, self._rng)
        return self._service.accept()

    def close(self) -> None:
        if self._service is not None:
            self._service.close()
