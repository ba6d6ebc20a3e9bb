"""LedgerStorage: entry logs, index, ledgers file and checkpoint of one ledger directory.

The order of a flush is what makes it safe: entries and their index synced, ledger states synced, then the checkpoint that
names them all and moves the journal mark. A crash before the last step leaves the old checkpoint, and the journal has the rest.
The mark never goes beyond what is in the logs, and never back (apache/bookkeeper#4740).
"""

import asyncio
import errno
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bookie.adds.memtable import Memtable
from bookie.errors import StorageDamaged
from bookie.journal.format_v1 import JournalMark
from bookie.ledgers import LedgerState
from bookie.settings import MEGABYTE, BookieSettings
from bookie.storage import files_v1 as form
from bookie.storage.block_v1 import BlockTable, DamagedBlock
from bookie.storage.files_v1 import Checkpoint, LogExtent
from bookie.storage.index import Index
from bookie.storage.log_file import LogFile, index_name, log_name, new_log
from bookie.storage.log_reader import LogReader
from bookie.storage.log_writer import LANE, LogWriter, Pause, next_turn
from bookie.storage.read_ahead import ReadAhead
from bookie.storage.small_files import TEMPORARY_SUFFIX, read_file, replace_file
from bookie.storage.span import Span
from bookie.upkeep.compaction_plan import LogUse
from ports.disk.disk import Disk
from ports.disk.kept_room import KeptRoom
from ports.logs import line
from wire.run import EntryRun

CHECKPOINT = "checkpoint"
COMPACTION_LANE = "compaction"
LEDGERS_BYTES_SLACK = 64 * 1024
"""A ledgers file is written anew when it is this much larger than twice what is live."""
KEPT_BYTES_MAX, KEPT_SHARE = 16 << 20, 64
"""A flush leaves so many bytes, or this part of the disk: journal and metadata go on (`ports.disk.kept_room`)."""
KEPT, KEPT_CHECKPOINT_BYTES_MAX = "kept-checkpoint", 1 << 20
log = logging.getLogger("bookie.storage")


@dataclass(frozen=True, slots=True)
class Flush:
    """Data that one flush makes durable; kept until it has succeeded."""

    table: Memtable
    mark: JournalMark
    changed: Sequence[LedgerState]
    gone: Sequence[int]
    journal_ended: bool = False
    """Nothing was journalled after the mark, and nothing will be in that file."""
    deleted: bool = False
    """Ledgers were deleted: logs may be dead."""


class Moved(Protocol):
    """Spans of a ledger that a compaction made one."""

    @property
    def ledger_id(self) -> int: ...
    @property
    def old(self) -> tuple[Span, ...]: ...
    @property
    def new(self) -> Span: ...


def ledgers_name(file_id: int) -> str:
    return f"{file_id:08x}.ledgers"


