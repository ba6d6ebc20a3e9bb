"""Settling: results of appends that a failed ledger did not answer, once it is recovered. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from managed_ledger.errors import ManagedLedgerError
from wire.run import EntryBatch, EntryRun


@dataclass(frozen=True, slots=True)
class Settlement:
    """The first appends are stored; the others, in their order, are not, and can be appended elsewhere."""

    stored: tuple[EntryRun, ...]
    again: tuple[EntryBatch, ...]


def settle(ledger_id: int, next_entry_id: int, unanswered: Sequence[EntryBatch], last_entry_id: int) -> Settlement:
    """`unanswered` were appended from `next_entry_id` on; the ledger was closed at `last_entry_id`.

    ManagedLedgerError when that cannot be: a batch is stored in part (it must not be split over ledgers, nor stored twice), or
    the ledger lost what it had confirmed.
    """
    if last_entry_id < next_entry_id - 1:
        raise ManagedLedgerError(
            f"ledger {ledger_id} was recovered up to {last_entry_id}, but {next_entry_id - 1} is confirmed"
        )
    stored: list[EntryRun] = []
    for place, batch in enumerate(unanswered):
        if next_entry_id > last_entry_id:
            return Settlement(tuple(stored), tuple(map(_fresh, unanswered[place:])))
        run = EntryRun(ledger_id, next_entry_id, batch.buffer, batch.offsets, batch.header_bytes)
        if run.last_entry_id > last_entry_id:
            raise ManagedLedgerError(
                f"ledger {ledger_id} ends at {last_entry_id}, inside a batch that ends at {run.last_entry_id}"
            )
        stored.append(run)
        next_entry_id = run.last_entry_id + 1
    if next_entry_id <= last_entry_id:
        raise ManagedLedgerError(f"ledger {ledger_id} has entry {last_entry_id}, which was not appended here")
    return Settlement(tuple(stored), ())


def _fresh(batch: EntryBatch) -> EntryBatch:
    """With a buffer of its own: a bookie may still hold the old one, which is sealed with the old ledger's ids."""
    return EntryBatch(bytearray(batch.buffer), batch.offsets, batch.header_bytes, batch.message_count)
