"""The composition of a bookie: its storage, its port, its place in the cluster's metadata. Owns the order of start and stop.

Metadata is handed in, so that the same code runs on ZooKeeper, on the embedded store and in tests.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from bookie.server.listener import BookieListener
from bookie.server.local_reads import LocalReads, begun_local_reads
from bookie.server.registration import STATE_SECONDS, BookieIdentity, Registration, check_cookie, store_cookie
from bookie.server.security.security import Security
from bookie.server.security.settings import BookieSecuritySettings
from bookie.server.settings import BookieServerSettings
from bookie.settings import BookieSettings
from bookie.striped_bookie import AnyBookie, is_in_use, lacks_room, make_bookie
from bookie.upkeep.garbage import GarbageCollector
from bookie.web.app import app_of, bookie_app, port_of, serve_bookie_web
from bookie.web.cluster_routes import ClusterRoutes
from bookie.web.disk_routes import DiskRoutes
from bookie.web.routes import BookieRoutes
from bookie.web.settings import BookieWebSettings, web_tls
from bookkeeper.ledger_metadata.layouts import LAYOUTS
from bookkeeper.ledger_metadata.paths import INSTANCE_ID, ROOT
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.repair.auto_recovery import AutoRecovery
from bookkeeper.repair.client import TIMEOUT_SECONDS, RepairClient
from bookkeeper.repair.settings import RepairSettings
from cli.bookie.peers import BookiePeers
from cli.bookie.places import ledgers_of_bookie
from cli.configuration.loading import Configuration
from metadata.sessions import Sessions
from metadata.store import MetadataStore
from ports.clock import Clock
from ports.disk.disk import Disk
from ports.logs import line
from ports.network.tls import RenewedTls
from ports.network.tls_port import TlsPort
from ports.rng import Rng

if TYPE_CHECKING:
    from cli.bookkeeper_cluster.web_cluster import WebCluster

SETTINGS = (BookieServerSettings, BookieSecuritySettings, BookieSettings, BookieWebSettings, RepairSettings)
log = logging.getLogger("interpulse")
LOOPBACK = ("127.", "::1", "localhost")


class BookieFailed(Exception):
    """A bookie that cannot start; the message says why and what to do."""


def advertised_host(settings: BookieServerSettings) -> str:
    """Under which host clients find the bookie; BookieFailed when only this machine could."""
    if settings.advertised_address:
        return settings.advertised_address
    name = socket.gethostname()
    try:
        host = name if settings.use_host_name_as_bookie_id else socket.gethostbyname(name)
        is_loopback = socket.gethostbyname(name).startswith(LOOPBACK)
    except OSError as error:
        raise BookieFailed(f"the host's name {name} has no address ({error}): set advertisedAddress") from error
    if is_loopback and not settings.allow_loopback:
        raise BookieFailed(f"{name} is {host}, which no other machine can reach: set advertisedAddress, or allowLoopback=true")
    return host


class BookieServer:
    """One bookie. `start` once, `stop` once; the caller that opened the store closes it."""

    def __init__(
        self, configuration: Configuration, disk: Disk, clock: Clock, rng: Rng, store: MetadataStore, sessions: Sessions
    ) -> None:
        self._settings = configuration.settings(BookieServerSettings)
        self._security_settings = configuration.settings(BookieSecuritySettings)
        self._bookie_settings = configuration.settings(BookieSettings)
        self._web_settings = configuration.settings(BookieWebSettings)
        self._repair_settings = configuration.settings(RepairSettings)
        self._configured = dict(configuration.values)
        self._disk, self._clock, self._rng = disk, clock, rng
        self._store, self._sessions = store, sessions
        self._tasks: list[asyncio.Task[None]] = []
        self.bookie: AnyBookie
        self.listener: BookieListener
        self._security: Security
        self.identity: BookieIdentity
        self._registration: Registration
        self._ledger_path: Callable[[int], str]
        self._peers: BookiePeers
        self._auto_recovery: AutoRecovery | None = None
        self._web: asyncio.Server | TlsPort | None = None
        self.web_tls: RenewedTls | None = None
        self._web_cluster: WebCluster | None = None
        self.routes: BookieRoutes
        """Routes of the bookie's HTTP, whether that is served or not."""
        self.cluster_routes: ClusterRoutes | None = None
        self._local_reads: LocalReads | None = None

    async def start(self) -> None:
        """Starts the parts: the owner of the directories is checked first, and the bookie is registered last.

        BadTls, BookieStartError, BookieFailed, LedgerError (the metadata is of another layout), MetadataError, OSError.
        """
        now = asyncio.get_running_loop().time
        self._security = Security(self._security_settings, now)
        self.web_tls = web_tls(self._web_settings, self._security_settings, now)
        registry = LedgerRegistry(self._store, self._rng, LAYOUTS)
        await registry.initialise()
        self._ledger_path = partial(registry.layout.path, ROOT)
        found = await self._store.get(INSTANCE_ID)
        instance_id = "" if found is None else found.value.decode()
        host = advertised_host(self._settings)
        port = self._settings.bookie_port or _free_port()
        self.identity = self._identity(host, port, instance_id)
        in_use = await is_in_use(self._disk, self._bookie_settings)
        may_be_lost = self._bookie_settings.allows_limbo
        has_cookie = await check_cookie(self._store, ROOT, self.identity, in_use=in_use or may_be_lost)
        self.bookie = make_bookie(
            self._disk, self._bookie_settings, self._clock, self._rng, instance_id=instance_id, was_known=has_cookie
        )
        await self.bookie.start()
        if self.bookie.needs_limbo:
            ledger_ids = await ledgers_of_bookie(self._store, registry.layout, self.identity.bookie_id)
            log.error(line("entries are lost: ledgers in limbo", count=len(ledger_ids)))
            await self.bookie.enter_limbo(ledger_ids)
        if not has_cookie:
            await store_cookie(self._store, ROOT, self.identity, has_ledgers=bool(self.bookie.ledger_ids()))
        settings, bookie_id, tls = self._bookie_settings, self.identity.bookie_id, self._security.peer_tls
        self._peers = BookiePeers(self.bookie, bookie_id, settings, self._store, registry, self._rng, tls)
        await self._serve(host, port)
        await self._peers.open()
        await self._start_auto_recovery()

    async def _start_auto_recovery(self) -> None:
        """Starts repairs of the cluster's ledgers under the bookie's name, beside serving its own."""
        settings = self._repair_settings
        if settings.auto_recovery_daemon_enabled:
            bookies = NetworkBookies(self._store, TIMEOUT_SECONDS, tls=self._security.peer_tls)
            client = RepairClient(self._store, settings, self._clock, self._rng, self.identity.bookie_id, bookies)
            self._auto_recovery = AutoRecovery(client, self._sessions)
            await self._auto_recovery.start()

    def _identity(self, host: str, port: int, instance_id: str) -> BookieIdentity:
        directories = self._bookie_settings
        return BookieIdentity(
            self._settings.bookie_id or f"{host}:{port}",
            host,
            port,
            directories.journal_directories,
            directories.ledger_directories,
            instance_id,
        )

    async def _serve(self, host: str, port: int) -> None:
        self.listener = BookieListener(self.bookie, self._settings, self._security)
        await self.listener.listen(host if host.startswith(LOOPBACK) else None, port)
        self._serve_local_reads()
        self._registration = Registration(self._store, self._sessions, ROOT, self.identity)
        await self._registration.start(self.bookie.read_only_reason)
        collector = GarbageCollector(
            self.bookie,
            self._store,
            self._ledger_path,
            ROOT,
            self._bookie_settings.gc_wait_time / 1000,
            lacks_room=partial(lacks_room, self.bookie),
            forces_when_full=self._bookie_settings.is_force_gc_allow_when_no_space,
        )
        self._tasks = [
            asyncio.create_task(collector.run(), name="bookie garbage collection"),
            asyncio.create_task(self._tell_state(), name="bookie state"),
        ]
        await self._serve_web(collector)

    def _serve_local_reads(self) -> None:
        reads = begun_local_reads(self.bookie, self._bookie_settings, self.listener.stats)
        self._local_reads, self.listener.operations.local_reads = reads, None if reads is None else reads.told

    async def _serve_web(self, collector: GarbageCollector) -> None:
        settings = self._web_settings
        listener, bookie_id = self.listener, self.identity.bookie_id
        routes = self.routes = BookieRoutes(
            self.bookie,
            collector,
            bookie_id,
            self._configured,
            lambda: listener.connection_count,
            listener.stats,
            self._repair_counters,
        )
        if settings.serves_metrics_alone:
            where = (settings.prometheus_stats_http_address, settings.prometheus_stats_http_port)
            self._web = await serve_bookie_web(app_of(routes.of_metrics()), *where)
        if settings.http_server_enabled:
            from cli.bookkeeper_cluster.web_cluster import WebCluster  # not for those without HTTP

            self._web_cluster = WebCluster(self._store, bookie_id, self._security.peer_tls)
            self.cluster_routes = ClusterRoutes(self._web_cluster)
            groups = (routes, DiskRoutes(self._disk, self._bookie_settings), self.cluster_routes)
            where = (settings.http_server_host, settings.http_server_port)
            self._web = await serve_bookie_web(bookie_app(*groups), *where, self.web_tls)

    def _repair_counters(self) -> Mapping[str, int]:
        return {} if self._auto_recovery is None else self._auto_recovery.counters.values()

    @property
    def web_port(self) -> int | None:
        """Port of the bookie's HTTP, all routes or /metrics alone; None: no HTTP (httpServerEnabled, statsProviderClass)."""
        return None if self._web is None else port_of(self._web)

    async def _tell_state(self) -> None:
        while True:
            await asyncio.sleep(STATE_SECONDS)
            self._registration.state(self.bookie.read_only_reason)

    async def stop(self) -> None:
        """Clients are notified, admitted requests are answered, then the storage is closed."""
        if self._auto_recovery is not None:
            await self._auto_recovery.stop()
        await self._registration.stop()
        if self._web is not None:
            self._web.close()
        if self._web_cluster is not None:
            await self._web_cluster.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self.listener.close()
        if self._local_reads is not None:
            await self._local_reads.close()
        await self._peers.close()
        await self.bookie.stop()


def _free_port() -> int:
    """A free port. The number is a part of the bookie's name, which is needed before the bookie listens."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
