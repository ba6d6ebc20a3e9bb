"""Bookie: one storage node, as `bookkeeper.ports.BookieClient` describes it and as the composition root starts and stops it.

An add: key and fence are checked, the run goes into the memtable, then into the journal; its future is done after the
journal's fsync. A fence or a read therefore finds every acknowledged entry.
Bounds: two memtables (dbStorage_writeCacheMaxSizeMb); when both are full, adds wait for a flush, in order, up to as many bytes
again, and beyond that are refused with ETOOMANYREQUESTS. Reads of entry logs wait for one of maxReadsInProgressLimit.
A disk that is full or fails makes the bookie read-only: adds get EREADONLY, reads go on.
"""

import asyncio
import errno
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bookie.adds.admission import SMALL_RECORD_BYTES, Admission
from bookie.adds.flusher import Flusher
from bookie.adds.stored_again import StoredAgain
from bookie.disk_space.disk_watch import fitted
from bookie.disk_space.full_disk import FullDisk
from bookie.disk_space.health import FORCED, JOURNAL, LOST, STOPPED, STORAGE, Health
from bookie.journal.format_v1 import LedgerFenced, Record
from bookie.journal.journal import Journal
from bookie.ledgers import Ledgers, LedgerState
from bookie.ranges import joined_ranges
from bookie.reads.log_reads import LogReads
from bookie.reads.placed_entries import PlacedEntries, placed_entries
from bookie.reads.reading import last_add_confirmed, pick_tables
from bookie.reads.run_reads import RunReads
from bookie.settings import MEGABYTE, BookieSettings
from bookie.sizes import Sizes
from bookie.start.cookie import claim_directories
from bookie.start.limbo import find_loss, forget_loss
from bookie.start.replaying import replay
from bookie.storage.read_ahead import ReadAhead
from bookie.storage.storage import CHECKPOINT, LedgerStorage
from bookie.upkeep.upkeep import Upkeep
from ports.clock import Clock
from ports.disk.disk import Disk
from ports.disk.disk_usage import DiskUsage
from ports.logs import line
from ports.loop.promise import promises
from ports.rng import Rng
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryMix, EntryRun
from wire.run_parts import is_what_it_says

if TYPE_CHECKING:
    from bookie.upkeep.compactor import Compactor
    from bookie.upkeep.scrub import Scrub

log = logging.getLogger("bookie")


