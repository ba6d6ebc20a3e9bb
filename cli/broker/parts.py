"""BrokerParts: a broker over metadata and bookies that it is given; what a standalone and a cluster's broker have in common.

Owns the order in which these parts start and stop. Bookies and metadata belong to its caller.
"""

import asyncio
import os
from collections.abc import Callable, Mapping

from bookkeeper.client import BookKeeper
from bookkeeper.ports import BookieClient
from bookkeeper.settings import BookKeeperSettings
from broker.admin.rest.audit_settings import AuditSettings
from broker.connection.listener import Listener
from broker.connection.settings import ConnectionSettings
from broker.dispatchers.settings import DispatcherSettings
from broker.meters import BrokerMeters
from broker.metrics_settings import MetricsSettings
from broker.policies.topic_settings import TopicSettings
from broker.security.neighbour_settings import NeighbourSettings
from broker.security.security import security_of
from broker.security.settings import SecuritySettings
from broker.security.tls_settings import TlsSettings
from broker.service.addresses import Advertised
from broker.service.broker_service import BrokerService, ServiceOptions
from broker.service.load.settings import LoadSettings
from broker.service.settings import BrokerSettings
from broker.service.topic_name import path_excluding
from broker.topic.limits.broker_limits import nothing_refused
from broker.topic.opening import Topics
from broker.transaction.coordinators import Coordinators, initialise_coordinators
from broker.transaction.settings import TransactionSettings
from broker.transaction.snapshots.snapshots import Snapshots
from broker.transaction.transactions import BrokerTransactions
from cli.broker.websockets import WebSockets
from cli.configuration.changes import ChangingSettings
from cli.configuration.loading import Configuration
from cli.configuration.server_settings import ServerSettings
from cli.version import VERSION
from handlers.websocket.settings import WebSocketSettings
from managed_ledger.factory import ManagedLedgerFactory
from managed_ledger.settings import ManagedLedgerSettings
from metadata.metered_store import MeteredStore
from metadata.store import MetadataStore
from ports.clock import Clock
from ports.rng import Rng
from ports.settings import BadSetting

BROKER_SETTINGS = (
    BookKeeperSettings,
    ManagedLedgerSettings,
    TopicSettings,
    DispatcherSettings,
    BrokerSettings,
    LoadSettings,
    ConnectionSettings,
    MetricsSettings,
    AuditSettings,
    SecuritySettings,
    TlsSettings,
    NeighbourSettings,
    TransactionSettings,
    WebSocketSettings,
)


