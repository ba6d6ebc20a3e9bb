"""The listener of a bookie's HTTP: uvicorn's HTTP/1.1 protocol on our own loop, without its process handling."""

import asyncio
import logging

from starlette.applications import Starlette
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from bookie.web.routes import BadRequest, BookieRoutes, on_bad_request, on_disk_error


def bookie_app(routes: BookieRoutes) -> Starlette:
    return Starlette(routes=routes.routes(), exception_handlers={BadRequest: on_bad_request, OSError: on_disk_error})


async def serve_bookie_web(app: Starlette, host: str, port: int) -> asyncio.Server:
    """OSError when the port is taken."""
    config = Config(app, lifespan="off", ws="none", access_log=False, log_config=None, server_header=False, proxy_headers=False)
    config.load()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # a warning of each declined upgrade would be most of the log
    state = ServerState()
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: H11Protocol(config=config, server_state=state, app_state={}), host, port)
