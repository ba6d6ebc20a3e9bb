"""The composition of a cluster's broker: metadata and bookies are elsewhere. Owns the order of start and stop.

Metadata is handed in, so that the same code runs on ZooKeeper, on the embedded store and in tests.
"""

import asyncio
import logging
import socket
from functools import partial

from bookkeeper.ledgers import LedgerError
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.security_settings import BookKeeperSecuritySettings
from bookkeeper.settings import BookKeeperSettings
from broker.service.addresses import Advertised, broker_id, parse_listeners
from broker.service.load.board import LoadBoard
from broker.service.load.leader import leader_claim
from broker.service.load.placement.choosing import ByHash, ByLoad
from broker.service.load.placement.rules_driver import PlacementPolicies
from broker.service.load.settings import LoadSettings
from broker.service.neighbours.members import MemberConflict, Members, broker_data, ownership_data
from broker.service.ownership.absent_owners import refuses_connections
from broker.service.ownership.namespace_bundles import NamespaceBundles
from broker.service.ownership.own_nodes import OwnNodes
from broker.service.ownership.ownership_driver import BundleOwnership
from broker.service.settings import BrokerSettings
from cli.broker.load import LoadSurroundings, load_driver
from cli.broker.parts import BROKER_SETTINGS, BrokerParts
from cli.configuration.loading import Configuration
from cli.configuration.server_settings import ClusterSettings, ServerSettings
from cli.initialize_cluster.metadata import ClusterMetadata, ClusterRefused, NewCluster
from cli.version import VERSION
from metadata.sessions import Sessions
from metadata.store import MetadataStore
from metadata.zookeeper.settings import ZooKeeperSettings
from ports.clock import Clock
from ports.logs import line
from ports.rng import Rng

SETTINGS = (ServerSettings, ClusterSettings, ZooKeeperSettings, BookKeeperSecuritySettings, *BROKER_SETTINGS)
log = logging.getLogger("interpulse")


class BrokerFailed(Exception):
    """A broker that cannot start; the message says why and what to do."""


