"""Acknowledgements of one entry that a cursor in memory takes as plain ones, as the real cursor does."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyroaring import BitMap

from wire.picked_runs import Picked, Picks, picked_runs
from wire.position import Position
from wire.run import EntryRun

if TYPE_CHECKING:
    from tests.broker.topic.memory_ledger import MemoryLedger


class PlainEntries:
    """A part of a cursor."""

    mark_delete: Position
    _ledger: "MemoryLedger"
    _batches: Mapping[Position, list[int]]

    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        raise NotImplementedError

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> bool:
        """Takes an entry of the newest ledger, with mark-delete in it, and no batch in parts."""
        last = self._ledger.last_confirmed
        if self._batches or entry_id > last.entry_id or not ledger_id == last.ledger_id == self.mark_delete.ledger_id:
            return False
        return bool(self.acknowledge_entries(ledger_id, BitMap([entry_id])))

    def is_untouched(self, ledger_id: int, first: int, last: int) -> bool:
        return False


class PlainListeners:
    """A ledger that tells one listener which cursor was reset, and never refuses an append."""

    went_back_listener: Callable[[str], None] = staticmethod(lambda name: None)

    def on_refused(self, listener: Callable[[], None]) -> None: ...

    def on_went_back(self, listener: Callable[[str], None]) -> Callable[[], None]:
        self.went_back_listener = listener
        return lambda: None


def picked_of(log: Sequence[EntryRun], wanted: Picks) -> Picked:
    """Answer of `ManagedLedger.pick` where the log consists of these runs."""
    runs = [picked_runs([run for run in log if run.ledger_id == each], entry_ids) for each, entry_ids in wanted]
    there = {(run.ledger_id, entry) for run in log for entry in range(run.first_entry_id, run.last_entry_id + 1)}
    gone = [(each, BitMap(entry for entry in ids if (each, entry) not in there)) for each, ids in wanted]
    return Picked([run for each in runs for run in each], [each for each in gone if each[1]])
