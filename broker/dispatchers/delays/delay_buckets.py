"""Choice of the delayed entries to store in buckets, of the buckets to merge, and of those to delete. Pure.

A bucket has the delivery times of some entries: they never change, so that a bucket is never wrong, only superfluous. A bucket
is superfluous once no entry waits between its first and its last one. Entries are stored in the order of the log, up to the
last one read; buckets grow with the number of waiting entries, so that there are few of them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from wire.position import Position
from wire.record import record

from ..entry_sets import EntrySet
from .delays import Delays

BUCKETS_MAX = 64
"""Each is a property of the cursor: beyond it neighbours are put together."""
MERGED_MAX = 4
"""Buckets merged at a time, as in Apache."""
ENTRIES_MAX = 1_000_000
"""Entries in a bucket: their names have to fit one entry of a ledger."""
_SHARES_MIN, _SHARES_MAX = 16, 48
"""The next bucket has a sixteenth of all that waits; at most that much is read from the log after a crash."""
_ENTRIES_USUAL = 300_000
"""The usual limit of entries in a bucket, since they are in memory three times while it is written; a forty-eighth of all if
that is more. Entries at full speed fill one bucket after the other.
"""
START = Position(-1, 0)


@record(frozen=True, slots=True)
class Bucket:
    """`ledger_id` is where it is, `key` the property that says so; its entries lie in [first, last]."""

    ledger_id: int
    key: str
    first: Position
    last: Position
    size_bytes: int = 0

    @property
    def end(self) -> Position:
        return Position(self.last.ledger_id, self.last.entry_id + 1)


@record(frozen=True, slots=True)
class Store:
    """Store the entries that wait in [start, end), instead of these buckets."""

    start: Position
    end: Position
    replaced: Sequence[Bucket] = ()


@record(frozen=True, slots=True)
class Drop:
    """These are of no use."""

    buckets: Sequence[Bucket]


@record(frozen=True, slots=True)
class BucketRule:
    """`count_min`: fewer than that are never stored (delayedDeliveryMinIndexCountPerBucket); 0: nothing is."""

    count_min: int = 50_000
    count_max: int = ENTRIES_MAX
    buckets_max: int = BUCKETS_MAX


def next_step(
    buckets: Sequence[Bucket],
    delays: Delays,
    stored_to: Position,
    reached: Position | None,
    rule: BucketRule,
    *,
    is_quiet: bool,
) -> Store | Drop | None:
    """Returns the next step. `is_quiet`: no new entry has come for long; then all waiting entries are stored."""
    waiting = Waiting(delays.waiting())
    useless = [bucket for bucket in buckets if not waiting.between(bucket.first, bucket.end)]
    if useless:
        return Drop(useless)
    if len(buckets) >= rule.buckets_max:
        return _merge(buckets, waiting, rule)
    if reached is None or not rule.count_min:
        return None
    count = len(delays)
    wanted = rule.count_min if is_quiet else max(min(count // _SHARES_MIN, _ENTRIES_USUAL), count // _SHARES_MAX)
    most = min(rule.count_max, max(rule.count_min, _ENTRIES_USUAL, count // _SHARES_MAX))
    lost = _lost(buckets, waiting, min(rule.count_min, most), most)
    return lost or _store(waiting, stored_to, reached, min(max(wanted, rule.count_min), rule.count_max), most)


def _store(waiting: "Waiting", start: Position, reached: Position, count_min: int, count_max: int) -> Store | None:
    """Bucket that ends with a ledger where that has enough entries: such buckets are Apache's, too."""
    for end in (Position(reached.ledger_id, 0), reached):
        count = waiting.between(start, end)
        if count > count_max:
            cut = waiting.after(start, count_max)
            following = Position(cut.ledger_id + 1, 0)
            whole = Position(cut.ledger_id, 0) if waiting.between(cut, following) else following
            return Store(start, whole if waiting.between(start, whole) >= count_min else cut)
        if count >= count_min:
            return Store(start, end)
    return None


def _lost(buckets: Sequence[Bucket], waiting: "Waiting", count_min: int, count_max: int) -> Store | None:
    """A bucket for waiting entries that no bucket covers, before a bucket that is there: the former one could not be read."""
    at = START
    for bucket in sorted(buckets, key=lambda bucket: bucket.first):
        found = _store(waiting, at, bucket.first, count_min, count_max) if at < bucket.first else None
        if found is not None:
            return found
        at = max(at, bucket.end)
    return None


def _merge(buckets: Sequence[Bucket], waiting: "Waiting", rule: BucketRule) -> Store | None:
    """Merges the neighbours with the fewest entries left."""
    ordered = sorted(buckets, key=lambda bucket: bucket.first)
    best, least = None, rule.count_max + 1
    for start in range(len(ordered) - MERGED_MAX + 1):
        group = ordered[start : start + MERGED_MAX]
        end = max(bucket.end for bucket in group)
        count = waiting.between(group[0].first, end)
        if count < least:
            best, least = Store(group[0].first, end, tuple(group)), count
    return best


class Waiting:
    """Waiting entries, for counting: there may be very many ledgers."""

    def __init__(self, entries: EntrySet) -> None:
        self._ledgers = list(entries.ledgers())
        self._ids = [ledger_id for ledger_id, _ in self._ledgers]

    def between(self, start: Position, end: Position) -> int:
        """Number of entries that wait in [start, end)."""
        count = 0
        for ledger_id, entry_ids in self._ledgers[
            bisect_left(self._ids, start.ledger_id) : bisect_right(self._ids, end.ledger_id)
        ]:
            first = start.entry_id if ledger_id == start.ledger_id else 0
            stop = end.entry_id if ledger_id == end.ledger_id else entry_ids.max() + 1
            count += entry_ids.range_cardinality(first, stop) if first < stop else 0
        return count

    def after(self, start: Position, count: int) -> Position:
        """The place after so many of those that wait from `start` on; there are more."""
        for ledger_id, entry_ids in self._ledgers[bisect_left(self._ids, start.ledger_id) :]:
            before = entry_ids.rank(start.entry_id - 1) if ledger_id == start.ledger_id and start.entry_id > 0 else 0
            if len(entry_ids) - before >= count:
                return Position(ledger_id, entry_ids[before + count - 1] + 1)
            count -= len(entry_ids) - before
        raise AssertionError("there are not so many")


def has_ledgers_of_its_own(step: Store, first: Position, last: Position, others: Sequence[Bucket]) -> bool:
    """Whether no other bucket has, or will have, entries of the ledgers from that of `first` to that of `last`.

    Apache names buckets by these ledgers alone.
    """
    if step.end.ledger_id <= last.ledger_id:
        return False
    return all(other.last.ledger_id < first.ledger_id or other.first.ledger_id > last.ledger_id for other in others)
