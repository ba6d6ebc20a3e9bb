"""ReadCommitted: the decided part of a topic's log, for readers. Satisfies the log that dispatchers' drivers read from. Decides
nothing: the buffer gives the end. Costs one call per read if no transaction is open.
"""

from collections.abc import Callable

from managed_ledger.contract import ManagedLedger
from wire.picked_runs import Picked, Picks
from wire.position import Position
from wire.run import EntryRun


class ReadCommitted:
    """`limit`: the last position that may be read; None: all."""

    def __init__(self, ledger: ManagedLedger, limit: Callable[[], Position | None]) -> None:
        self._ledger = ledger
        self._limit = limit

    @property
    def last_confirmed(self) -> Position:
        """The last position that may be read: Apache's maxReadPosition."""
        limit, last = self._limit(), self._ledger.last_confirmed
        return last if limit is None else min(limit, last)

    def first_position(self) -> Position:
        return self._ledger.first_position()

    def previous_position(self, position: Position) -> Position:
        return self._ledger.previous_position(position)

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        """Same as `ManagedLedger.read`; None also when nothing from there on is decided."""
        limit = self._limit()
        if limit is not None and position > limit:
            return None
        return self._cut(await self._ledger.read(position, entries_max, bytes_max))

    def read_cached(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        return self._cut(self._ledger.read_cached(position, entries_max, bytes_max))

    async def pick(self, wanted: Picks, bytes_max: int) -> Picked:
        """Same as `ManagedLedger.pick`; entries that were read before are decided."""
        return await self._ledger.pick(wanted, bytes_max)

    def pick_cached(self, wanted: Picks, bytes_max: int) -> Picked | None:
        return self._ledger.pick_cached(wanted, bytes_max)

    def keep_from(self, reader: object, position: Position | None) -> None:
        self._ledger.keep_from(reader, position)

    def _cut(self, run: EntryRun | None) -> EntryRun | None:
        """Cuts the run at the limit as it is after the read."""
        limit = self._limit()
        if run is None or limit is None or Position(run.ledger_id, run.last_entry_id) <= limit:
            return run
        if limit < Position(run.ledger_id, run.first_entry_id):
            return None
        return run.entries(run.first_entry_id, limit.entry_id - run.first_entry_id + 1)
