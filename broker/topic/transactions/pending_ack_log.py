"""PendingAckLog: the managed ledger beside a topic's own with the acknowledgements of transactions on one subscription. Owns
that log and its cursor, which marks the needed part. Apache's name of the cursor (MLPendingAckStore).
"""

from collections.abc import AsyncIterator

from managed_ledger.append.gathered_appends import GatheredAppends
from managed_ledger.contract import EARLIEST, ManagedCursor, ManagedLedger, ManagedLedgerError
from ports.loop.promise import Promise
from wire.position import Position

from .pending_ack_records import Record, UnreadableRecord, decode, encode

CURSOR = "__pending_ack_state"
_READ_ENTRIES, _READ_BYTES = 1000, 4 << 20


class PendingAckLog:
    """Open log of one subscription. ManagedLedgerError where nothing else is said."""

    def __init__(self, ledger: ManagedLedger, cursor: ManagedCursor) -> None:
        self.ledger = ledger
        self._cursor = cursor
        self._appends = GatheredAppends(ledger)

    @classmethod
    async def open(cls, ledger: ManagedLedger) -> "PendingAckLog":
        return cls(ledger, await ledger.open_cursor(CURSOR, EARLIEST))

    @property
    def entries_needed(self) -> int:
        """Number of entries that a recovery would read."""
        return self._cursor.backlog_entries()

    async def records(self) -> AsyncIterator[tuple[Position, Record]]:
        """Yields the records that are still needed, in order."""
        position = self._cursor.first_unacknowledged()
        while (run := await self.ledger.read(position, _READ_ENTRIES, _READ_BYTES)) is not None:
            for entry_id in range(run.first_entry_id, run.last_entry_id + 1):
                at = Position(run.ledger_id, entry_id)
                try:
                    yield at, decode(run.payload(entry_id))
                except UnreadableRecord as error:
                    raise ManagedLedgerError(f"{self.ledger.name}: entry {at} is {error}") from error
            position = Position(run.ledger_id, run.last_entry_id + 1)

    def append(self, record: Record) -> Promise[Position]:
        """Returns a promise that is done when the record is durable, in the order of the calls."""
        return self._appends.append(encode(record))

    def not_needed_before(self, position: Position) -> None:
        """Releases entries before the position: the subscription's own cursor covers them."""
        before = self.ledger.previous_position(position)
        if before.entry_id >= 0 and before > self._cursor.mark_delete:
            self._cursor.acknowledge_cumulative(before)

    async def close(self) -> None:
        """Closes the log after all earlier appends. ManagedLedgerError."""
        self._appends.flush()
        await self.ledger.close()

    def end(self) -> Position:
        """Position of the next record, or one before it."""
        return self.ledger.next_position(self.ledger.last_confirmed)
