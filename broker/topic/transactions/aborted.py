"""AbortedTransactions: aborted transactions of a topic, kept as long as a message of theirs may be read. Pure.

They are in segments, in the order of their markers. A segment goes with the ledger of its last marker. Sealed segments do not
grow any more and are stored once (Apache: SnapshotSegmentAbortedTxnProcessorImpl, PIP-196); the others are of one ledger each
and small, so that only the last one is encoded again to be stored. Bitmaps: a million are some 130 KB.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap64

from wire.position import Position
from wire.transactions import TxnId

LOOSE_IDS_MAX = 4096
"""Maximum of transactions in a segment that is not sealed."""


@dataclass(slots=True)
class AbortedSegment:
    """Transactions that were aborted one after the other; by coordinator."""

    last: Position
    """Position of their last marker."""
    ids: dict[int, BitMap64] = field(default_factory=dict)
    count: int = 0
    sequence_id: int | None = None
    """Number of a sealed segment among those of the topic."""
    place: Position | None = None
    """Position of the stored segment; only sealed ones are stored by themselves."""
    encoded: dict[str, bytes] = field(default_factory=dict)
    """Encoding that the store has made of the segment, until the segment changes."""

    @property
    def last_id(self) -> TxnId:
        """The last in the order in which they are stored."""
        most = next(reversed(self.ids))
        return TxnId(most, self.ids[most].max())

    def add(self, txn_id: TxnId, marker: Position) -> None:
        self.ids.setdefault(txn_id.most, BitMap64()).add(txn_id.least)
        self.count += 1
        self.last = marker
        self.encoded = {}


class AbortedTransactions:
    """Aborted transactions of one topic."""

    def __init__(self) -> None:
        self._segments: list[AbortedSegment] = []
        self._all: dict[int, BitMap64] = {}
        self._next_sequence_id = 0
        self._gone: list[int] = []

    def __contains__(self, txn_id: TxnId) -> bool:
        ids = self._all.get(txn_id.most)
        return ids is not None and txn_id.least in ids

    def __len__(self) -> int:
        return sum(segment.count for segment in self._segments)

    @property
    def segments(self) -> Sequence[AbortedSegment]:
        """Ascending by their last markers: those that are sealed first."""
        return self._segments

    @property
    def sealed(self) -> Sequence[AbortedSegment]:
        return [segment for segment in self._segments if segment.sequence_id is not None]

    @property
    def loose(self) -> Sequence[AbortedSegment]:
        """Segments that are not sealed."""
        return [segment for segment in self._segments if segment.sequence_id is None]

    def add(self, txn_id: TxnId, marker: Position) -> None:
        """Nothing happens when it is known."""
        if txn_id in self:
            return
        last = self._segments[-1] if self._segments else None
        if (
            last is None
            or last.sequence_id is not None
            or last.last.ledger_id != marker.ledger_id
            or last.count >= LOOSE_IDS_MAX
        ):
            last = AbortedSegment(marker)
            self._segments.append(last)
        last.add(txn_id, marker)
        self._all.setdefault(txn_id.most, BitMap64()).add(txn_id.least)

    def restore(self, ids: Mapping[int, BitMap64], last: Position, sequence_id: int, place: Position) -> None:
        """A sealed segment as it was stored, before anything that is not sealed."""
        new = {most: least - self._all.get(most, BitMap64()) for most, least in ids.items()}
        new = {most: least for most, least in new.items() if least}
        self._next_sequence_id = max(self._next_sequence_id, sequence_id + 1)
        if not new:
            self._gone.append(sequence_id)
            return
        self._segments.append(AbortedSegment(last, new, sum(map(len, new.values())), sequence_id, place))
        self._unite(new)

    def seal(self, count_min: int) -> None:
        """Make one segment of all that are not sealed, if they have so many transactions."""
        loose = self.loose
        if not loose or sum(segment.count for segment in loose) < count_min:
            return
        ids: dict[int, BitMap64] = {}
        for segment in loose:
            for most, least in segment.ids.items():
                ids[most] = ids.get(most, BitMap64()) | least
        count = sum(map(len, ids.values()))
        self._segments = [*self.sealed, AbortedSegment(loose[-1].last, ids, count, self._next_sequence_id)]
        self._next_sequence_id += 1

    def forget_before(self, ledger_id: int) -> bool:
        """Forgets transactions with markers in ledgers before this one: their messages are gone. Whether there were any."""
        gone = [segment for segment in self._segments if segment.last.ledger_id < ledger_id]
        for segment in gone:
            for most, ids in segment.ids.items():
                self._all[most] -= ids
                if not self._all[most]:
                    del self._all[most]
        self._gone += [segment.sequence_id for segment in gone if segment.sequence_id is not None]
        self._segments = [segment for segment in self._segments if segment.last.ledger_id >= ledger_id]
        return bool(gone)

    def take_gone(self) -> list[int]:
        """The numbers of sealed segments that were forgotten since the last call."""
        gone, self._gone = self._gone, []
        return gone

    def _unite(self, ids: Mapping[int, BitMap64]) -> None:
        for most, least in ids.items():
            self._all[most] = self._all.get(most, BitMap64()) | least

    def check_invariants(self) -> None:
        """Raises AssertionError when segments and whole differ."""
        everything: dict[int, BitMap64] = {}
        for segment in self._segments:
            assert segment.count == sum(map(len, segment.ids.values()))
            for most, least in segment.ids.items():
                everything[most] = everything.get(most, BitMap64()) | least
        assert everything == self._all
        assert sum(map(len, everything.values())) == len(self)
        assert [*self.sealed, *self.loose] == self._segments
        ledgers = [segment.last.ledger_id for segment in self._segments]
        assert ledgers == sorted(ledgers)