class BrokerServer:
    """One broker. `start`, `serve` and `stop` once; the caller that opened the store closes it. BadTls when it is made."""

    def __init__(self, configuration: Configuration, clock: Clock, rng: Rng, store: MetadataStore, sessions: Sessions) -> None:
        cluster = configuration.settings(ClusterSettings)
        self._cluster_name = configuration.settings(BrokerSettings).cluster_name
        ledgers = configuration.settings(BookKeeperSettings)
        self._ensemble_size = ledgers.managed_ledger_default_ensemble_size
        self._bundle_count = configuration.settings(BrokerSettings).default_number_of_namespace_bundles
        self._load = configuration.settings(LoadSettings)
        self._store, self._sessions, self._rng, self._clock = store, sessions, rng, clock
        timeout, use_version2 = cluster.bookkeeper_client_timeout_in_seconds, ledgers.bookkeeper_use_v2_wire_protocol
        tls = configuration.settings(BookKeeperSecuritySettings).tls(asyncio.get_running_loop().time)
        self._bookies = NetworkBookies(store, timeout, use_version2=use_version2, tls=tls)
        refusal = partial(self._bookies.publish_refusal, ledgers.managed_ledger_default_ack_quorum)
        self._parts = BrokerParts(configuration, self._bookies, store, clock, rng, refusal)
        self.server_settings = self._parts.server_settings
        self.service = self._parts.service
        self.security, self.tls, self.tls_settings = self._parts.security, self._parts.tls, self._parts.tls_settings
        self.coordinators, self.websockets = self._parts.coordinators, self._parts.websockets
        self.listener = self._parts.listener
        self._members: Members | None = None

    async def start(self) -> None:
        """Starts: checks the cluster's metadata first, and opens its own port last. BrokerFailed, MetadataError, OSError."""
        await check_cluster_name(self._store, self._cluster_name)
        try:
            await self._parts.ledgers.initialise()
        except LedgerError as error:
            raise BrokerFailed(str(error)) from error
        await self._bookies.open()
        try:
            await self._parts.ledgers.check_bookies()
        except LedgerError as error:
            self._check_read_only(error)
        await self._parts.listen()

    def _check_read_only(self, error: LedgerError) -> None:
        """Bookies whose disks are full are read, and will take entries again; with too few of any kind: BrokerFailed."""
        if self._bookies.count_known() < self._ensemble_size:
            raise BrokerFailed(
                f"managedLedgerDefaultEnsembleSize={self._ensemble_size}, and {len(self._bookies)} bookies are registered"
                f" ({', '.join(sorted(self._bookies)) or 'none'}; {error}): start more (`interpulse bookie`), or set it lower"
            ) from error
        log.warning(line("bookies are read-only: topics are read, and take no messages until that ends", reason=error))

    async def serve(self, web_port: int | None, web_port_tls: int | None = None) -> None:
        """Once it is known where the web server listens: others find the broker from now on. BrokerFailed."""
        advertised = self._parts.advertised(advertised_host(self.server_settings), web_port, web_port_tls)
        await initialise_missing_cluster(self._store, self._rng, self._cluster_name, self._bundle_count, advertised)
        listeners = parse_listeners(self.service.settings.advertised_listeners, advertised)
        data = broker_data(advertised, listeners, VERSION)
        self._members = Members(self._store, self._sessions, broker_id(advertised), data)
        bundles = NamespaceBundles(self._store, self._bundle_count)
        board = LoadBoard(self._store, self._clock)
        policies = PlacementPolicies(self._store, self._cluster_name, domains_enabled=self._load.failure_domains_enabled)
        chooser = ByLoad(board, policies, self._load.load_balancer_broker_overloaded_threshold_percentage / 100)
        owners = BundleOwnership(
            OwnNodes(self._store, self._sessions, ownership_data(advertised, listeners)),
            self._members,
            bundles,
            chooser if self._load.load_balancer_enabled else ByHash(board),
            self.service.lifecycle.close_topics,
            self.service.load.hand_over,
            refuses_connections,
        )
        try:
            await self._members.contest()
            await self.service.start(advertised, owners)
            await self._members.join()
        except MemberConflict as error:
            raise BrokerFailed(str(error)) from error
        if self._load.load_balancer_enabled:
            claim = leader_claim(self._store, self._sessions, self._members.own_id, advertised)
            around = LoadSurroundings(claim, self._members, bundles, board, policies, self._clock)
            self.service.load.start(load_driver(self.service, self._load, around))
        await self._parts.start_transactions(may_initialise=False)

    async def drain(self) -> None:
        """Takes no new bundles and gives its own up in turn. Clients that come meanwhile, for bundles that are still here or
        for the name of the next owner, are let in: a refused client would wait longer each time. Draining twice is fine."""
        await self.service.load.stop()
        if self._members is not None:
            await self._members.leave()
        await self.service.lookup.owners.close()

    async def stop(self) -> None:
        """Gives up all bundles, then refuses new connections and stops. Works after a start that failed, too."""
        await self.drain()
        await self._parts.stop()
        await self._bookies.close()


async def check_cluster_name(store: MetadataStore, name: str) -> None:
    """BrokerFailed when the metadata is that of another cluster; a store without any is new."""
    clusters = [cluster for cluster in await store.children("/admin/clusters") if cluster != "global"]
    if clusters and name not in clusters:
        raise BrokerFailed(f"clusterName={name}: the metadata has {', '.join(clusters)}; set clusterName to one of them")


async def initialise_missing_cluster(store: MetadataStore, rng: Rng, name: str, bundles: int, own: Advertised) -> None:
    """Writes the nodes of `interpulse initialize-cluster-metadata` where they are missing: the first broker does it."""
    if await store.exists(f"/admin/clusters/{name}"):
        return
    try:
        new = NewCluster(name, own.http_url, broker_service_url=own.broker_url, bundle_count=bundles)
        await ClusterMetadata(store, store, rng).initialise(new)
    except (ClusterRefused, LedgerError) as error:
        raise BrokerFailed(str(error)) from error


def advertised_host(settings: ServerSettings) -> str:
    """Under which host clients and other brokers find this one."""
    if settings.advertised_address or settings.bind_address not in ("0.0.0.0", "::", ""):
        return settings.known_as
    return socket.getfqdn()