class Bookie:
    """A bookie on one journal and one ledger directory. Belongs to one event loop."""

    def __init__(
        self,
        disk: Disk,
        settings: BookieSettings,
        clock: Clock,
        rng: Rng,
        *,
        instance_id: str = "",
        stripe: tuple[int, int] = (0, 1),
        was_known: bool = False,
    ) -> None:
        """`stripe`: which of how many pairs of directories this is on (`bookie.stripes`). `was_known`: see `find_loss`."""
        assert len(settings.journal_directories) == len(settings.ledger_directories) == 1, "StripedBookie is for more"
        self._disk = disk
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._instance_id = instance_id
        self._stripe = stripe
        self._was_known = was_known
        self.needs_limbo = False  # something is lost: `enter_limbo` must be called before anybody is answered
        self._ledgers = Ledgers()
        self._storage: LedgerStorage
        self._log_reads: LogReads
        self._run_reads: RunReads
        self._upkeep: Upkeep
        self._stored_again: StoredAgain
        self._full_disk: FullDisk
        self._journal: Journal
        self._flusher: Flusher
        self._admission: Admission
        self.deleted_ledgers = 0
        """Since the start."""
        directories = (settings.journal_directory, settings.ledger_directory)
        self.health = Health(
            disk, settings, directories, lambda: self._admission.refuse_waiting(), lambda: self._flusher.pending_bytes
        )
        self._read_only = self.health.reasons
        self._loop = asyncio.get_running_loop()
        self._promise = promises(self._loop)

    # Life

    async def start(self) -> None:
        """Check the owner of the directories, load stored ledgers, replay the journal. BookieStartError: it must not run."""
        self.needs_limbo = await find_loss(self._disk, self._settings, was_known=self._was_known)
        where = (self._settings.journal_directory, self._settings.ledger_directory, CHECKPOINT)
        cookie, new = await claim_directories(self._disk, *where, self._instance_id, self._rng, self._stripe)
        settings = await self._fit_to_disks()
        if new:
            await self._storage.create()
        self._ledgers.load(await self._storage.load())
        for state in self._ledgers.all():
            state.suspect = self._storage.suspect
        if settings.local_consistency_check_on_startup:
            from bookie.upkeep.scrub import check_consistency

            await check_consistency(self._storage, settings.ledger_directory)
        journal_at = (self._disk, settings.journal_directory, cookie.secret)
        self._journal = Journal(*journal_at, settings, self._on_journal_failed)
        self._full_disk = FullDisk(self.health, self._journal, self._storage)
        self._flusher = Flusher(
            self._storage,
            self._ledgers,
            self._journal,
            table_bytes_max=settings.table_bytes_max,
            journal_bytes_max=settings.journal_max_size_mb * MEGABYTE,
            interval_seconds=settings.flush_interval / 1000,
            on_flushed=self._on_flushed,
        )
        self._run_reads = RunReads(self._storage, self._flusher, self._log_reads)
        waiting_bytes_max = settings.table_bytes_max * 2
        self._admission = Admission(self._ledgers, self._flusher, self._journal, self.health, waiting_bytes_max)
        self._stored_again = StoredAgain(self.read, self._flusher, self._journal)
        await replay(self._journal, self._storage, self._ledgers, self._flusher, self.health, lost=self.needs_limbo)
        self._flusher.start()
        if not settings.journal_sync_data:
            log.warning(line("journalSyncData=false is not followed: an add is acknowledged after fsync, always"))
        del self._read_only[STOPPED]
        if settings.force_read_only_bookie:
            self.health.turn_read_only(FORCED, "forceReadOnlyBookie=true")
        await self.health.check_usage()
        self.health.start(self._full_disk.on_checked)
        self._upkeep.start()

    async def _fit_to_disks(self) -> BookieSettings:
        """Fit the settings to the disks, and make what depends on them."""
        given = self._settings
        journal, ledgers = [await self._disk.usage(path) for path in (given.journal_directory, given.ledger_directory)]
        self._settings = settings = self.health.settings = fitted(given, journal.total_bytes, ledgers.total_bytes)
        self._storage = LedgerStorage(self._disk, settings.ledger_directory, settings)
        self._log_reads = LogReads(self._storage, settings.reads_in_progress_max, self._known)
        self._upkeep = Upkeep(self._storage, settings, self._clock, lambda: self.health.room, self.rewrite)
        return settings

    async def stop(self) -> None:
        """Journal the admitted adds, flush them, close. A start after this replays nothing. Stopping twice is fine."""
        if STOPPED in self._read_only:
            return
        self._read_only[STOPPED] = "stopped"
        self._admission.refuse_waiting()
        await self.health.stop()
        await self._upkeep.stop()
        await self._journal.stop()
        try:
            if STORAGE in self._read_only:
                raise OSError(errno.EIO, self._read_only[STORAGE])
            await self._flusher.flush(last=self._journal.failure is None)
        except OSError as error:
            log.error(line("bookie stopped without a flush; the next start replays the journal", error=error))
        await self._flusher.stop()
        await self._storage.close()

    async def until_it_must_end(self) -> None:
        """Returns when the bookie is read-only and may not be (readOnlyModeEnabled=false): the process has to end."""
        await self.health.must_end.wait()

    @property
    def stripes(self) -> "tuple[Bookie, ...]":
        return (self,)

    # BookieClient

    def add(self, run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        """See `BookieClient.add`. The run's buffer is shared from now on and must not change any more."""
        future: asyncio.Future[None] = self._promise()
        if recovery and self.health.lacks_disk and not self.health.takes_recovery:
            self._stored_again.answer(run, future, lambda: self._admission.add(run, master_key, recovery, future))
        else:
            self._admission.add(run, master_key, recovery, future)
        return future

    def mixing_for(self, ledger_id: int) -> "Bookie":
        """See `MixingBookie.mixing_for`."""
        return self

    @property
    def writable_ledgers(self) -> Mapping[int, bytes]:
        """Ledgers that a mix of adds may name, with their master keys; none while adds are refused. Good for this turn."""
        return self._admission.writable_ledgers

    def add_mix(self, mix: EntryMix, master_key: bytes) -> "asyncio.Future[None]":
        """Add entries of `writable_ledgers` with this key. NotAsOne: one is no longer writable; nothing is stored."""
        future: asyncio.Future[None] = self._promise()
        self._admission.add_mix(mix, master_key, future)
        return future

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """See `BookieClient.read`."""
        return await self._run_reads.read(self._known(ledger_id), first_entry_id, count_max, bytes_max)

    async def pick(self, wanted: Sequence[tuple[int, Sequence[int]]], bytes_max: int) -> list[EntryRun]:
        """See `PickingBookie.pick`."""
        known = [each for each in wanted if each[0] in self._ledgers]
        found, stored = pick_tables(self._flusher.tables, known, bytes_max)
        left = bytes_max - sum(run.size_bytes for run in found)
        return [run for run in (*found, *await self._log_reads.pick(stored, left)) if is_what_it_says(run)]

    async def placed(self, ledger_id: int, ranges: Sequence[tuple[int, int]]) -> list[PlacedEntries]:
        """Places of the entries of each [first, end) that can be read from entry logs. ENOLEDGER."""
        self._known(ledger_id)
        return await placed_entries(self._storage, self._flusher.tables, ledger_id, ranges)

    async def fence(self, ledger_id: int, master_key: bytes) -> bytes:
        """See `BookieClient.fence`. The fence is durable before this answers, whatever the answer."""
        await self.ensure_fenced(ledger_id, master_key)
        last = await self.last_entry_id(ledger_id)
        return b"" if last < 0 else bytes((await self.read(ledger_id, last, 1, 1)).first_entry)

    async def ensure_fenced(self, ledger_id: int, master_key: bytes) -> None:
        """Refuse further adds; done when that is on disk, so at once when it is already. ENOLEDGER when deleted; EUA."""
        if self._ledgers.was_deleted(ledger_id):
            raise BookieError(BookieCode.ENOLEDGER, ledger_id, "deleted")
        self.claim(ledger_id, master_key, "at fence")
        state = self._known(ledger_id)
        if state.fence_is_durable:
            return
        self._ledgers.fence(ledger_id)
        future: asyncio.Future[None] = self._loop.create_future()
        self._journal.append(LedgerFenced(ledger_id), SMALL_RECORD_BYTES, future)
        await future
        state.fence_is_durable = True

    def claim(self, ledger_id: int, master_key: bytes, what: str) -> None:
        """Make a ledger that is not known, with this key, as an add does. EUA: another key; EFENCED: deleted."""
        refusal = self._ledgers.refusal(ledger_id, master_key, recovery=True)
        if refusal is not None:
            raise BookieError(refusal, ledger_id, what)
        self._admission.ensure(ledger_id, master_key)

    async def last_add_confirmed(self, ledger_id: int) -> int:
        """Last add confirmed in the last entry's header; -1 when there is no entry. ENOLEDGER, EIO."""
        last = await self.last_entry_id(ledger_id)
        return -1 if last < 0 else last_add_confirmed(await self.read(ledger_id, last, 1, 1))

    async def last_entry_id(self, ledger_id: int) -> int:
        """See `BookieClient.last_entry_id`."""
        self._need_whole(ledger_id)
        in_tables = max(table.last_entry_id(ledger_id) for table in self._flusher.tables)
        return max(in_tables, self._storage.index.last_entry_id(ledger_id))

    def entry_ranges(self, ledger_id: int) -> list[tuple[int, int]]:
        """First and last of each unbroken sequence of entries, ascending. ENOLEDGER, EUNKNOWNLEDGERSTATE."""
        self._need_whole(ledger_id)
        return self.held_ranges(ledger_id)

    def held_ranges(self, ledger_id: int) -> list[tuple[int, int]]:
        """Ranges of the entries that are here, whatever else may be lost."""
        in_tables = [part for table in self._flusher.tables for part in table.ranges_of(ledger_id)]
        return joined_ranges([*in_tables, *self._storage.index.ranges_of(ledger_id)])

    async def usage(self) -> DiskUsage:
        """Usage of the disk with the entry logs. OSError."""
        return await self._disk.usage(self._settings.ledger_directory)

    async def usages(self) -> dict[str, DiskUsage]:
        """Usage of disks by directory. OSError."""
        return {self._settings.ledger_directory: await self.usage()}

    # Keeping house

    @property
    def read_only_reason(self) -> str:
        """Why adds are refused; empty: they are not."""
        return self.health.reason

    @property
    def publish_refusal(self) -> str:
        return self.health.publish_refusal

    def ledger_ids(self) -> list[int]:
        """Ids of the ledgers stored here, ascending."""
        return self._ledgers.live_ids()

    @property
    def scrub(self) -> "Scrub":
        return self._upkeep.scrub

    @property
    def compactor(self) -> "Compactor":
        return self._upkeep.compactor

    async def rewrite(self, run: EntryRun) -> None:
        """Store entries of a known ledger again, from a good copy. Durable when this returns; BookieError."""
        await self.add(run, self._known(run.ledger_id).master_key, recovery=True)

    async def flush(self) -> None:
        """Move the entries of the memtables to the entry logs. OSError."""
        await self._flusher.flush()

    def limbo_ids(self) -> list[int]:
        """Ids of the ledgers in limbo, ascending."""
        return self._ledgers.limbo_ids()

    async def enter_limbo(self, ledger_ids: Iterable[int]) -> None:
        """`ledger_ids`: every ledger whose metadata names this bookie. Durable when this returns; OSError."""
        self._ledgers.enter_limbo(ledger_ids)
        await self._flusher.flush()
        await forget_loss(self._disk, self._settings)
        self.needs_limbo = False
        self.health.turn_writable(LOST)

    async def leave_limbo(self, ledger_ids: Iterable[int]) -> None:
        """Take these ledgers out of limbo: all their entries are here again. OSError."""
        for ledger_id in ledger_ids:
            self._ledgers.leave_limbo(ledger_id)
        await self._flusher.flush()

    async def compact(self, forced: str | None = None) -> None:
        """Compact entry logs if that is due, or what is `forced`: "major" or "minor"."""
        await (self.compactor.run_if_due() if forced is None else self.compactor.run(forced))

    @property
    def journal(self) -> Journal:
        """Journal, for metrics."""
        return self._journal

    def read_cache(self) -> ReadAhead:
        """Cache of reads, for metrics."""
        return self._storage.ahead

    def sizes(self) -> Sizes:
        """Sizes, for metrics."""
        return Sizes(
            len(self.ledger_ids()),
            self._flusher.pending_bytes,
            self._journal.written_bytes,
            self._journal.durable.sequence,
            self._storage.uses(),
            sum(span.count for span in self._storage.index.all_spans()),
            len(self._admission.waiting),
            self._log_reads.under_way,
            self._log_reads.waiting,
        )

    def at_rest(self, ledger_id: int) -> int | None:
        """A number that is another one once something of it was written; None: some of it is in memory only."""
        is_written = any(table.last_entry_id(ledger_id) >= 0 for table in self._flusher.tables)
        return None if is_written else self._storage.index.state_of(ledger_id)

    async def delete(self, ledger_ids: Iterable[int], *, are_elsewhere: bool = False) -> None:
        """Forget ledgers whose metadata is provably gone, or names others only; remove logs that hold nothing else. OSError."""
        now_ms = self._clock.now_ms()
        self._ledgers.expire_tombstones(now_ms)
        for ledger_id in ledger_ids:
            if ledger_id in self._ledgers:
                self.deleted_ledgers += 1
                self._ledgers.delete(ledger_id, now_ms, is_elsewhere=are_elsewhere)
                self._storage.forget(ledger_id)
                for table in self._flusher.tables:
                    table.forget(ledger_id)
        try:
            await self._flusher.flush()
        except OSError as error:
            await self._full_disk.drop_dead_logs(error)

    # Reads

    def _known(self, ledger_id: int) -> LedgerState:
        state = self._ledgers.get(ledger_id)
        if state is None:
            raise BookieError(BookieCode.EUNKNOWNLEDGERSTATE if self.needs_limbo else BookieCode.ENOLEDGER, ledger_id)
        return state

    def _need_whole(self, ledger_id: int) -> None:
        if not self._known(ledger_id).is_whole:
            raise BookieError(BookieCode.EUNKNOWNLEDGERSTATE, ledger_id, "some of it may be lost")

    # Health

    def _on_journal_failed(self, error: OSError, lost: list[Record]) -> bool:
        self.health.turn_read_only(JOURNAL, str(error))
        self.health.look_now()
        return self._flusher.forget_lost(lost)

    def _on_flushed(self, error: OSError | None) -> None:
        if error is not None:
            self.health.turn_read_only(STORAGE, str(error))
        else:
            self.health.turn_writable(STORAGE)
            self._admission.admit_waiting()