class BrokerParts:
    """Ledgers, managed ledgers, topics, service and the port for clients."""

    def __init__(
        self,
        configuration: Configuration,
        bookies: Mapping[str, BookieClient],
        store: MetadataStore,
        clock: Clock,
        rng: Rng,
        storage_refusal: Callable[[], str] = nothing_refused,
    ) -> None:
        """`storage_refusal`: why nothing should be published now, empty when it may."""
        self.server_settings = configuration.settings(ServerSettings)
        self._metered = store = MeteredStore(store)
        self.ledgers = BookKeeper(bookies, store, configuration.settings(BookKeeperSettings), rng)
        logs = configuration.settings(ManagedLedgerSettings)
        self.managed_ledgers = ManagedLedgerFactory(self.ledgers, store, logs, clock, path_excluding)
        transactions = configuration.settings(TransactionSettings)
        if transactions.transaction_coordinator_enabled and not configuration.settings(BrokerSettings).system_topic_enabled:
            raise BadSetting("transactionCoordinatorEnabled=true needs systemTopicEnabled=true: they are kept in such topics")
        topics = Topics(
            self.managed_ledgers,
            configuration.settings(TopicSettings),
            configuration.settings(DispatcherSettings),
            clock,
            takes_transactions=transactions.transaction_coordinator_enabled,
            storage_refusal=storage_refusal,
        )
        broker, load = configuration.settings(BrokerSettings), configuration.settings(LoadSettings)
        changing = ChangingSettings(configuration, (ServerSettings, *BROKER_SETTINGS))
        self.tls_settings = configuration.settings(TlsSettings)
        around = configuration.settings(NeighbourSettings)
        neighbours = around.neighbours(self.tls_settings, os.environ, asyncio.get_running_loop().time)
        options = ServiceOptions(load, changing, neighbours, self._meters(configuration, storage_refusal))
        self.service = BrokerService(broker, store, clock, topics, self.ledgers, options)
        self._snapshots = Snapshots(self.service, configuration.settings(TopicSettings), clock)
        topics.persistent.store_snapshots_in(self._snapshots.of)
        security = configuration.settings(SecuritySettings)
        self.security = security_of(security, store, os.environ, lambda: clock.now_ms() / 1000)
        self.tls = self.tls_settings.server(asyncio.get_running_loop().time) if self.tls_settings.is_on else None
        self._transactions: BrokerTransactions | None = None
        if transactions.transaction_coordinator_enabled:
            self._transactions = BrokerTransactions(transactions, self.managed_ledgers, self.service, clock)
        coordinators = None if self._transactions is None else self._transactions.coordinators
        self.listener = Listener(self.service, configuration.settings(ConnectionSettings), self.security, coordinators)
        sockets = configuration.settings(WebSocketSettings)
        self.websockets = WebSockets(sockets, self.listener, clock, rng) if sockets.web_socket_service_enabled else None

    def _meters(self, configuration: Configuration, storage_refusal: Callable[[], str]) -> BrokerMeters:
        return BrokerMeters(
            settings=configuration.settings(MetricsSettings),
            managed_ledgers=self.managed_ledgers,
            copies=configuration.settings(BookKeeperSettings).managed_ledger_default_write_quorum,
            sample_seconds=configuration.settings(TopicSettings).stats_update_frequency_in_secs,
            version=VERSION,
            storage_refusal=storage_refusal,
            metadata=self._metered.meters,
        )

    @property
    def coordinators(self) -> Coordinators | None:
        """Transaction coordinators; None: there are none."""
        return self.listener.coordinators

    async def listen(self) -> None:
        """BadSetting when there is no port at all."""
        where, tls_port = self.server_settings, self.tls_settings.broker_service_port_tls
        if where.broker_service_port is None and tls_port is None:
            raise BadSetting("brokerServicePort and brokerServicePortTls are both empty: clients could not connect")
        if where.broker_service_port is not None:
            await self.listener.listen(where.bind_address, where.broker_service_port)
        if tls_port is not None and self.tls is not None:
            self.listener.listen_tls(where.bind_address, tls_port, self.tls)

    def advertised(self, host: str, web_port: int | None, web_port_tls: int | None = None) -> Advertised:
        """Once it listens."""

        def url(scheme: str, port: int | None) -> str:
            return "" if port is None else f"{scheme}://{host}:{port}"

        own = self.listener
        plain = None if self.server_settings.broker_service_port is None else own.port
        return Advertised(
            url("pulsar", plain), url("http", web_port), url("pulsar+ssl", own.port_tls), url("https", web_port_tls)
        )

    async def start_transactions(self, *, may_initialise: bool) -> None:
        """Once the service has started. `may_initialise`: where the metadata knows of no coordinators they are made."""
        if self._transactions is not None:
            if may_initialise:
                await initialise_coordinators(self.service.catalogue)
            await self._transactions.start()

    async def stop(self) -> None:
        """Stops: new connections are refused, topics are unloaded and their marks written."""
        self.listener.stop_accepting()
        if self.websockets is not None:
            self.websockets.close()
        if self._transactions is not None:
            await self._transactions.close()
        await self._snapshots.close()
        await self.service.close()
        await self.listener.close()
        if self.security is not None:
            self.security.close()
        await self.managed_ledgers.close()
        await self.ledgers.close()
