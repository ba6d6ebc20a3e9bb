"""The web ports of a broker: in the clear, for TLS, or both. Bound first, so that it is known where; served last."""

import asyncio
import socket
from dataclasses import dataclass
from typing import Any

from broker.meters import BrokerMeters
from broker.security.security import Security
from broker.security.tls_settings import TlsSettings
from broker.service.broker_service import BrokerService
from broker.transaction.coordinators import Coordinators
from cli.broker.process import bound_socket
from cli.broker.websockets import WebSockets
from cli.configuration.server_settings import ServerSettings
from cli.version import VERSION
from metadata.store import MetadataStore
from ports.network.request_limit import RequestLimit
from ports.network.tls import RenewedTls
from ports.network.tls_port import TlsPort, bound_listener


@dataclass(slots=True)
class WebPorts:
    """`serve` once; `close` stops to accept."""

    plain: socket.socket | None
    tls: socket.socket | None
    settings: ServerSettings
    app: Any = None
    """Application that both ports serve, once there is one."""
    websockets: WebSockets | None = None
    _server: asyncio.Server | None = None
    _tls_server: TlsPort | None = None

    @property
    def number(self) -> int | None:
        return None if self.plain is None else int(self.plain.getsockname()[1])

    @property
    def tls_number(self) -> int | None:
        return None if self.tls is None else int(self.tls.getsockname()[1])

    async def serve(
        self,
        service: BrokerService,
        store: MetadataStore,
        security: Security | None,
        tls: RenewedTls | None,
        coordinators: Coordinators | None,
        websockets: WebSockets | None = None,
    ) -> None:
        """Imported only now: a fifth of the time to start is this import, and publishing does not need it."""
        from broker.admin.app import admin_app, serve_admin, serve_admin_tls
        from broker.admin.rest.authorize import authorizer

        met = None if security is None else security.authentication.meters
        app = self._limited(admin_app(service, store, VERSION, authorizer(security), coordinators, met), service.meters)
        self.app, self.websockets = app, websockets
        if self.plain is not None:
            self._server = await serve_admin(app, self.plain, websockets)
        if self.tls is not None and tls is not None:
            self._tls_server = serve_admin_tls(app, self.tls, tls, websockets)

    def _limited(self, app: Any, meters: BrokerMeters) -> Any:
        """Both ports together have one limit."""
        if not self.settings.http_requests_limit_enabled:
            return app
        return RequestLimit(app, self.settings.http_requests_max_per_second, meters.http_request_rejected)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._tls_server is not None:
            self._tls_server.close()
        for each in (self.plain, self.tls):
            if each is not None:
                each.close()


def bound_web_ports(where: ServerSettings, tls: TlsSettings) -> WebPorts:
    """OSError names the address."""
    plain = None if where.web_service_port is None else bound_socket(where.bind_address, where.web_service_port)
    try:
        port = tls.web_service_port_tls
        return WebPorts(plain, None if port is None else bound_listener(where.bind_address, port), where)
    except OSError:
        if plain is not None:
            plain.close()
        raise
