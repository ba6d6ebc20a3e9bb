"""Entries of a read that can be delivered at all, and their costs. Does not decide which consumer gets them.

Not deliverable are acknowledged entries, markers, and in a replay entries that are not waiting. The common case (none of these,
no batches) costs nothing per entry: the indexes are a range, the costs are None.
"""

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, compress

from pyroaring import BitMap

from wire.position import Position
from wire.run import FLAG_MARKER, EntryRun

from ..contract import ConsumerId, Deliver, EntriesRead

Span = tuple[int, int]
"""[start, stop) of places in a Readable."""


class Readable:
    """The deliverable entries of one run, by place: 0 is the first one. Costs are in messages."""

    __slots__ = ("_cumulative", "ack_sets", "costs", "gone", "indexes", "run")

    def __init__(
        self, run: EntryRun, indexes: "range | array[int]", costs: Sequence[int] | None, ack_sets: Mapping[int, Sequence[int]]
    ) -> None:
        self.run = run
        self.gone = BitMap()
        """Entries of the run that are acknowledged already (not all, where they were not asked for)."""
        self.indexes = indexes
        """Ascending indexes in the run."""
        self.costs = costs
        """Permits that each takes, None where each takes one."""
        self.ack_sets = ack_sets
        """Ack sets by index in the run."""
        self._cumulative: list[int] | None = None

    def __len__(self) -> int:
        return len(self.indexes)

    def cost(self, start: int, stop: int) -> int:
        if self.costs is None:
            return stop - start
        cumulative = self._sums()
        return cumulative[stop] - cumulative[start]

    def fit(self, start: int, messages: int) -> int:
        """End of the entries for a consumer with that many permits: the last one may go beyond, none is split."""
        if self.costs is None:
            return min(len(self.indexes), start + messages)
        cumulative = self._sums()
        return min(len(self.indexes), bisect_left(cumulative, cumulative[start] + messages))

    def costs_at(self, indexes: "range | array[int]") -> Sequence[int] | None:
        """The costs of entries at these indexes of the run, all of them in `indexes`; None where each is one."""
        if self.costs is None:
            return None
        if isinstance(indexes, range) and isinstance(self.indexes, range):
            first = self.indexes.start
            return self.costs[indexes.start - first : indexes.stop - first]
        return list(map(dict(zip(self.indexes, self.costs, strict=True)).__getitem__, indexes))

    def position(self, place: int) -> Position:
        return Position(self.run.ledger_id, self.run.first_entry_id + self.indexes[place])

    def entry_ids(self, indexes: range | Sequence[int]) -> BitMap:
        return entry_ids(self.run, indexes)

    def picked(self, spans: Sequence[Span]) -> "range | array[int]":
        """The indexes of these spans, one after the other."""
        if len(spans) == 1:
            return self.indexes[spans[0][0] : spans[0][1]]
        return array("I", chain.from_iterable(self.indexes[start:stop] for start, stop in spans))

    def deliver(
        self,
        consumer: ConsumerId,
        indexes: range | Sequence[int],
        message_count: int,
        redelivery_counts: Sequence[int] | None = None,
        consumer_epoch: int | None = None,
    ) -> Deliver:
        ack_sets = None
        if self.ack_sets:
            chosen = set(indexes)
            ack_sets = {index: words for index, words in self.ack_sets.items() if index in chosen} or None
        return Deliver(consumer, self.run, indexes, message_count, redelivery_counts, ack_sets, consumer_epoch)

    def _sums(self) -> list[int]:
        if self._cumulative is None:
            assert self.costs is not None
            self._cumulative = list(accumulate(self.costs, initial=0))
        return self._cumulative


def entry_ids(run: EntryRun, indexes: range | Sequence[int]) -> BitMap:
    """The ids of the entries at these indexes of the run."""
    first = run.first_entry_id
    if isinstance(indexes, range):
        return BitMap(range(first + indexes.start, first + indexes.stop))
    return BitMap(indexes).shift(first)


def readable(read: EntriesRead, wanted: BitMap | None = None) -> tuple[Readable, BitMap]:
    """The deliverable entries of a read (of those in `wanted`, when given), and its unacknowledged markers."""
    run = read.run
    gone = _acknowledged(read)  # a superset: other entries of the ledger too
    markers = _markers(read)
    if gone is None and not markers and wanted is None:
        indexes: range | array[int] = range(run.count)
    else:
        ids = BitMap(range(run.first_entry_id, run.last_entry_id + 1))
        if gone is not None:
            ids -= gone
        if markers:
            markers &= ids
            ids -= markers
        if wanted is not None:
            ids &= wanted
        indexes = _indexes(run, ids)
    ack_sets = _ack_sets_by_index(read)
    found = Readable(run, indexes, _costs(read, indexes, ack_sets), ack_sets)
    if gone is not None:
        found.gone = gone
    return found, markers


def _ack_sets_by_index(read: EntriesRead) -> Mapping[int, Sequence[int]]:
    if not read.ack_sets:
        return {}
    first, count = read.run.first_entry_id, read.run.count
    return {entry_id - first: words for entry_id, words in read.ack_sets.items() if 0 <= entry_id - first < count}


def _acknowledged(read: EntriesRead) -> BitMap | None:
    """The acknowledged entries of the run (and others); None when there are none."""
    run = read.run
    gone = read.acknowledged if read.acknowledged.range_cardinality(run.first_entry_id, run.last_entry_id + 1) else None
    if read.mark_delete < (run.ledger_id, run.first_entry_id):
        return gone
    last = (
        run.last_entry_id if read.mark_delete.ledger_id > run.ledger_id else min(run.last_entry_id, read.mark_delete.entry_id)
    )
    below = BitMap(range(run.first_entry_id, last + 1))
    return below if gone is None else below | gone


def _markers(read: EntriesRead) -> BitMap:
    if not read.metadata.any_flags & FLAG_MARKER:
        return BitMap()
    run = read.run
    return BitMap(compress(range(run.first_entry_id, run.last_entry_id + 1), map(FLAG_MARKER.__and__, read.metadata.flags)))


def _indexes(run: EntryRun, ids: BitMap) -> "range | array[int]":
    if not ids:
        return range(0)
    first, last = ids.min() - run.first_entry_id, ids.max() - run.first_entry_id
    if last - first + 1 == len(ids):
        return range(first, last + 1)
    return ids.shift(-run.first_entry_id).to_array()


def _costs(read: EntriesRead, indexes: "range | array[int]", ack_sets: Mapping[int, Sequence[int]]) -> Sequence[int] | None:
    counts = read.metadata.message_counts
    if read.metadata.message_count == len(counts) and not ack_sets:
        return None
    if isinstance(indexes, range):
        chosen = counts[indexes.start : indexes.stop]
    else:
        chosen = array("I", map(counts.__getitem__, indexes))
    for index, words in ack_sets.items():
        place = bisect_left(indexes, index)
        if place < len(indexes) and indexes[place] == index:
            chosen[place] = min(chosen[place], sum(map(_unacknowledged, words)))
    return chosen


def _unacknowledged(word: int) -> int:
    return (word & 0xFFFF_FFFF_FFFF_FFFF).bit_count()
