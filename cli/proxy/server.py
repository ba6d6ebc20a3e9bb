"""The composition of a proxy: which brokers it knows, its two ports. Owns the order of start and stop.

Metadata is handed in, or is None: then the proxy knows only what brokerServiceURL and brokerWebServiceURL say.
"""

import asyncio
import os
import socket
from typing import Any

from broker.proxy.brokers import Brokers, FixedBrokers, MetadataBrokers
from broker.proxy.clients import own_credentials
from broker.proxy.listener import ProxyListener
from broker.proxy.settings import ProxySettings
from broker.proxy.way import Way
from broker.proxy.web import ProxyWeb
from broker.security.security import security_of
from broker.security.settings import SecuritySettings
from cli.configuration.loading import Configuration
from metadata.store import MetadataStore
from metadata.zookeeper.settings import ZooKeeperSettings
from ports.clock import RealClock
from ports.network.request_limit import RequestLimit
from ports.network.tls_port import TlsPort, bound_listener
from ports.network.web_port import WebPort

SETTINGS = (ProxySettings, SecuritySettings, ZooKeeperSettings)


class ProxyServer:
    """One proxy. `start` and `stop` once; the caller that opened the store closes it."""

    def __init__(self, configuration: Configuration, store: MetadataStore | None) -> None:
        self.settings = configuration.settings(ProxySettings)
        self.brokers: Brokers = FixedBrokers(self.settings) if store is None else MetadataBrokers(store, self.settings)
        now = asyncio.get_running_loop().time
        own = own_credentials(
            self.settings.broker_client_authentication_plugin,
            self.settings.broker_client_authentication_parameters,
            os.environ,
        )
        self._tls = self.settings.tls.server(now)
        self._way = Way(own, self.settings.broker_tls(now))
        clock = RealClock()
        security = security_of(configuration.settings(SecuritySettings), None, os.environ, lambda: clock.now_ms() / 1000)
        self.listener = ProxyListener(self.settings, self.brokers, self._way, security)
        self._web_tls: TlsPort | None = None
        self._web: asyncio.Server | None = None

    async def start(self, web_socket: socket.socket) -> None:
        """Starts: finds the brokers first, and serves clients last. MetadataError, OSError."""
        await self.brokers.open()
        await self._serve_web(web_socket)
        await self.listener.listen(self._tls)

    async def stop(self) -> None:
        """After a start that failed, too."""
        if self._web is not None:
            self._web.close()
        if self._web_tls is not None:
            self._web_tls.close()
        await self.listener.close()
        await self.brokers.close()

    def _limited(self, app: ProxyWeb) -> Any:
        """Both ports together have one limit."""
        counts, settings = self.listener.counts, self.settings
        if not settings.http_requests_limit_enabled:
            return app
        return RequestLimit(app, settings.http_requests_max_per_second, counts.http_request_rejected)

    async def _serve_web(self, web_socket: socket.socket) -> None:
        app = ProxyWeb(
            self.settings,
            self.brokers,
            self.listener.counts,
            lambda: self.listener.connection_count,
            self._way,
            self.listener.door,
        )
        port = WebPort(self._limited(app))
        self._web = await asyncio.get_running_loop().create_server(port, sock=web_socket)
        if self._tls is not None and self.settings.web_service_port_tls is not None:
            self._web_tls = TlsPort(
                bound_listener(self.settings.bind_address, self.settings.web_service_port_tls), port, self._tls
            )
            self._web_tls.start()

    @property
    def web_port_tls(self) -> int | None:
        """Once it listens; None: nowhere."""
        return None if self._web_tls is None else self._web_tls.number
