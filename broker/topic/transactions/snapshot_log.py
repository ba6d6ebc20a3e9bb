"""SnapshotLog: the managed ledger beside a topic's own where its aborted transactions are kept. One writer.

Owns that log and its cursor, which keeps what the newest index needs. That it exists says that the topic has had transactions.
"""

import logging

from managed_ledger.contract import EARLIEST, ManagedCursor, ManagedLedger, ManagedLedgerError
from ports.logs import line
from wire.position import Position

from .aborted import AbortedSegment, AbortedTransactions
from .markers import one_entry
from .snapshots import Index, UnreadableSnapshot, decode, encode_index, encode_segment

CURSOR = "snapshots"
_STALE_ENTRIES_MAX = 1000
"""So many more entries than segments from the oldest segment on, and all are stored again, so that the log stays short."""
_UNLIMITED = 1 << 40

log = logging.getLogger(__name__)


class SnapshotLog:
    """Of one topic, open. ManagedLedgerError where nothing else is said."""

    def __init__(self, ledger: ManagedLedger, cursor: ManagedCursor) -> None:
        self.ledger = ledger
        self._cursor = cursor

    @classmethod
    async def open(cls, ledger: ManagedLedger) -> "SnapshotLog":
        return cls(ledger, await ledger.open_cursor(CURSOR, EARLIEST))

    async def read(self) -> tuple[AbortedTransactions, Position]:
        """What the newest snapshot says: aborted transactions, and from where the topic's log has to be replayed."""
        position = self.ledger.last_confirmed
        while position.entry_id >= 0 and position >= self.ledger.first_position():
            found = await self._entry(position)
            if isinstance(found, Index):
                segments = [await self._segment(place) for place in found.places]
                return AbortedTransactions(segments), found.replay_from
            position = self.ledger.previous_position(position)  # a segment whose index was not written any more
        return AbortedTransactions(), EARLIEST

    async def _segment(self, place: Position) -> AbortedSegment:
        found = await self._entry(place)
        if not isinstance(found, AbortedSegment):
            raise ManagedLedgerError(f"{self.ledger.name}: entry {place} is no segment of aborted transactions")
        return found

    async def _entry(self, position: Position) -> AbortedSegment | Index:
        run = await self.ledger.read(position, 1, _UNLIMITED)
        if run is None or Position(run.ledger_id, run.first_entry_id) != position:
            raise ManagedLedgerError(f"{self.ledger.name}: entry {position} is missing")
        try:
            return decode(run.payload(position.entry_id), position)
        except UnreadableSnapshot as error:
            raise ManagedLedgerError(f"{self.ledger.name}: {error}") from error

    async def write(self, aborted: AbortedTransactions, replay_from: Position) -> None:
        """Segments that changed, then the index. `aborted` may change meanwhile: what is stored is how it is now. One call at a
        time."""
        written: list[tuple[AbortedSegment, int, Position | bytes]] = [
            (segment, segment.count, segment.place or encode_segment(segment)) for segment in aborted.segments
        ]
        places: list[tuple[int, Position]] = []
        for segment, count, said in written:
            place = await self._append(said) if isinstance(said, bytes) else said
            places.append((segment.ledger_id, place))
            if segment.count == count:  # else it has grown, and is stored again the next time
                segment.place = place
        index = await self._append(encode_index(replay_from, places))
        self._trim(index, [place for _, place in places])
        if self._is_long(len(places)):
            aborted.store_all_again()

    async def _append(self, payload: bytes) -> Position:
        run = await self.ledger.append(one_entry(payload, self.ledger.header_bytes))
        return Position(run.ledger_id, run.first_entry_id)

    def _trim(self, index: Position, places: list[Position]) -> None:
        """Keep what the index needs, and itself."""
        oldest = min([index, *places])
        before = self.ledger.previous_position(oldest)
        if before.entry_id >= 0 and before > self._cursor.mark_delete:
            self._cursor.acknowledge_cumulative(before)

    def _is_long(self, segments: int) -> bool:
        return self._cursor.backlog_entries() > segments + _STALE_ENTRIES_MAX

    async def close(self) -> None:
        try:
            await self.ledger.close()
        except ManagedLedgerError as error:
            log.warning(line("a snapshot log was not closed cleanly", log=self.ledger.name, error=error))
