"""Entries that wait for their time (MessageMetadata.deliver_at_time): their set, and those that are due.

Owns the entries that a dispatcher has read and held back. They are in memory alone: the next load of the topic reads them again
(docs/adr/0027-delayed-messages-in-a-wheel.md). An entry costs eight bytes and a bit, for any spread of times (Apache's
InMemoryDelayedDeliveryTracker has a bitmap for each ledger and time, which is small only when times are close together).

A bucket is due at the end of its tick, so that nothing is early. Bits mark waiting entries; an item whose bit is cleared was
acknowledged or cleared meanwhile, and is skipped at its time. Times are in milliseconds since the epoch.
"""

from array import array
from collections.abc import Iterator

from pyroaring import BitMap

from wire.kernels.delayed_index import items_at, items_under, sorted_by_tick
from wire.kernels.delays import LEVELS, in_buckets, items_of, numbers_of
from wire.position import Position

from ..entry_sets import EntrySet
from .delayed_part import DelayedPart

ENTRIES_MAX = 50_000_000
"""Waiting at once; at it nothing more is read."""
TICKS_MAX = 1 << 31
"""Longest time ahead that an entry is kept; entries due later are looked at again then."""
_PIECE = 1 << 16
_NUMBERS_MAX = 1 << 16
_STALE_MIN = 1 << 16
_ITEM_BYTES = 8


