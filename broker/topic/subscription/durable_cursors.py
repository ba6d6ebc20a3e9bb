"""DurableCursors: the places of a topic's durable subscriptions, and the one behind all others. Used by everything that judges
a backlog: quotas, expiry, the look for unused topics, stats. A look at all of 30,000 subscriptions each time would be too slow.
Owns a heap of places (`SlowestCursor`); compaction's place is beside it, since messages that compaction has not read are a
backlog, but must not expire, nor be evicted.
"""

from broker.compaction.compacted_topic import COMPACTION_CURSOR
from managed_ledger.contract import ManagedCursor
from managed_ledger.cursor.slowest_cursor import SlowestCursor
from ports.loop.slices import in_slices

_CORRECTED_AT_ONCE = 500
"""Places that one turn of the loop puts right: a millisecond or two."""


class DurableCursors:
    """Durable cursors of one topic, by the names of their subscriptions."""

    def __init__(self) -> None:
        self._cursors: dict[str, ManagedCursor] = {}
        self._compaction: ManagedCursor | None = None
        self._slowest = SlowestCursor(self._cursors)

    @property
    def count(self) -> int:
        return len(self._cursors) + (self._compaction is not None)

    @property
    def names(self) -> list[str]:
        """Without compaction's."""
        return list(self._cursors)

    def add(self, name: str, cursor: ManagedCursor) -> None:
        if name == COMPACTION_CURSOR:
            self._compaction = cursor
        else:
            self._cursors[name] = cursor
            self._slowest.noted(name)

    def remove(self, name: str) -> None:
        """Nothing happens where it is not there."""
        if name == COMPACTION_CURSOR:
            self._compaction = None
        else:
            self._cursors.pop(name, None)
            self._slowest.left()

    def went_back(self, name: str) -> None:
        """A cursor of this name, if it is one of these."""
        if name in self._cursors:
            self._slowest.noted(name)

    def slowest(self) -> str | None:
        """The subscription that is behind all others, not compaction's; None: there is none. Takes no time after `settle`."""
        return self._slowest.name()

    def oldest(self) -> str | None:
        """Same as `slowest`, or compaction's where that is further behind."""
        name, compaction = self.slowest(), self._compaction
        is_compaction = compaction is not None and (name is None or compaction.mark_delete < self._cursors[name].mark_delete)
        return COMPACTION_CURSOR if is_compaction else name

    def backlog_entries(self) -> int:
        """Backlog of the subscription that is furthest behind, compaction's too; 0: none of them has a backlog."""
        name = self.oldest()
        cursor = self._compaction if name == COMPACTION_CURSOR else self._cursors.get(name or "")
        return 0 if cursor is None else cursor.backlog_entries()

    async def settle(self) -> None:
        """Put right, some in a turn of the loop, the places that have changed since the last time."""
        async for _ in in_slices(iter(lambda: self._slowest.settle(_CORRECTED_AT_ONCE), True), 1):
            pass
