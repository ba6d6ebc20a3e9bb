"""ManagedLedgerFactory: opens managed ledgers, once per name, and owns what they share.

Opening reads the node and writes it as it is (or makes it: a new topic costs one metadata write), so that no earlier owner can
list a ledger, recovers the last ledger so that no earlier owner can append to it, and recovers each cursor, whose node is
written too. The next ledger is made by the first append.
"""

import asyncio
from collections.abc import Callable, Iterator

from bookkeeper.ledgers import LedgerError, LedgerReader, LedgerStore
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, MetadataStore, Put, Stat, Versioned, absent
from ports.clock import Clock
from ports.loop.side_by_side import all_tried

from .append.entry_metadata import EntryMetadata
from .cache.entry_cache import EntryCache
from .cache.reads_in_flight import ReadsInFlight
from .contract import ManagedLedger
from .cursor.cursor_driver import DurableCursor
from .errors import ManagedLedgerError, ManagedLedgerExcluded, ManagedLedgerNotFound, NonRecoverableLedger
from .ledgers.info import ListedLedger, decode_info
from .ledgers.metadata_driver import ROOT, LogMetadata
from .ledgers.sequence import LedgerSequence
from .managed_ledger_driver import StoredManagedLedger
from .meters import CursorFacts, LedgerMeters, SharedMeters
from .settings import MEGABYTE, ManagedLedgerSettings
from .skipping import Skipping, remedy
from .surroundings import Surroundings

OPEN_ATTEMPTS_MAX = 5
"""Each further one means that another broker wrote the log's node meanwhile."""


