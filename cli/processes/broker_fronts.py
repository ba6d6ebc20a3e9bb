"""BrokerFronts: a broker that is one of several also serves the ports in front, and tells its metrics to the supervisor.

The process that a client finds in front answers its lookups with the owner's own port; it answers an admin request, or sends it
on to the owner's own port, as any broker of a cluster does. Owns these listeners alone.
"""

import asyncio
from collections.abc import MutableMapping
from typing import Any

from broker.admin.metrics.metrics import GATHER, MetricsRoutes
from broker.admin.routes.cluster.brokers import PROCESSES
from cli.broker.server import BrokerServer
from cli.broker.web_ports import WebPorts
from cli.processes.local_http import served
from cli.processes.member import Member
from ports.network.tls import RenewedTls
from ports.network.tls_port import TlsPort

BACKLOG = 1024


class ForAll:
    """The admin application as it is on a port in front: /metrics there are those of all processes, and
    `brokers/processes` says which there are."""

    def __init__(self, app: Any, member: Member) -> None:
        self._app, self._member = app, member

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        member = self._member
        await self._app({**scope, GATHER: member.metrics_of_all, PROCESSES: member.processes}, receive, send)


class BrokerFronts:
    """`open` when the broker serves its own ports; `close` first of all at a stop, so that no new client comes."""

    def __init__(self, member: Member, server: BrokerServer, web: WebPorts) -> None:
        self._member, self._server, self._web = member, server, web
        self._open: list[asyncio.Server | TlsPort] = []

    async def open(self) -> None:
        """OSError."""
        await self._open_metrics()
        await self._open_web("webServicePort", None)
        await self._open_web("webServicePortTls", self._server.tls)
        for key, tls in (("brokerServicePort", None), ("brokerServicePortTls", self._server.tls)):
            listening = self._member.front(key)
            if listening is not None:
                await self._server.listener.listen_in_front(listening, tls)

    async def _open_metrics(self) -> None:
        from starlette.applications import Starlette

        security = self._server.security
        met = None if security is None else security.authentication.meters
        routes = MetricsRoutes(self._server.service, self._server.coordinators, met).routes()
        self._open.append(await served(Starlette(routes=routes), self._member.place.own_metrics))

    async def _open_web(self, key: str, tls: RenewedTls | None) -> None:
        from ports.network.web_port import WebPort

        listening = self._member.front(key)
        if listening is None:
            return
        port = WebPort(ForAll(self._web.app, self._member), upgrade=self._web.websockets)
        if tls is None:
            self._open.append(await asyncio.get_running_loop().create_server(port, sock=listening, backlog=BACKLOG))
            return
        listening.listen(BACKLOG)
        secure = TlsPort(listening, port, tls)
        secure.start()
        self._open.append(secure)

    def close(self) -> None:
        """Closing twice is fine."""
        self._server.listener.leave_front()
        opened, self._open = self._open, []
        for each in opened:
            each.close()
