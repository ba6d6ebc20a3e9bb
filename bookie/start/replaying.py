"""Replay at the start: frames of the journal restore the memtable and the ledger states."""

import logging
from collections.abc import Awaitable, Callable

from bookie.adds.flusher import Flusher
from bookie.adds.memtable import cost_bytes
from bookie.disk_space.health import LOST, STORAGE, Health
from bookie.journal.format_v1 import JournalMark, LedgerFenced, MasterKeySet, Record
from bookie.journal.journal import Journal
from bookie.journal.replay import JournalReplay
from bookie.ledgers import Ledgers
from bookie.storage.storage import LedgerStorage
from ports.logs import line
from wire.kernels.mixes import ledgers_of, runs_of
from wire.run import EntryMix, EntryRun

log = logging.getLogger("bookie")


async def apply_frames(
    replay: JournalReplay,
    ledgers: Ledgers,
    flusher: Flusher,
    table_bytes_max: int,
    flush: Callable[[JournalMark], Awaitable[None]],
) -> None:
    """All of them; `flush` up to a mark whenever the memtable is full. JournalDamaged."""
    frames = 0
    async for frame in replay.frames():
        for record in frame.records:
            _apply(record, ledgers, flusher)
        frames += 1
        if flusher.active.size_bytes >= table_bytes_max:
            await flush(frame.mark)
    if frames:
        log.info(line("journal replayed", frames=frames, last=replay.end.sequence))


def _apply(record: Record, ledgers: Ledgers, flusher: Flusher) -> None:
    if isinstance(record, EntryMix):
        _apply_mix(record, ledgers, flusher)
        return
    if ledgers.is_gone(record.ledger_id):
        return
    match record:
        case EntryRun():
            ledgers.ensure(record.ledger_id, b"")
            flusher.active.insert(record, cost_bytes(record))
        case MasterKeySet():
            ledgers.ensure(record.ledger_id, record.master_key)
        case LedgerFenced():
            ledgers.fence(record.ledger_id)


def _apply_mix(mix: EntryMix, ledgers: Ledgers, flusher: Flusher) -> None:
    found = ledgers_of(mix)
    if any(map(ledgers.was_deleted, found)):
        for run in runs_of([mix]):
            _apply(run, ledgers, flusher)
        return
    for ledger_id in found:
        ledgers.ensure(ledger_id, b"")
    flusher.active.insert(mix, cost_bytes(mix))


async def replay(
    journal: Journal, storage: LedgerStorage, ledgers: Ledgers, flusher: Flusher, health: Health, *, lost: bool
) -> None:
    """Take over the journal after the checkpoint, and begin to write it. OSError. `lost`: the journal may be gone."""

    async def flush(mark: JournalMark) -> None:
        """A full disk must not keep the bookie from starting: replayed entries then stay in memory; the journal bounds them."""
        if STORAGE in health.reasons:
            return
        try:
            await flusher.flush_replayed(mark)
        except OSError as error:
            health.turn_read_only(STORAGE, str(error))

    checkpoint = storage.checkpoint
    found = journal.replay(checkpoint.mark, ended=checkpoint.journal_ended, lost=lost)
    await apply_frames(found, ledgers, flusher, health.settings.table_bytes_max, flush)
    await journal.start(found)
    if not lost:
        await storage.name_journal(journal.beginning)
    else:
        if journal.failure is not None:
            raise journal.failure  # there must be a file for the mark to name
        journal.begin_anew()
        health.turn_read_only(LOST, "which ledgers were here is not known yet")
