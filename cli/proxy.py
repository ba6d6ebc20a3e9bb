"""The composition of a proxy: which brokers it knows, its two ports. Owns the order of start and stop.

Metadata is handed in, or is None: then the proxy knows only what brokerServiceURL and brokerWebServiceURL say.
"""

import asyncio
import logging
import socket

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from broker.proxy.brokers import Brokers, FixedBrokers, MetadataBrokers
from broker.proxy.listener import ProxyListener
from broker.proxy.settings import ProxySettings
from broker.proxy.web import ProxyWeb
from cli.configuration import Configuration
from metadata.store import MetadataStore
from metadata.zookeeper.settings import ZooKeeperSettings

SETTINGS = (ProxySettings, ZooKeeperSettings)


class ProxyServer:
    """One proxy. `start` and `stop` once; the store is closed by whoever opened it."""

    def __init__(self, configuration: Configuration, store: MetadataStore | None) -> None:
        self.settings = configuration.settings(ProxySettings)
        self.brokers: Brokers = FixedBrokers(self.settings) if store is None else MetadataBrokers(store, self.settings)
        self.listener = ProxyListener(self.settings, self.brokers)
        self._web: asyncio.Server | None = None

    async def start(self, web_socket: socket.socket) -> None:
        """Who the brokers are comes first, clients last. MetadataError, OSError."""
        await self.brokers.open()
        await self._serve_web(web_socket)
        await self.listener.listen()

    async def stop(self) -> None:
        """After a start that failed, too."""
        if self._web is not None:
            self._web.close()
        await self.listener.close()
        await self.brokers.close()

    async def _serve_web(self, web_socket: socket.socket) -> None:
        """uvicorn's HTTP/1.1 protocol on our own loop, without its process handling."""
        app = ProxyWeb(self.settings, self.brokers, self.listener.counts, lambda: self.listener.connection_count)
        config = Config(app, lifespan="off", ws="none", access_log=False, log_config=None, server_header=False)
        config.load()
        logging.getLogger("uvicorn.error").setLevel(
            logging.ERROR
        )  # a warning of each declined upgrade would be most of the log
        state = ServerState()
        self._web = await asyncio.get_running_loop().create_server(
            lambda: H11Protocol(config=config, server_state=state, app_state={}), sock=web_socket
        )
