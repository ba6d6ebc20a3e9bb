"""The composition of a standalone: metadata, bookie, ledgers, managed ledgers, broker, on whatever ports it is given.

The same code runs as a process (`cli.standalone.main`) and in the simulation. Owns the order of start and stop, nothing else.
"""

import asyncio
import dataclasses
from collections.abc import Iterator
from functools import partial

from bookie.errors import BookieStartError
from bookie.server.local_reads import LocalCounts, LocalReads, begun_local_reads
from bookie.settings import BookieSettings
from bookie.striped_bookie import AnyBookie, lacks_room, make_bookie
from bookie.upkeep.garbage import GarbageCollector
from bookkeeper.ledger_metadata.paths import AVAILABLE, INSTANCE_ID, ROOT, ledger_path
from bookkeeper.ledgers import LedgerError
from broker.service.bookies_inside import BookieInside
from cli.broker.parts import BROKER_SETTINGS, BrokerParts
from cli.configuration.loading import Configuration
from cli.configuration.server_settings import ServerSettings
from metadata.store import MetadataStore
from ports.clock import Clock
from ports.disk.disk import Disk
from ports.rng import Rng

SETTINGS = (ServerSettings, BookieSettings, *BROKER_SETTINGS)
BOOKIE_ID = "127.0.0.1:3181"
"""Name of the one bookie in ledger metadata: Apache's standalone has its bookie there."""


class BookiesHere(dict[str, AnyBookie]):
    """The bookies of this process. Iterating gives those that take new entries; each is found by its name."""

    def __iter__(self) -> Iterator[str]:
        return (name for name, bookie in self.items() if not bookie.read_only_reason)

    def publish_refusal(self) -> str:
        """Refusal of the first of them that has one."""
        for bookie in self.values():
            if refusal := bookie.publish_refusal:
                return refusal
        return ""


class StandaloneFailed(Exception):
    """A standalone that cannot start; the message says why and what to do."""


class Standalone:
    """Everything but the web server, which the process adds. `start` once, `stop` once."""

    def __init__(
        self, configuration: Configuration, directory: str, disk: Disk, clock: Clock, rng: Rng, store: MetadataStore
    ) -> None:
        self.store = store
        self._bookie_settings = _in_directory(configuration.settings(BookieSettings), configuration, directory)
        self._make_bookie = partial(make_bookie, disk, self._bookie_settings, clock, rng)
        self._bookies = BookiesHere()
        self._collector: asyncio.Task[None] | None = None
        self._local_reads: LocalReads | None = None
        self._parts = BrokerParts(configuration, self._bookies, store, clock, rng, self._bookies.publish_refusal)
        self.server_settings = self._parts.server_settings
        self.managed_ledgers = self._parts.managed_ledgers
        self.service = self._parts.service
        self.security, self.tls, self.tls_settings = self._parts.security, self._parts.tls, self._parts.tls_settings
        self.coordinators, self.websockets = self._parts.coordinators, self._parts.websockets

    async def start(self) -> None:
        """Storage first; clients are let in last. StandaloneFailed."""
        try:
            await self._parts.ledgers.initialise()
            await self._start_bookie()
        except (LedgerError, BookieStartError) as error:
            raise StandaloneFailed(str(error)) from error
        await self._parts.listen()

    async def _start_bookie(self) -> None:
        """Starts the bookie. Its directories carry the cluster's instance, so that no other metadata are used with them."""
        instance = await self.store.get(INSTANCE_ID)
        bookie = self._make_bookie(instance_id="" if instance is None else instance.value.decode())
        await bookie.start()
        self._bookies[BOOKIE_ID] = bookie
        await self.store.put(f"{AVAILABLE}/{BOOKIE_ID}", b"", ephemeral=True)  # tools that list the bookies find it
        settings = self._bookie_settings
        collector = GarbageCollector(
            bookie,
            self.store,
            ledger_path,
            ROOT,
            settings.gc_wait_time / 1000,
            lacks_room=partial(lacks_room, bookie),
            forces_when_full=settings.is_force_gc_allow_when_no_space,
        )
        self._collector = asyncio.create_task(collector.run(), name="bookie garbage collection")

    def hand_over_files(self) -> None:
        """Serves files of entries to local readers whom the admin REST lets, if the settings allow that, after the start.

        By itself, since these are sockets of the machine: a simulated one has none.
        """
        counts = LocalCounts()
        self._local_reads = reads = begun_local_reads(self._bookies[BOOKIE_ID], self._bookie_settings, counts)
        if reads is not None:
            self.service.bookies_inside[BOOKIE_ID] = BookieInside(*reads.told, lambda: counts.local_entries)

    async def serve(self, web_port: int | None, web_port_tls: int | None = None) -> None:
        """Once it is known where the web server listens."""
        advertised = self._parts.advertised(self.server_settings.known_as, web_port, web_port_tls)
        await self.service.bootstrap_standalone(advertised)
        await self.service.start(advertised)
        await self._parts.start_transactions(may_initialise=True)

    async def stop(self) -> None:
        """Stops: new connections are refused, topics are unloaded and their marks written, then the storage is closed."""
        await self._parts.stop()
        if self._collector is not None:
            self._collector.cancel()
            await asyncio.wait([self._collector])
        if self._local_reads is not None:
            await self._local_reads.close()
        for bookie in self._bookies.values():
            await bookie.stop()


def _in_directory(settings: BookieSettings, configuration: Configuration, directory: str) -> BookieSettings:
    """The bookie's directories below the data directory, unless the configuration names others."""
    given = set(configuration.values)
    if not given & {"journalDirectory", "journalDirectories"}:
        settings = dataclasses.replace(settings, journal_directories=(f"{directory}/bookkeeper/journal",))
    if not given & {"ledgerDirectories"}:
        settings = dataclasses.replace(settings, ledger_directories=(f"{directory}/bookkeeper/ledgers",))
    return settings
