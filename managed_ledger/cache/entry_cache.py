"""EntryCache: recent runs of all managed ledgers of a process, bounded together. Pure: time is an argument, in seconds.

Evicts entries that were not asked for during `age_s_max`, and those asked for longest ago when `bytes_max` is reached; entries
that every reader has had go at once (`CachedLog.remove_before`, called by the owner of the readers). Small runs that follow one
another are joined when they are read together, so that the next reader finds one run. Entries fetched for readers that catch
up have a share of their own (`has_room_ahead`), so that any number of them leaves room for fresh ones. Never reads a ledger.
"""

from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

from pyroaring import BitMap
from sortedcontainers import SortedDict

from wire.position import Position
from wire.run import EntryRun
from wire.run_parts import cut, join

from .reads_in_flight import ReadsInFlight

AHEAD_SHARE = 0.5
"""Share of the cache for entries that catch-up readers will ask for next."""
JOIN_BYTES_MAX = 64 << 10
"""Larger runs are handed out as they are: copying them costs more than another read."""


_NOTHING = EntryRun(-1, 0, b"", array("I", [0]))


class _Cached:
    """A run, when it was last asked for, and that time as it was when it was queued."""

    __slots__ = ("asked_at", "is_ahead", "ledger", "queued_at", "run")

    def __init__(self, ledger: "_Ledger", run: EntryRun, now: float, is_ahead: bool) -> None:
        self.ledger: _Ledger | None = ledger
        self.is_ahead = is_ahead
        self.run = run
        self.asked_at = self.queued_at = now


class _Ledger:
    """The cached runs of one ledger by first entry; they do not overlap. No run had an entry after `last_entry_id`."""

    __slots__ = ("last_entry_id", "ledger_id", "log", "runs")

    def __init__(self, log: "CachedLog", ledger_id: int) -> None:
        self.log = log
        self.ledger_id = ledger_id
        self.last_entry_id = -1
        self.runs: Any = SortedDict()


class EntryCache:
    """The bounds of all `CachedLog`s. `filled` is called when it was empty and is no more: from then on the owner calls
    `evict` at each `next_eviction_at`, until that is None. Beyond `bytes_max` it goes down to `watermark` of it at once.
    """

    def __init__(
        self,
        bytes_max: int,
        age_s_max: float,
        filled: Callable[[], None] = lambda: None,
        watermark: float = 1.0,
        in_flight: ReadsInFlight | None = None,
    ) -> None:
        self.bytes_max = bytes_max
        self.age_s_max = age_s_max
        self.in_flight = in_flight or ReadsInFlight(0, 0)
        """Reads on their way into memory; their bytes are not part of `size_bytes` before they arrive."""
        self.size_bytes = 0
        self.evictions = 0
        """Runs that went because of their age, or for want of room."""
        self.ahead_bytes = 0
        """Bytes fetched ahead for catch-up readers, together with the bytes promised to them."""
        self._filled = filled
        self._bytes_kept_max = int(bytes_max * watermark)
        self._queue: deque[_Cached] = deque()

    def added(self, cached: _Cached) -> None:
        self.size_bytes += cached.run.size_bytes
        if cached.is_ahead:
            self.ahead_bytes += cached.run.size_bytes
        self._queue.append(cached)
        if len(self._queue) == 1:
            self._filled()

    def has_room_ahead(self, size: int) -> bool:
        """Whether so much more may be fetched for readers that catch up."""
        return self.ahead_bytes + size <= self.bytes_max * AHEAD_SHARE

    def next_eviction_at(self) -> float | None:
        """Time at which the longest unread run is old enough, as far as is known without a look at all."""
        return self._queue[0].queued_at + self.age_s_max if self._queue else None

    def evict(self, now: float) -> None:
        """Down to the bounds."""
        queue = self._queue
        limit = self.bytes_max if self.size_bytes <= self.bytes_max else self._bytes_kept_max
        while queue:
            cached = queue[0]
            if self.size_bytes <= limit and now - cached.queued_at < self.age_s_max:
                return
            if cached.asked_at > cached.queued_at and now - cached.asked_at < self.age_s_max:
                queue.popleft()
                cached.queued_at = cached.asked_at
                queue.append(cached)
                self._skip_removed()
            else:
                self.evictions += 1
                self.remove(cached)

    def remove(self, cached: _Cached) -> None:
        ledger = cached.ledger
        if ledger is None:
            return
        cached.ledger = None
        self.size_bytes -= cached.run.size_bytes
        if cached.is_ahead:
            self.ahead_bytes -= cached.run.size_bytes
        del ledger.runs[cached.run.first_entry_id]
        if not ledger.runs:
            ledger.log.forget(ledger.ledger_id)
        cached.run = _NOTHING  # its place in the queue must not keep the buffer
        self._skip_removed()

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert not self._queue or self._queue[0].ledger is not None, "the first run of the queue is cached"
        cached = [each for each in self._queue if each.ledger is not None]
        assert self.size_bytes == sum(each.run.size_bytes for each in cached) <= max(self.bytes_max, 0)
        assert self.ahead_bytes >= sum(each.run.size_bytes for each in cached if each.is_ahead)

    def _skip_removed(self) -> None:
        """Skip removed runs: the first one in the queue is in the cache afterwards."""
        while self._queue and self._queue[0].ledger is None:
            self._queue.popleft()


