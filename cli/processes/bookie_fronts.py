"""BookieFronts: a bookie that is one of several also serves the HTTP port in front, and tells its metrics to the supervisor.

In front are the metrics of all and what is about the cluster; what is about one bookie is asked of that one, at its own port.
"""

import asyncio

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bookie.web.app import app_of
from cli.bookie.server import BookieServer
from cli.processes.local_http import served
from cli.processes.member import Member
from ports.network.tls_port import TlsPort
from ports.network.web_port import WebPort

BACKLOG = 128
KEYS = ("httpServerPort", "prometheusStatsHttpPort")


class BookieFronts:
    """`open` when the bookie serves its own ports, `close` before it stops."""

    def __init__(self, member: Member, server: BookieServer) -> None:
        self._member, self._server = member, server
        self._open: list[asyncio.Server | TlsPort] = []

    async def open(self) -> None:
        """OSError."""
        path = self._member.place.own_metrics
        self._open.append(await served(app_of(self._server.routes.of_metrics()), path))
        for key in KEYS:
            listening = self._member.front(key)
            if listening is None:
                continue
            port, tls = WebPort(app_of(self._routes())), self._server.web_tls
            if tls is None:
                server = await asyncio.get_running_loop().create_server(port, sock=listening, backlog=BACKLOG)
                self._open.append(server)
            else:
                listening.listen(BACKLOG)
                secure = TlsPort(listening, port, tls)
                secure.start()
                self._open.append(secure)

    def _routes(self) -> list[Route]:
        cluster = self._server.cluster_routes
        return [
            Route("/metrics", self._metrics),
            Route("/heartbeat", self._heartbeat),
            *(cluster.routes() if cluster is not None else ()),
            Route("/{path:path}", self._elsewhere, methods=["GET", "PUT", "POST", "DELETE"]),
        ]

    async def _metrics(self, request: Request) -> Response:
        return await self._member.metrics_of_all()

    async def _heartbeat(self, request: Request) -> Response:
        return PlainTextResponse("OK\n")

    async def _elsewhere(self, request: Request) -> Response:
        count = self._member.place.count
        return PlainTextResponse(
            f"{request.url.path} is about one bookie, and this port is in front of {count}: ask the one that is meant, at this"
            f" port + 1 to + {count}\n",
            404,
        )

    def close(self) -> None:
        """Closing twice is fine."""
        self._member.stopping()
        opened, self._open = self._open, []
        for each in opened:
            each.close()
