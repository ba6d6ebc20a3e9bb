"""CompactedTopic: the compacted part of a topic, and its ledger. The cursor `__compaction` alone holds both, as with Apache's
brokers. Its mark-delete is the horizon: entries up to it are read from the ledger that its property `CompactedTopicLedger`
names. Owns the handle on that ledger, and nothing else: any move of the cursor takes effect at once, also by a compactor
outside.
"""

import asyncio
from collections.abc import Callable

from bookkeeper.ledgers import LedgerStore
from managed_ledger.contract import ManagedCursor
from wire.position import Position

from .compacted_ledger import CompactedLedger, CompactedRun, LastCompacted

COMPACTION_CURSOR = "__compaction"
LEDGER_PROPERTY = "CompactedTopicLedger"


class CompactedTopic:
    """Compacted part of one topic. `cursor` gives its `__compaction`, None while there is none."""

    def __init__(self, ledgers: LedgerStore | None, cursor: Callable[[], ManagedCursor | None]) -> None:
        self._ledgers = ledgers
        self._cursor = cursor
        self._opening: asyncio.Lock = asyncio.Lock()
        self._opened: CompactedLedger | None = None

    @property
    def ledger_id(self) -> int | None:
        """None: it was never compacted."""
        cursor = self._cursor()
        return None if cursor is None else cursor.properties.get(LEDGER_PROPERTY)

    @property
    def horizon(self) -> Position | None:
        """The last place that is compacted; None: nothing is."""
        cursor = self._cursor()
        if cursor is None or self._ledgers is None or LEDGER_PROPERTY not in cursor.properties:
            return None
        return cursor.mark_delete

    async def ledger(self) -> CompactedLedger | None:
        """LedgerError when it cannot be opened."""
        wanted, ledgers = self.ledger_id, self._ledgers
        if wanted is None or ledgers is None:
            return None
        async with self._opening:
            if self._opened is None or self._opened.ledger_id != wanted:
                self._opened = CompactedLedger(await ledgers.open(wanted))
            return self._opened

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> CompactedRun | None:
        """The run that starts with the first copy at or after `position`; None: no copy is there. LedgerError, ValueError."""
        ledger = await self.ledger()
        return None if ledger is None else await ledger.read(position, entries_max, bytes_max)

    async def last(self) -> LastCompacted | None:
        """The last message that stayed. LedgerError, ValueError."""
        ledger = await self.ledger()
        return None if ledger is None else await ledger.last()
