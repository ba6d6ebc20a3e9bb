"""AbortedTransactions: which transactions were aborted on a topic, for as long as a message of theirs may be read. Pure.

In segments, one for each ledger of the topic that has their markers (more when there are very many), so that a ledger that is
trimmed takes its segment with it, and only segments that changed are stored again. Bitmaps: a million of them are some 130 KB.
Apache: SnapshotSegmentAbortedTxnProcessorImpl (PIP-196), whose segments are lists of a fixed length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap64

from wire.position import Position
from wire.transactions import TxnId

SEGMENT_IDS_MAX = 50_000
"""Of transactions; a segment is at most about a megabyte then, whatever their numbers are."""


@dataclass(slots=True)
class AbortedSegment:
    """Transactions whose markers are in one ledger; by coordinator."""

    ledger_id: int
    ids: dict[int, BitMap64] = field(default_factory=dict)
    count: int = 0
    place: Position | None = None
    """Where it is stored; None: it has to be stored again."""


class AbortedTransactions:
    """Of one topic."""

    def __init__(self, segments: Sequence[AbortedSegment] = ()) -> None:
        self._segments = list(segments)
        self._all: dict[int, BitMap64] = {}
        for segment in self._segments:
            self._unite(segment.ids)

    def __contains__(self, txn_id: TxnId) -> bool:
        ids = self._all.get(txn_id.most)
        return ids is not None and txn_id.least in ids

    def __len__(self) -> int:
        return sum(segment.count for segment in self._segments)

    @property
    def segments(self) -> Sequence[AbortedSegment]:
        """Ascending by ledger; the last one may still grow."""
        return self._segments

    def add(self, txn_id: TxnId, marker: Position) -> None:
        """Nothing happens when it is known."""
        if txn_id in self:
            return
        segments = self._segments
        if not segments or segments[-1].ledger_id != marker.ledger_id or segments[-1].count >= SEGMENT_IDS_MAX:
            segments.append(AbortedSegment(marker.ledger_id))
        segment = segments[-1]
        segment.ids.setdefault(txn_id.most, BitMap64()).add(txn_id.least)
        segment.count += 1
        segment.place = None
        self._all.setdefault(txn_id.most, BitMap64()).add(txn_id.least)

    def forget_before(self, ledger_id: int) -> bool:
        """Those whose markers were in ledgers before it: their messages, which came earlier, are gone. Whether any were."""
        gone = [segment for segment in self._segments if segment.ledger_id < ledger_id]
        for segment in gone:
            for most, ids in segment.ids.items():
                self._all[most] -= ids
                if not self._all[most]:
                    del self._all[most]
        self._segments = [segment for segment in self._segments if segment.ledger_id >= ledger_id]
        return bool(gone)

    def store_all_again(self) -> None:
        """Of all segments, so that what was stored of them can go."""
        for segment in self._segments:
            segment.place = None

    def _unite(self, ids: Mapping[int, BitMap64]) -> None:
        for most, least in ids.items():
            self._all[most] = self._all.get(most, BitMap64()) | least

    def check_invariants(self) -> None:
        """AssertionError when the segments do not say what the whole says."""
        again = AbortedTransactions(self._segments)
        assert again._all == self._all
        assert sum(map(len, self._all.values())) == len(self)
        ledgers = [segment.ledger_id for segment in self._segments]
        assert ledgers == sorted(ledgers)
