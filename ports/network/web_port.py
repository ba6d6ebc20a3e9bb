"""WebPort: how an ASGI application is spoken to over HTTP/1.1: uvicorn's protocol, on our own loop and without its process.

Owns what is the same for all connections of a port, and knows no route. Imported late: its import takes a while.
"""

import asyncio
import logging
import string
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ports.clock import Clock, RealClock

Headers = list[tuple[bytes, bytes]]
_TOKEN = frozenset((string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~").encode())
"""Bytes of a method (RFC 9110, 5.6.2)."""


class DatedState(ServerState):
    """Gives each answer its date (RFC 9110, 6.6.1). uvicorn's own server has a timer for this, which nothing starts here."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._second, self._headers = clock, -1, Headers()
        super().__init__()

    @property
    def default_headers(self) -> Headers:
        second = self._clock.now_ms() // 1000
        if second != self._second:
            self._second, self._headers = second, [(b"date", formatdate(second, usegmt=True).encode())]
        return self._headers

    @default_headers.setter
    def default_headers(self, headers: Headers) -> None:
        """There are no others."""


class WebProtocol(H11Protocol):
    """uvicorn's, that tells the application of its connection's certificate, as `request.state.certificate` (None: none).

    Bytes between requests that cannot begin one end the connection at once with 400, as Jetty does: Node.js sends a body with
    DELETE and names no length, and a connection that waits for the line's end would refuse the next request in its place.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self.app_state: dict[str, Any] = {"certificate": transport.get_extra_info("peercert")}
        super().connection_made(transport)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            rest, _ = self.conn.trailing_data
            if rest and rest[0] not in _TOKEN:
                self.send_400_response("Invalid HTTP request received.")


class WebPort:
    """Port of one application. Called for each connection, plain or after its TLS handshake. `upgrade` makes the protocol of a
    connection whose request asks for a WebSocket, and gets that request again; None: such requests are answered as others."""

    def __init__(self, app: Any, clock: Clock | None = None, upgrade: Callable[[], asyncio.Protocol] | None = None) -> None:
        self._config = Config(
            app, lifespan="off", ws="none", access_log=False, log_config=None, server_header=False, proxy_headers=False
        )
        self._config.load()
        # Java's HttpClient offers h2c with every first request; declining it in silence is what HTTP/1.1 asks of us, and
        # uvicorn's warning of it ("Unsupported upgrade request") would be most of the log. Its errors are kept.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._state = DatedState(clock or RealClock())
        self._upgrade = upgrade

    def __call__(self) -> WebProtocol:
        protocol = WebProtocol(config=self._config, server_state=self._state, app_state={})
        if self._upgrade is not None:
            protocol.ws_protocol_class = self._upgraded  # type: ignore[assignment]  # it is only called
        return protocol

    def _upgraded(self, **_: Any) -> asyncio.Protocol:
        assert self._upgrade is not None
        return self._upgrade()