class ManagedLedgerFactory:
    """Satisfies `managed_ledger.contract.ManagedLedgers`.

    `excluding_path` gives, of the name of one that is to be made, the node beside which it must never be; None: there is none.
    """

    def __init__(
        self,
        ledgers: LedgerStore,
        store: MetadataStore,
        settings: ManagedLedgerSettings,
        clock: Clock,
        excluding_path: Callable[[str], str | None] = lambda name: None,
    ) -> None:
        self._store = store
        self._excluding_path = excluding_path
        self._ledgers = ledgers
        self._cache = EntryCache(
            settings.managed_ledger_cache_size_mb * MEGABYTE,
            settings.managed_ledger_cache_eviction_time_threshold_millis / 1000,
            self._plan_eviction,
            settings.managed_ledger_cache_eviction_watermark,
            ReadsInFlight(
                settings.managed_ledger_max_reads_in_flight_size_in_mb * MEGABYTE,
                settings.managed_ledger_max_reads_in_flight_permits_acquire_queue_size,
            ),
        )
        self._around = Surroundings(ledgers, store, settings, clock, self._cache)
        self._eviction: asyncio.TimerHandle | None = None
        self._opened: dict[str, asyncio.Task[StoredManagedLedger] | StoredManagedLedger] = {}
        """Managed ledgers by name; those that are being opened as tasks."""
        self._is_closed = False

    @property
    def skipping(self) -> Skipping:
        """Counts of things skipped because settings say so."""
        return self._around.skipping

    @property
    def ledger_store(self) -> LedgerStore:
        return self._ledgers

    @property
    def cached_bytes(self) -> int:
        return self._cache.size_bytes

    @property
    def cache_evictions(self) -> int:
        return self._cache.evictions

    @property
    def count(self) -> int:
        """Number of managed ledgers that are open or being opened."""
        return len(self._opened)

    @property
    def meters(self) -> SharedMeters:
        """Meters of all of them together."""
        return self._around.meters

    def reads_in_flight_bytes(self) -> tuple[int, int]:
        """On their way into memory, and how much more may be; -1 each where there is no bound."""
        in_flight = self._cache.in_flight
        return (in_flight.size_bytes, in_flight.bytes_max - in_flight.size_bytes) if in_flight.bytes_max else (-1, -1)

    def meters_of(self, name: str) -> LedgerMeters | None:
        """None: it is not open."""
        ledger = self._if_open(name)
        return None if ledger is None else ledger.meters

    def cursors_of(self, name: str) -> Iterator[tuple[str, CursorFacts]]:
        """Durable cursors of a managed ledger, one by one as they are asked for; none where it is not open."""
        ledger = self._if_open(name)
        for cursor in () if ledger is None else list(ledger.cursors.values()):
            if isinstance(cursor, DurableCursor):
                yield cursor.name, CursorFacts(cursor.meters, cursor.hole_stats().ranges)

    def _if_open(self, name: str) -> StoredManagedLedger | None:
        found = self._opened.get(name)
        return found if isinstance(found, StoredManagedLedger) else None

    async def open(self, name: str, *, create: bool = True) -> ManagedLedger:
        while True:
            if self._is_closed:
                raise ManagedLedgerError(f"{name}: the broker's managed ledgers are closed")
            task = self._opened.get(name)
            is_others = task is not None
            if task is None:
                task = self._opened[name] = asyncio.get_running_loop().create_task(self._open(name, create))
                task.add_done_callback(lambda done: self._open_ended(name, done))
            try:
                ledger = task if isinstance(task, StoredManagedLedger) else await asyncio.shield(task)
            except ManagedLedgerNotFound:
                if create and is_others:
                    continue  # who asked first did not want it made
                raise
            finally:
                del task  # an error of it has this frame in its traceback: together they would stay
            if not ledger.is_closing:
                return ledger
            await ledger.ended()

    async def exists(self, name: str) -> bool:
        try:
            return await self._store.exists(ROOT + name)
        except MetadataError as error:
            raise ManagedLedgerError(f"{name}: {error}") from error

    async def close(self) -> None:
        """Close all open managed ledgers, at once. The first failure is raised after all were tried."""
        self._is_closed = True
        failures = await all_tried([_close_opened(task) for task in self._opened.values()])
        if self._eviction is not None:
            self._eviction.cancel()
        if failures:
            raise failures[0]

    # opening

    def _open_ended(self, name: str, task: "asyncio.Task[StoredManagedLedger]") -> None:
        if self._opened.get(name) is not task:
            return  # closed meanwhile
        if task.cancelled() or task.exception() is not None:
            del self._opened[name]
        else:
            self._opened[name] = task.result()

    def _forget(self, ledger: StoredManagedLedger) -> None:
        self._opened.pop(ledger.name, None)

    async def _open(self, name: str, create: bool) -> StoredManagedLedger:
        try:
            for _ in range(OPEN_ATTEMPTS_MAX):
                found = await self._store.get(ROOT + name)
                opened = await (self._create(name, create) if found is None else self._take_over(name, found))
                if opened is not None:
                    return opened
        except MetadataError as error:
            raise ManagedLedgerError(f"{name}: {error}") from error
        raise ManagedLedgerError(f"{name}: others write its metadata all the time")

    async def _create(self, name: str, create: bool) -> StoredManagedLedger | None:
        """Make the managed ledger; None when another client was faster."""
        if not create:
            raise ManagedLedgerNotFound(f"{name} does not exist")
        excluding = self._excluding_path(name)
        alone = absent(excluding) if excluding is not None else ()
        try:
            *_, stat = await self._store.commit([*alone, Put(ROOT + name, b"", MUST_NOT_EXIST)])
        except BadVersion:
            if excluding is not None and await self._store.exists(excluding):
                raise ManagedLedgerExcluded(f"{name} cannot be made: {excluding} is there") from None
            return None
        assert stat is not None
        return self._built(name, Versioned(b"", stat), LedgerSequence())

    async def _take_over(self, name: str, found: Versioned) -> StoredManagedLedger | None:
        """Write the node as it is, for a new version: a former owner that does not know of its end can list no further
        ledger, which this owner would not see until its first append (Apache lists a new one here). None: it just did."""
        stat = await self._rewritten(ROOT + name, found)
        return None if stat is None else await self._load(name, Versioned(found.value, stat))

    def _built(self, name: str, found: Versioned, sequence: LedgerSequence) -> StoredManagedLedger:
        entries = self._entry_metadata()
        own_properties = dict if entries is None else entries.properties
        compression = self._around.settings.ledger_info_compression
        metadata = LogMetadata(self._store, name, found, sequence, compression, own_properties)
        return StoredManagedLedger(self._around, metadata, self._forget, entries)

    def _entry_metadata(self) -> EntryMetadata | None:
        settings = self._around.settings
        if not settings.broker_entry_metadata_interceptors:
            return None
        return EntryMetadata(
            self._around.clock, has_timestamp=settings.stamps_broker_timestamp, has_index=settings.stamps_index
        )

    async def _load(self, name: str, found: Versioned) -> StoredManagedLedger:
        info = decode_info(name, found.value)
        sequence = LedgerSequence()
        listed = [ledger for ledger in info.ledgers if not ledger.is_deleting]
        recovered: list[LedgerReader | None] = []
        for each in listed:
            if each is listed[-1] or each.entries is None:
                recovered.append(await self._recover(name, sequence, each))
            else:
                sequence.add_closed(each.ledger_id, each.entries, each.size_bytes, each.closed_at_ms)
        ledger = self._built(name, found, sequence)
        for reader in filter(None, recovered):
            ledger.take_recovered(reader)
        await ledger.load_entry_metadata()
        children = await self._store.children(ROOT + name)
        failures = await all_tried(self._load_cursor(ledger, child) for child in children)
        if failures:
            raise failures[0]
        return ledger

    async def _load_cursor(self, ledger: StoredManagedLedger, name: str) -> None:
        """Load a cursor; its node is written unchanged, so that an earlier owner answers no acknowledgement unknown here."""
        path = f"{ROOT}{ledger.name}/{name}"
        for _ in range(OPEN_ATTEMPTS_MAX):
            node = await self._store.get(path)
            if node is None:
                return
            stat = await self._rewritten(path, node)
            if stat is not None:
                await ledger.load_cursor(name, Versioned(node.value, stat))
                return
        raise ManagedLedgerError(f"{ledger.name}: others write its cursor {name} all the time")

    async def _rewritten(self, path: str, found: Versioned) -> Stat | None:
        """Write the same value, for a new version. None: another client has just written it."""
        try:
            return await self._store.put(path, found.value, found.stat.version)
        except BadVersion:
            return None

    async def _recover(self, name: str, sequence: LedgerSequence, ledger: ListedLedger) -> LedgerReader | None:
        """Fence and close the last one, whatever the list says of it, and one before it of which the list has no end.

        None: it cannot be had, and is to be skipped. The next write of the list leaves it out.
        """
        try:
            reader = await self._ledgers.open(ledger.ledger_id)
        except LedgerError as error:
            if self._around.skipping.skips_ledger(name, ledger.ledger_id, error):
                return None
            what = f"{name}: ledger {ledger.ledger_id} could not be recovered: {error}; {remedy(error)}"
            raise NonRecoverableLedger(what) from error
        now_ms = ledger.closed_at_ms or self._around.clock.now_ms()
        sequence.add_closed(ledger.ledger_id, reader.last_entry_id + 1, reader.length_bytes, now_ms)
        return reader

    # the cache

    def _plan_eviction(self) -> None:
        """Plan the eviction of cached entries at the end of their time."""
        if self._eviction is None:
            at = self._cache.next_eviction_at()
            if at is not None:
                self._eviction = asyncio.get_running_loop().call_at(at, self._evict)

    def _evict(self) -> None:
        self._eviction = None
        self._cache.evict(asyncio.get_running_loop().time())
        self._plan_eviction()


async def _close_opened(opened: "asyncio.Task[StoredManagedLedger] | StoredManagedLedger") -> None:
    try:
        ledger = opened if isinstance(opened, StoredManagedLedger) else await opened
    except (ManagedLedgerError, asyncio.CancelledError):
        return  # it was never open, and who asked for it knows
    await ledger.close()