class CachedLog:
    """Cached runs of one managed ledger."""

    def __init__(self, cache: EntryCache) -> None:
        self._cache = cache
        self._ledgers: dict[int, _Ledger] = {}

    @property
    def shared(self) -> EntryCache:
        return self._cache

    def __contains__(self, position: Position) -> bool:
        ledger = self._ledgers.get(position.ledger_id)
        if ledger is None:
            return False
        place = ledger.runs.bisect_right(position.entry_id) - 1
        return place >= 0 and bool(ledger.runs.peekitem(place)[1].run.last_entry_id >= position.entry_id)

    def insert(self, run: EntryRun, now: float, is_ahead: bool = False) -> None:
        """Keep a run up to where something of it is cached already. The cache may evict anything for it."""
        ledger = self._ledgers.get(run.ledger_id)
        if ledger is None:
            ledger = self._ledgers[run.ledger_id] = _Ledger(self, run.ledger_id)
        elif run.first_entry_id <= ledger.last_entry_id:
            fresh = self._fresh(ledger, run)
            if fresh is None:
                return
            run = fresh
        ledger.last_entry_id = max(ledger.last_entry_id, run.last_entry_id)
        cached = ledger.runs[run.first_entry_id] = _Cached(ledger, run, now, is_ahead)
        self._cache.added(cached)
        self._cache.evict(now)

    def get(self, ledger_id: int, entry_id: int, entries_max: int, bytes_max: int, now: float) -> EntryRun | None:
        """The run from that entry, within the bounds but for the first entry; None when it is not cached."""
        ledger = self._ledgers.get(ledger_id)
        if ledger is None:
            return None
        runs = ledger.runs
        newest: _Cached | None = runs.get(entry_id)
        if newest is not None and newest.run.last_entry_id == ledger.last_entry_id:  # nothing follows it: a reader at the tail
            newest.asked_at = now
            return cut(newest.run, entry_id, entries_max, bytes_max)
        place = runs.bisect_right(entry_id) - 1
        if place < 0:
            return None
        cached: _Cached = runs.peekitem(place)[1]
        if entry_id > cached.run.last_entry_id:
            return None
        cached.asked_at = now
        part = cut(cached.run, entry_id, entries_max, bytes_max)
        is_end = part.last_entry_id == cached.run.last_entry_id
        if is_end and place + 1 < len(runs) and part.count < entries_max and part.size_bytes < JOIN_BYTES_MAX:
            return self._joined(ledger, place, part, entries_max, bytes_max, now)
        return part

    def peek(self, ledger_id: int, entry_id: int, entries_max: int) -> EntryRun | None:
        """Rest of one cached run from that entry on; it is not kept for longer because of the look."""
        ledger = self._ledgers.get(ledger_id)
        place = -1 if ledger is None else ledger.runs.bisect_right(entry_id) - 1
        if ledger is None or place < 0:
            return None
        run: EntryRun = ledger.runs.peekitem(place)[1].run
        return None if entry_id > run.last_entry_id else cut(run, entry_id, entries_max, run.size_bytes)

    def holding(self, ledger_id: int, entry_ids: BitMap, now: float) -> list[EntryRun] | None:
        """Cached runs that together have all these entries, ascending; None when one entry is not cached."""
        ledger = self._ledgers.get(ledger_id)
        found: list[EntryRun] = []
        entry_id, last = entry_ids.min(), entry_ids.max()
        while ledger is not None:
            place = ledger.runs.bisect_right(entry_id) - 1
            cached = ledger.runs.peekitem(place)[1] if place >= 0 else None
            if cached is None or cached.run.last_entry_id < entry_id:
                return None
            cached.asked_at = now
            found.append(cached.run)
            if cached.run.last_entry_id >= last:
                return found
            entry_id = entry_ids.next_set_bit(cached.run.last_entry_id + 1)
        return None

    def first_position(self) -> Position | None:
        """First cached position."""
        if not self._ledgers:
            return None
        ledger = self._ledgers[min(self._ledgers)]
        return Position(ledger.ledger_id, ledger.runs.peekitem(0)[0])

    def remove_before(self, position: Position, start: Position | None = None) -> None:
        """Let go of the runs that end before it; only of those from `start` on, when given."""
        for ledger_id in sorted(self._ledgers):
            ledger = self._ledgers[ledger_id]
            place = 0
            if start is not None and ledger_id <= start.ledger_id:
                place = ledger.runs.bisect_left(start.entry_id) if ledger_id == start.ledger_id else len(ledger.runs)
            while place < len(ledger.runs):
                cached = ledger.runs.peekitem(place)[1]
                if (ledger_id, cached.run.last_entry_id) >= position:
                    return
                self._cache.remove(cached)

    def forget(self, ledger_id: int) -> None:
        """The ledger has no cached run (any more)."""
        self._ledgers.pop(ledger_id, None)

    def remove_ledger(self, ledger_id: int) -> None:
        ledger = self._ledgers.get(ledger_id)
        if ledger is not None:
            for cached in list(ledger.runs.values()):
                self._cache.remove(cached)

    def close(self) -> None:
        for ledger_id in list(self._ledgers):
            self.remove_ledger(ledger_id)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        for ledger_id, ledger in self._ledgers.items():
            assert ledger.runs, f"ledger {ledger_id} has no cached run"
            last = -1
            for first, cached in ledger.runs.items():
                assert cached.ledger is ledger
                assert (cached.run.ledger_id, cached.run.first_entry_id) == (ledger_id, first)
                assert first > last, "cached runs do not overlap"
                last = cached.run.last_entry_id
            assert last <= ledger.last_entry_id

    def _fresh(self, ledger: _Ledger, run: EntryRun) -> EntryRun | None:
        """Entries before the next cached run, copied unless they are all: a part must not keep the whole buffer.
        None: it begins in a cached run."""
        place = ledger.runs.bisect_right(run.first_entry_id)
        if place and ledger.runs.peekitem(place - 1)[1].run.last_entry_id >= run.first_entry_id:
            return None
        following = ledger.runs.peekitem(place)[0] if place < len(ledger.runs) else run.last_entry_id + 1
        if following > run.last_entry_id:
            return run
        return join([run.entries(run.first_entry_id, following - run.first_entry_id)])

    def _joined(self, ledger: _Ledger, place: int, part: EntryRun, entries_max: int, bytes_max: int, now: float) -> EntryRun:
        """`part` with the small runs that follow it; they are one run in the cache then, too."""
        runs = ledger.runs
        joined = [runs.peekitem(place)[1]]
        parts = [part]
        entries, size = part.count, part.size_bytes
        for following in runs.islice(place + 1, place + 1 + entries_max):
            cached = runs[following]
            run = cached.run
            entries += run.count
            size += run.size_bytes
            if (
                following != parts[-1].last_entry_id + 1
                or run.size_bytes > JOIN_BYTES_MAX
                or run.header_bytes != part.header_bytes
            ):
                break
            if entries > entries_max or size > bytes_max:
                break
            parts.append(run)
            joined.append(cached)
        if len(parts) == 1:
            return part
        whole = join(parts)
        if joined[0].run is part:
            for cached in joined:
                self._cache.remove(cached)
            self.insert(whole, now, joined[0].is_ahead)
        return whole