class LedgerStorage:
    """One directory. `load` first; then one flush at a time, reads at any time."""

    def __init__(self, disk: Disk, directory: str, settings: BookieSettings) -> None:
        self._disk = disk
        self._directory = directory
        self._direct = settings.db_storage_direct_io_entry_logger
        self._writer = LogWriter(disk, directory, settings.log_size_limit, direct=self._direct)
        cache_bytes = settings.db_storage_read_ahead_cache_max_size_mb * MEGABYTE
        self._reader = LogReader(
            disk,
            directory,
            files_max=settings.open_files_max,
            tables_bytes_max=cache_bytes // 2,
            direct=self._direct,
            ahead=ReadAhead(
                cache_bytes // 2,
                settings.db_storage_read_ahead_cache_batch_size,
                settings.db_storage_read_ahead_cache_batch_bytes_size,
            ),
        )
        self.checkpoint = Checkpoint()
        self.kept = KeptRoom(disk, directory, KEPT, piece_bytes_min=1, pieces_max=1, bytes_max=KEPT_CHECKPOINT_BYTES_MAX)
        """Room for a checkpoint: on a full disk a checkpoint must be written before a dead log may go."""
        self.index = Index()
        self._next_ledgers_file_id = 1
        self._ledgers_file_failed = False
        self._superseded: list[str] = []
        self._forgotten: set[int] = set()
        self._left_alone: set[int] = set()
        self._distrusted: set[tuple[int, int]] = set()
        """Log and offset of blocks in which only damaged entries are left to read."""
        self._changing = asyncio.Lock()
        """Held while the checkpoint and the files that it names are changed."""
        self.suspect = False
        """Some log and its index could not be read: entries may be missing from the index."""

    @property
    def ahead(self) -> ReadAhead:
        """Read-ahead: bytes read beyond a request, kept for the next."""
        return self._reader.ahead

    async def load(self) -> list[LedgerState]:
        """Read the checkpoint and the files that it names; remove others. Returns the stored ledger states."""
        self.checkpoint = await self._load_checkpoint()
        states = await self._load_states()
        await self._remove_leftovers()
        names = set(await self._disk.list_directory(self._directory))
        for extent in self.checkpoint.logs:
            if log_name(extent.log_id) not in names:
                log.error(line("entry log is missing, its entries cannot be read", file=log_name(extent.log_id)))
            self.index.insert_all(await self._load_index(extent))
        self.index.keep_only(state.ledger_id for state in states if not state.is_deleted)
        last = self.checkpoint.logs[-1] if self.checkpoint.logs else None
        self._writer.resume(self.checkpoint.next_log_id, last if last and log_name(last.log_id) in names else None)
        return states

    async def flush(self, job: Flush, states: Sequence[LedgerState], pause: Pause = next_turn) -> None:
        """Store a memtable and ledger states; `states` are all there are, for when the ledgers file is written anew.

        `pause` comes after each millisecond of work. OSError: nothing of it counts; call it again with the same job.
        """
        await self._need_room(job.table.size_bytes)
        async with self._changing:
            await self._flush(job, states, pause)

    async def _need_room(self, size_bytes: int) -> None:
        """ENOSPC, before anything is written: half an entry log is of no use, and takes what is kept for others."""
        usage = await self._disk.usage(self._directory)
        if size_bytes and usage.free_bytes < size_bytes + min(KEPT_BYTES_MAX, usage.total_bytes // KEPT_SHARE):
            raise OSError(errno.ENOSPC, "No space left on device for what is in memory", self._directory)

    async def _flush(self, job: Flush, states: Sequence[LedgerState], pause: Pause) -> None:
        for _ in job.table.sort_steps():
            await pause()
        known = {state.ledger_id for state in states if not state.is_deleted}
        self._forgotten.clear()
        extents, spans = await self._writer.write(
            ((ledger_id, runs) for ledger_id, runs in job.table.sorted_ledgers() if ledger_id in known), pause
        )
        logs = {extent.log_id: extent for extent in (*self.checkpoint.logs, *extents)}
        file_id, size = await self._store_states(job, states)
        mark = max(job.mark, self.checkpoint.mark)
        ended = job.journal_ended or (self.checkpoint.journal_ended and mark == self.checkpoint.mark)
        await self._store_checkpoint(Checkpoint(mark, ended, self._writer.next_log_id, file_id, size, tuple(logs.values())))
        self.index.insert_all((ledger_id, span) for ledger_id, span in spans if ledger_id not in self._forgotten)

    def forget(self, ledger_id: int) -> None:
        """The ledger was deleted; a flush that is under way will not bring it back."""
        self.index.forget(ledger_id)
        self._forgotten.add(ledger_id)

    async def drop_dead_logs(self) -> list[int]:
        """Remove the logs, the last one apart, that hold no entry of a live ledger; their ids."""
        async with self._changing:
            alive = self.index.log_ids() | self._left_alone
            dead = [extent.log_id for extent in self.checkpoint.logs[:-1] if extent.log_id not in alive]
            if dead:
                logs = tuple(extent for extent in self.checkpoint.logs if extent.log_id not in dead)
                await self._store_checkpoint(replace(self.checkpoint, logs=logs))
                await self._remove_logs(dead)
            return dead

    # For compaction

    def uses(self) -> list[LogUse]:
        """Uses of the logs that may be compacted, in the order in which they overrule each other."""
        blocks = {(span.log_id, span.offset): span.size_bytes for span in self.index.all_spans()}
        live: dict[int, int] = {}
        for (log_id, _), size in blocks.items():
            live[log_id] = live.get(log_id, 0) + size
        extents = [extent for extent in self.checkpoint.logs[:-1] if extent.log_id not in self._left_alone]
        return [LogUse(extent.log_id, extent.log_bytes, live.get(extent.log_id, 0)) for extent in extents]

    def leave_alone(self, log_id: int) -> None:
        """Keep a log that cannot be read as it is: an operator may still be able to read it."""
        self._left_alone.add(log_id)

    def new_log(self) -> LogFile:
        """New log for a compaction; it counts for nothing before `replace_logs` names it."""
        extent = new_log(self._writer.take_log_id())
        return LogFile(self._disk, self._directory, extent, COMPACTION_LANE, direct=self._direct)

    def abandon(self, names: Sequence[str]) -> None:
        """These files are of no use; they go with the next checkpoint, or at the next start."""
        self._superseded += names

    async def read_checked(self, ledger_id: int, span: Span) -> EntryRun:
        """The entries of a span whose block has the right checksum. OSError or DamagedBlock."""
        return await self._reader.read_checked(ledger_id, span)

    async def read_unchecked(self, ledger_id: int, span: Span) -> EntryRun:
        """The entries of a span whatever the checksum of its block. OSError; DamagedBlock: not even a block is there."""
        return await self._reader.read_checked(ledger_id, span, check_data=False)

    def distrust(self, span: Span) -> None:
        """Distrust this block: from now on reads of it are DamagedBlock."""
        self._distrusted.add((span.log_id, span.offset))

    async def replace_logs(self, log_ids: Sequence[int], extent: LogExtent | None, moves: Sequence[Moved]) -> None:
        """A log that holds all that is alive of these takes the place of the last of them; without one nothing is. OSError."""
        names = () if extent is None else (log_name(extent.log_id), index_name(extent.log_id))
        async with self._changing:
            logs = list(self.checkpoint.logs)
            places = [place for place, found in enumerate(logs) if found.log_id in log_ids]
            gone = [logs[place].log_id for place in places]
            if extent is not None and places:
                logs.insert(places[-1] + 1, extent)
            else:
                self.abandon(names)  # all their ledgers were deleted meanwhile
            remaining = tuple(found for found in logs if found.log_id not in gone)
            try:
                await self._replace_checkpoint(replace(self.checkpoint, logs=remaining, next_log_id=self._writer.next_log_id))
            except OSError:
                self.abandon(names)  # not removed before another checkpoint is durable: this one may be
                raise
            for move in moves:  # no await since the checkpoint: what it names and what is read are the same
                self.index.relocate(move.ledger_id, move.old, move.new)
            await self._remove_superseded()
            await self._remove_logs(gone)

    async def _remove_logs(self, log_ids: Sequence[int]) -> None:
        for log_id in log_ids:
            await self._reader.forget(log_id)
            await self._remove(log_name(log_id))
            await self._remove(index_name(log_id))

    async def read(self, ledger_id: int, span: Span, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """Read from an entry of the span on: at least that one, else within both bounds. OSError or DamagedBlock."""
        if (span.log_id, span.offset) in self._distrusted:
            raise DamagedBlock("damaged, and no other replica had it")
        return await self._reader.read(ledger_id, span, first_entry_id, count_max, bytes_max)

    async def pick(self, wanted: Sequence[tuple[int, Span, int]], bytes_max: int) -> list[EntryRun]:
        """Single entries (ledger, span, entry) that are where they should be, within `bytes_max` in all. OSError."""
        sound = [each for each in wanted if (each[1].log_id, each[1].offset) not in self._distrusted]
        return await self._reader.pick(sound, bytes_max)

    def sound_spans(self, ledger_id: int, first_entry_id: int, end_entry_id: int) -> list[Span]:
        """Spans that have entries of [first, end), but for those known to be damaged."""
        found = self.index.spans_between(ledger_id, first_entry_id, end_entry_id)
        return [span for span in found if (span.log_id, span.offset) not in self._distrusted]

    async def tables(self, ledger_id: int, spans: Sequence[Span]) -> list[BlockTable | None]:
        """Tables of the spans' blocks. None: unreadable or damaged."""
        return await self._reader.tables(ledger_id, spans)

    def log_path(self, span: Span) -> str:
        """The file that the span's block is in."""
        return f"{self._directory}/{log_name(span.log_id)}"

    async def close(self) -> None:
        await self._writer.close()
        await self._reader.close()

    async def _store_checkpoint(self, checkpoint: Checkpoint) -> None:
        await self._replace_checkpoint(checkpoint)
        await self._remove_superseded()

    async def _replace_checkpoint(self, checkpoint: Checkpoint) -> None:
        await replace_file(self._disk, self._directory, CHECKPOINT, form.encode_checkpoint(checkpoint), self.kept)
        self.checkpoint = checkpoint

    async def _remove_superseded(self) -> None:
        while self._superseded:
            await self._remove(self._superseded.pop())

    async def create(self) -> None:
        """Make the first checkpoint: from now on its absence is damage."""
        await self._store_checkpoint(self.checkpoint)

    async def name_journal(self, mark: JournalMark) -> None:
        """The checkpoint names a file of the journal from now on, also if nothing was flushed yet: it may not be missing."""
        if mark.file_id and not self.checkpoint.mark.file_id:
            await self._store_checkpoint(replace(self.checkpoint, mark=mark))

    async def _store_states(self, job: Flush, states: Sequence[LedgerState]) -> tuple[int, int]:
        """The ledgers file and its good size, with the changes of the job in it."""
        file_id, size = self.checkpoint.ledgers_file_id, self.checkpoint.ledgers_bytes
        if not (job.changed or job.gone) and file_id:
            return file_id, size
        record = form.encode_ledgers(file_id, job.changed, job.gone)
        size_max = 2 * len(states) * form.STATE_BYTES + LEDGERS_BYTES_SLACK
        if self._ledgers_file_failed or not file_id or size + len(record) > size_max:
            return await self._rewrite_states(states)
        try:
            file = await self._disk.open(f"{self._directory}/{ledgers_name(file_id)}", lane=LANE)
            try:
                await file.write(size, [record], sync=True)
            finally:
                await file.close()
        except OSError:
            self._ledgers_file_failed = True  # what a failed fsync left is not known: the next flush writes another file
            raise
        return file_id, size + len(record)

    async def _rewrite_states(self, states: Sequence[LedgerState]) -> tuple[int, int]:
        old, file_id = self.checkpoint.ledgers_file_id, self._next_ledgers_file_id
        self._next_ledgers_file_id += 1
        record = form.encode_ledgers(file_id, states)
        await replace_file(self._disk, self._directory, ledgers_name(file_id), record, self.kept)
        self._ledgers_file_failed = False
        if old:
            self._superseded.append(ledgers_name(old))
        return file_id, len(record)

    async def _load_checkpoint(self) -> Checkpoint:
        path = f"{self._directory}/{CHECKPOINT}"
        try:
            return form.decode_checkpoint(await read_file(self._disk, path))
        except form.DamagedFile as error:
            raise StorageDamaged(f"{path} is damaged ({error}): put a good copy back, or replace this bookie") from error

    async def _load_states(self) -> list[LedgerState]:
        file_id, size = self.checkpoint.ledgers_file_id, self.checkpoint.ledgers_bytes
        self._next_ledgers_file_id = file_id + 1
        if not file_id:
            return []
        path = f"{self._directory}/{ledgers_name(file_id)}"
        try:
            data = await read_file(self._disk, path, size)
            if len(data) != size:
                raise StorageDamaged(
                    f"{path} has {len(data)} bytes instead of {size}: put a good copy back, or replace this bookie"
                )
            return form.decode_ledgers(data, file_id)
        except (FileNotFoundError, form.DamagedFile) as error:
            raise StorageDamaged(f"{path} cannot be read ({error}): put a good copy back, or replace this bookie") from error

    async def _load_index(self, extent: LogExtent) -> list[tuple[int, Span]]:
        """Load the index from its file; if that is damaged, from the log itself."""
        name = index_name(extent.log_id)
        try:
            data = await read_file(self._disk, f"{self._directory}/{name}", extent.index_bytes)
            if len(data) == extent.index_bytes:
                return list(form.decode_index(data, extent.log_id))
            reason = f"{len(data)} bytes instead of {extent.index_bytes}"
        except (OSError, form.DamagedFile) as error:
            reason = str(error)
        log.error(line("index is damaged, reading the entry log instead", file=name, reason=reason))
        return await self._rebuild_index(extent)

    async def _rebuild_index(self, extent: LogExtent) -> list[tuple[int, Span]]:
        try:
            spans, whole = await self._reader.scan(extent)
        except (OSError, DamagedBlock) as error:
            spans, whole = [], False
            log.error(line("entry log cannot be read", file=log_name(extent.log_id), error=error))
        if not whole:
            self.suspect = True
            self.leave_alone(extent.log_id)  # were it dropped, the next start would say "no such entry"
            log.error(
                line("entries may be missing: reads that find nothing are answered with EIO", file=log_name(extent.log_id))
            )
        return spans

    async def _remove_leftovers(self) -> None:
        """Remove files of flushes that did not end: the journal has their entries."""
        logs = {extent.log_id for extent in self.checkpoint.logs}
        kept = {log_name(log_id) for log_id in logs} | {index_name(log_id) for log_id in logs}
        kept.add(ledgers_name(self.checkpoint.ledgers_file_id))
        for name in await self._disk.list_directory(self._directory):
            if name.endswith((".log", ".index", ".ledgers", TEMPORARY_SUFFIX)) and name not in kept:
                await self._remove(name)

    async def _remove(self, name: str) -> None:
        try:
            await self._disk.remove(f"{self._directory}/{name}")
        except FileNotFoundError:
            log.warning(line("file was gone already", file=name))
