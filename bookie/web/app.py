"""The listener of a bookie's HTTP: uvicorn's HTTP/1.1 protocol on our own loop, without its process handling."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from bookie.errors import BookieStartError
from bookie.web.cluster_port import ClusterRefused
from bookie.web.cluster_routes import on_refused
from bookie.web.disk_routes import on_damage, on_disk_error
from bookie.web.requests import BadRequest, on_bad_request
from ports.audit import Audit
from ports.network.tls import RenewedTls
from ports.network.tls_port import TlsPort, bound_listener

HANDLERS = {
    BadRequest: on_bad_request,
    OSError: on_disk_error,
    BookieStartError: on_damage,
    ClusterRefused: on_refused,
}


class RouteGroup(Protocol):
    """Some of the paths."""

    def routes(self) -> list[Route]: ...


def bookie_app(*groups: RouteGroup) -> Starlette:
    """Application with all paths of these; any other path answers 404."""
    return app_of(route for group in groups for route in group.routes())


def app_of(routes: Iterable[Route]) -> Starlette:
    """The same app with some of the paths. Each request that may change something has its line in the audit log."""
    return Starlette(routes=list(routes), exception_handlers=dict(HANDLERS), middleware=[Middleware(Audit)])


async def serve_bookie_web(app: Starlette, host: str, port: int, tls: RenewedTls | None = None) -> asyncio.Server | TlsPort:
    """Behind TLS if there is any. OSError when the port is taken."""
    config = Config(app, lifespan="off", ws="none", access_log=False, log_config=None, server_header=False, proxy_headers=False)
    config.load()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # a warning of each declined upgrade would be most of the log
    state = ServerState()

    def accept() -> asyncio.Protocol:
        return H11Protocol(config=config, server_state=state, app_state={})

    if tls is None:
        return await asyncio.get_running_loop().create_server(accept, host, port)
    secure = TlsPort(bound_listener(host, port), accept, tls)
    secure.start()
    return secure


def port_of(web: asyncio.Server | TlsPort) -> int:
    """Port number."""
    return web.number if isinstance(web, TlsPort) else int(web.sockets[0].getsockname()[1])