class Delays:
    """Delayed entries of one subscription. `tick_ms`: how exact their times are."""

    def __init__(self, tick_ms: int) -> None:
        self._tick_ms = tick_ms
        self._base_ms = 0
        self._buckets: dict[int, array[int]] = {}
        self._keys_min: list[int | None] = [None] * LEVELS
        """Key of the first bucket of each level; None where there is none."""
        self._items = 0
        self._waiting = EntrySet()
        self._count = 0
        self._numbers: dict[int, dict[int, int]] = {}
        """Number that stands in an item for a ledger and the upper half of an entry id."""
        self._places: dict[int, tuple[int, int]] = {}
        self._numbers_given = 0
        self._spent: set[int] = set()
        """Numbers that nothing waits under any more, though items may still have them: not to be given before `_start_over`."""

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        return self._count >= ENTRIES_MAX or len(self._places) >= _NUMBERS_MAX - 2

    @property
    def size_bytes(self) -> int:
        """Bytes of the items; the rest is small beside them."""
        return self._items * _ITEM_BYTES

    @property
    def bucket_count(self) -> int:
        return len(self._buckets)

    def known_in(self, ledger_id: int) -> BitMap:
        """Entries that wait in a ledger; not to be changed."""
        return self._waiting.in_ledger(ledger_id)

    def waiting(self) -> EntrySet:
        """All waiting entries; not to be changed."""
        return self._waiting

    def next_ms(self) -> int | None:
        """Time of the next call of `take_due`."""
        if not self._count:
            return None
        starts = [(key & 0xFFFFFFFF) << 8 * level for level, key in enumerate(self._keys_min) if key is not None]
        return self._base_ms + min(starts) * self._tick_ms

    def add(self, ledger_id: int, first_entry_id: int, times: "array[int]", indexes: "array[int]", now_ms: int) -> None:
        """Entries of a run, at these indexes, wait for these times. Entries that wait already are left as they are."""
        if not indexes:
            return
        self._begin(now_ms)
        wanted = BitMap(indexes).shift(first_entry_id)
        known = wanted & self._waiting.in_ledger(ledger_id)
        if known:
            indexes = (wanted - known).shift(-first_entry_id).to_array()
            wanted -= known
            if not wanted:
                return
        self._waiting.add(ledger_id, wanted)
        self._count += len(indexes)
        for start, stop in _halves(first_entry_id, indexes):
            self._place(ledger_id, first_entry_id, times, indexes[start:stop], now_ms)

    def add_known(
        self, ledger_id: int, known: BitMap, entry_ids: "array[int]", times: "array[int]", gone: BitMap, now_ms: int
    ) -> None:
        """Entries, which are those in `known`, wait for these times; but for those in `gone`, and those that wait already."""
        wanted = known - self._waiting.in_ledger(ledger_id)
        wanted -= gone
        highs = list(_highs(wanted)) if wanted else []
        self._begin(now_ms)
        now_tick = self._make_room(now_ms, len(highs))
        if not highs or len(self._places) + len(self._spent) + len(highs) >= _NUMBERS_MAX - 2:
            return
        if 2 * len(wanted) < len(entry_ids):  # else an item too many costs less than to find it
            chosen = [place for place, entry_id in enumerate(entry_ids) if entry_id in wanted]
            entry_ids = array("I", map(entry_ids.__getitem__, chosen))
            times = array("q", map(times.__getitem__, chosen))
        self._waiting.add(ledger_id, wanted)
        self._count += len(wanted)
        numbers = array("I", [0]) * (highs[-1] - highs[0] + 1)
        for high in highs:
            numbers[high - highs[0]] = self._number(ledger_id, high) + 1
        items = items_at(times, entry_ids, numbers, highs[0], self._base_ms, self._tick_ms, now_tick + TICKS_MAX)
        self._keep(in_buckets(items, now_tick))

    def _begin(self, now_ms: int) -> None:
        """Times are counted from a whole tick, so that they come out the same whenever they are stored and taken in again."""
        if not self._count:
            self.clear()
            self._base_ms = now_ms - now_ms % self._tick_ms

    def part(self, start: Position, end: Position) -> DelayedPart:
        """Entries that wait in [start, end) now, by time. One step: a few nanoseconds for each entry that waits anywhere."""
        wanted = self._waiting.between(start, end)
        is_wanted, ledger_of, high_of = bytearray(_NUMBERS_MAX), array("Q", [0]) * _NUMBERS_MAX, array("I", [0]) * _NUMBERS_MAX
        for ledger_id, entry_ids in wanted.ledgers():
            for high in _highs(entry_ids):
                number = self._numbers[ledger_id][high]
                is_wanted[number], ledger_of[number], high_of[number] = 1, ledger_id, high
        chosen = array("Q")
        for items in self._buckets.values():
            chosen += items_under(items, is_wanted)
        return DelayedPart(wanted, sorted_by_tick(chosen), ledger_of, high_of, self._base_ms, self._tick_ms)

    def _place(self, ledger_id: int, first_entry_id: int, times: "array[int]", indexes: "array[int]", now_ms: int) -> None:
        """Places entries that have the upper half of their entry id in common."""
        high = (first_entry_id + indexes[0]) >> 16
        now_tick = self._make_room(now_ms, 1)
        first_number = (self._number(ledger_id, high) << 16) + first_entry_id - (high << 16)
        items = items_of(times, indexes, first_number & 0xFFFFFFFF, self._base_ms, self._tick_ms, now_tick + TICKS_MAX)
        self._keep(in_buckets(items, now_tick))

    def _make_room(self, now_ms: int, numbers: int) -> int:
        """Makes room for so many numbers more, if possible, and for ticks; returns the present tick."""
        now_tick = self._tick(now_ms)
        are_numbers_used_up = len(self._places) + len(self._spent) + numbers > _NUMBERS_MAX - 2
        if not are_numbers_used_up and 0 <= now_tick <= TICKS_MAX // 2:
            return now_tick
        self._start_over(now_ms)
        return self._tick(now_ms)

    def _keep(self, found: "dict[int, array[int]]") -> None:
        for key, items in found.items():
            self._items += len(items)
            known = self._buckets.get(key)
            if known is not None:
                known.extend(items)
                continue
            self._buckets[key] = items
            first = self._keys_min[key >> 32]
            if first is None or key < first:
                self._keys_min[key >> 32] = key

    def take_due(self, now_ms: int) -> EntrySet:
        """Returns the entries whose time has come; they wait no more."""
        found = EntrySet()
        if not self._count:
            self.clear()
            return found
        now_tick = self._tick(now_ms)
        for level in range(LEVELS - 1, 0, -1):
            while (key := self._keys_min[level]) is not None and (key & 0xFFFFFFFF) << 8 * level <= now_tick:
                self._unfold(key, now_tick)
        while (key := self._keys_min[0]) is not None and key <= now_tick:
            self._free(numbers_of(self._pop(key)), found)
        if self._items > 2 * self._count + _STALE_MIN:
            self._start_over(now_ms)
        return found

    def _tick(self, now_ms: int) -> int:
        return (now_ms - self._base_ms) // self._tick_ms

    def _unfold(self, key: int, now_tick: int) -> None:
        """Moves the items of a bucket to buckets of lower levels, piece by piece: they are never in memory twice."""
        items = self._pop(key)
        while items:
            piece = items[-_PIECE:]
            del items[-_PIECE:]
            self._keep(in_buckets(piece, now_tick))

    def _pop(self, key: int) -> "array[int]":
        items = self._buckets.pop(key)
        self._items -= len(items)
        level = key >> 32
        self._keys_min[level] = min((other for other in self._buckets if other >> 32 == level), default=None)
        return items

    def _free(self, numbers: "array[int]", found: EntrySet) -> None:
        left = BitMap(numbers)
        while left:
            number = left.min() >> 16
            these = left & BitMap(range(number << 16, (number + 1) << 16))
            left -= these
            place = self._places.get(number)
            if place is not None:
                ledger_id, high = place
                due = self._waiting.remove(ledger_id, these.shift((high - number) << 16))
                self._count -= len(due)
                found.add(ledger_id, due)
                self._forget_ledger(ledger_id)

    def _number(self, ledger_id: int, high: int) -> int:
        known = self._numbers.setdefault(ledger_id, {})
        number = known.get(high)
        if number is None:
            number = self._numbers_given
            while number & 0xFFFF in self._places or number & 0xFFFF in self._spent:
                number += 1
            number &= 0xFFFF
            self._numbers_given = number + 1
            known[high] = number
            self._places[number] = (ledger_id, high)
        return number

    def _forget_ledger(self, ledger_id: int) -> None:
        """Gives up the ledger's numbers, if no entry in it waits; other ledgers may get them one day."""
        if not self._waiting.in_ledger(ledger_id):
            for number in self._numbers.pop(ledger_id, {}).values():
                del self._places[number]
                self._spent.add(number)

    def set_tick(self, tick_ms: int) -> None:
        """Sets the exactness of entries to come; entries that wait already become no more exact."""
        if self._count and tick_ms != self._tick_ms:
            buckets, self._buckets = self._buckets, {}
            self._keys_min = [None] * LEVELS
            self._items = 0
            for items in buckets.values():
                scaled = array("Q", (_scaled(item, self._tick_ms, tick_ms) for item in items))
                self._keep(in_buckets(scaled, 0))
        self._tick_ms = tick_ms

    def remove(self, ledger_id: int, entry_ids: BitMap) -> None:
        """They are acknowledged, or gone."""
        removed = self._waiting.remove(ledger_id, entry_ids)
        if removed:
            self._count -= len(removed)
            self._forget_ledger(ledger_id)

    def remove_between(self, start: Position, end: Position) -> None:
        """Everything in [start, end)."""
        for ledger_id, entry_ids in self._waiting.between(start, end).ledgers():
            self.remove(ledger_id, entry_ids)

    def clear(self) -> None:
        self._buckets.clear()
        self._keys_min = [None] * LEVELS
        self._items = self._count = 0
        self._waiting.clear()
        self._numbers.clear()
        self._places.clear()
        self._spent.clear()

    def _start_over(self, now_ms: int) -> None:
        """Counts ticks from now on, and drops items whose entries do not wait any more: rare, so that it may be slow."""
        buckets, self._buckets = self._buckets, {}
        self._keys_min = [None] * LEVELS
        self._items = 0
        moved = (now_ms - self._base_ms) // self._tick_ms
        self._base_ms += moved * self._tick_ms
        for items in buckets.values():
            kept = array("Q", (_moved(item, moved) for item in items if self._is_waiting(item & 0xFFFFFFFF)))
            self._keep(in_buckets(kept, 0))
        self._spent.clear()

    def _is_waiting(self, number: int) -> bool:
        place = self._places.get(number >> 16)
        return place is not None and Position(place[0], place[1] << 16 | number & 0xFFFF) in self._waiting

    def check_invariants(self) -> None:
        self._waiting.check_invariants()
        assert self._count == len(self._waiting), f"{self._count} counted, {len(self._waiting)} wait"
        assert self._items == sum(map(len, self._buckets.values())) >= self._count
        assert sum(map(len, self._numbers.values())) == len(self._places)
        for level in range(LEVELS):
            keys = [key for key in self._buckets if key >> 32 == level]
            assert self._keys_min[level] == min(keys, default=None)
        items = {item & 0xFFFFFFFF for bucket in self._buckets.values() for item in bucket}
        assert sum(map(self._is_waiting, items)) == self._count, "something waits for ever"


def _moved(item: int, ticks: int) -> int:
    return min(max(0, (item >> 32) - ticks), TICKS_MAX) << 32 | item & 0xFFFFFFFF


def _scaled(item: int, old_ms: int, new_ms: int) -> int:
    return min(-((item >> 32) * old_ms // -new_ms), TICKS_MAX) << 32 | item & 0xFFFFFFFF


def _highs(entry_ids: BitMap) -> Iterator[int]:
    """The upper halves that there are."""
    high: int | None = entry_ids.min() >> 16
    while high is not None:
        yield high
        above = (high + 1) << 16
        high = entry_ids.next_set_bit(above) >> 16 if entry_ids.max() >= above else None


def _halves(first_entry_id: int, indexes: "array[int]") -> list[tuple[int, int]]:
    """[start, stop) of the parts with one upper half of the entry id: nearly always there is one."""
    starts = [0]
    if (first_entry_id + indexes[0]) >> 16 != (first_entry_id + indexes[-1]) >> 16:
        highs = [(first_entry_id + index) >> 16 for index in indexes]
        starts += [place for place in range(1, len(highs)) if highs[place] != highs[place - 1]]
    return list(zip(starts, [*starts[1:], len(indexes)], strict=True))
