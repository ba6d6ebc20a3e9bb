"""HTTPS: the admin REST behind TLS. What a client's certificate says goes with its requests, as `request.state.certificate`."""

import asyncio
import socket
from typing import Any

from starlette.applications import Starlette
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ports.tls import RenewedTls
from ports.tls_port import TlsPort


class HttpsProtocol(H11Protocol):
    """uvicorn's, that looks at the certificate of its connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self.app_state: dict[str, Any] = {"certificate": transport.get_extra_info("peercert")}
        super().connection_made(transport)


def serve_admin_tls(app: Starlette, listening: socket.socket, tls: RenewedTls) -> TlsPort:
    """On a bound socket that listens, as `serve_admin` without TLS."""
    config = Config(app, lifespan="off", ws="none", access_log=False, log_config=None, server_header=False, proxy_headers=False)
    config.load()
    state = ServerState()
    port = TlsPort(listening, lambda: HttpsProtocol(config=config, server_state=state, app_state={}), tls)
    port.start()
    return port
