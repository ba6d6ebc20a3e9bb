"""Sets of entries: a roaring bitmap of entry ids for each ledger. Holds no empty bitmap. Knows nothing of consumers.

Few ledgers, the usual case, are in a dict. Many ledgers are kept in order, so that a repeated look-up of the first one does not
scan all of them.
"""

from collections.abc import Iterable, Iterator

from pyroaring import BitMap
from sortedcontainers import SortedDict

from wire.kernels.delivery_rows import EntrySetRow
from wire.position import Position

_UNSORTED_MAX = 16
"""Ledgers in a plain dict."""


class EntrySet(EntrySetRow):
    """A mutable set of positions, cheap for runs and for holes alike."""

    __slots__ = ()

    _by_ledger: dict[int, BitMap]
    """A SortedDict when there are many."""

    def __init__(self) -> None:
        self._by_ledger = {}
        self._spare: BitMap | None = None

    def __len__(self) -> int:
        return sum(map(len, self._by_ledger.values()))

    def __bool__(self) -> bool:
        return bool(self._by_ledger)

    def __contains__(self, position: Position) -> bool:
        return position.entry_id in self._by_ledger.get(position.ledger_id, ())

    def in_ledger(self, ledger_id: int) -> BitMap:
        """The entries of one ledger; not to be changed."""
        return self._by_ledger.get(ledger_id) or BitMap()

    def ledgers(self) -> Iterator[tuple[int, BitMap]]:
        """Bitmaps in the order of ledgers; a snapshot, so that the set may change meanwhile."""
        return iter(sorted(self._by_ledger.items(), key=_ledger_id))

    def _ids(self, first: int, last: int | None = None) -> Iterable[int]:
        """The ledgers from `first` to `last`, in order. The set must not change meanwhile."""
        known = self._by_ledger
        if isinstance(known, SortedDict):
            found: Iterable[int] = known.irange(first, last)
            return found
        return sorted(ledger_id for ledger_id in known if ledger_id >= first and (last is None or ledger_id <= last))

    def ledgers_from(self, position: Position) -> Iterator[tuple[int, BitMap]]:
        """Same as `ledgers`, for entries at or after the position."""
        for ledger_id in self._ids(position.ledger_id):
            entry_ids = self._by_ledger[ledger_id]
            if ledger_id == position.ledger_id and entry_ids.min() < position.entry_id:
                entry_ids = _from(entry_ids, position.entry_id)
            if entry_ids:
                yield ledger_id, entry_ids

    def first_few(self, count: int) -> "EntrySet":
        """A copy of so many of the first, or of all there are."""
        found = EntrySet()
        for ledger_id in self._ids(_FIRST_LEDGER):
            if count <= 0:
                break
            entry_ids = self._by_ledger[ledger_id][:count]
            found.add(ledger_id, entry_ids)
            count -= len(entry_ids)
        return found

    def first(self) -> Position | None:
        if not self._by_ledger:
            return None
        known = self._by_ledger
        ledger_id: int = known.keys()[0] if isinstance(known, SortedDict) else min(known)
        return Position(ledger_id, self._by_ledger[ledger_id].min())

    def first_from(self, position: Position) -> Position | None:
        """The first one at or after the position."""
        for ledger_id in self._ids(position.ledger_id):
            entry_ids = self._by_ledger[ledger_id]
            start = position.entry_id if ledger_id == position.ledger_id else 0
            if start <= entry_ids.max():
                return Position(ledger_id, entry_ids.next_set_bit(start))
        return None

    def add(self, ledger_id: int, entry_ids: BitMap) -> None:
        """Takes a copy where it keeps anything."""
        known = self._by_ledger.get(ledger_id)
        if known is not None:
            known |= entry_ids
        elif entry_ids:
            self._by_ledger[ledger_id] = BitMap(entry_ids)
            if len(self._by_ledger) > _UNSORTED_MAX and not isinstance(self._by_ledger, SortedDict):
                self._by_ledger = SortedDict(self._by_ledger)

    def add_range(self, ledger_id: int, first: int, end: int) -> None:
        """The entries of [first, end)."""
        known = self._by_ledger.get(ledger_id)
        if known is None:
            self.add(ledger_id, BitMap((first,)) if end == first + 1 else BitMap(range(first, end)))
        elif end == first + 1:
            known.add(first)
        else:
            known.add_range(first, end)

    def update(self, other: "EntrySet") -> None:
        for ledger_id, entry_ids in other._by_ledger.items():
            self.add(ledger_id, entry_ids)

    def remove(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        """Returns the removed entries; the caller owns the bitmap."""
        known = self._by_ledger.get(ledger_id)
        if known is None:
            return BitMap()
        found = known & entry_ids
        if found:
            known -= found
            if not known:
                del self._by_ledger[ledger_id]
        return found

    def remove_entry(self, ledger_id: int, entry_id: int) -> bool:
        """Whether it was there."""
        known = self._by_ledger.get(ledger_id)
        if known is None or entry_id not in known:
            return False
        known.remove(entry_id)
        if not known:
            del self._by_ledger[ledger_id]
        return True

    def between(self, start: Position, end: Position) -> "EntrySet":
        """A copy of the entries in [start, end)."""
        found = EntrySet()
        for ledger_id in self._ids(start.ledger_id, end.ledger_id):
            chosen = BitMap(self._by_ledger[ledger_id])
            if ledger_id == end.ledger_id:
                chosen.remove_range(max(0, end.entry_id), _LARGEST_ENTRY_ID + 1)
            if ledger_id == start.ledger_id:
                chosen = _from(chosen, start.entry_id)
            found.add(ledger_id, chosen)
        return found

    def remove_between(self, start: Position, end: Position) -> "EntrySet":
        """Everything in [start, end), removed."""
        removed = self.between(start, end)
        for ledger_id, entry_ids in removed.ledgers():
            self.remove(ledger_id, entry_ids)
        return removed

    def clear(self) -> None:
        self._by_ledger = {}

    def check_invariants(self) -> None:
        assert all(self._by_ledger.values()), "an empty bitmap is kept"
        assert not self._spare, "the spare bitmap has entries"
        assert all(known is not self._spare for known in self._by_ledger.values()), "the spare bitmap is in use"


def entry_set(positions: Iterable[Position]) -> EntrySet:
    """Set of single positions, as a client names them."""
    ids: dict[int, list[int]] = {}
    for ledger_id, entry_id in positions:
        if 0 <= entry_id <= _LARGEST_ENTRY_ID:
            ids.setdefault(ledger_id, []).append(entry_id)
    found = EntrySet()
    for ledger_id, entry_ids in ids.items():
        found.add(ledger_id, BitMap(entry_ids))
    return found


def union(sets: Iterable[EntrySet]) -> EntrySet:
    found = EntrySet()
    for each in sets:
        found.update(each)
    return found


def _from(entry_ids: BitMap, entry_id: int) -> BitMap:
    """A copy of those from this one on."""
    found = entry_ids.copy()
    found.remove_range(0, max(0, entry_id))
    return found


def _ledger_id(item: tuple[int, BitMap]) -> int:
    return item[0]


_FIRST_LEDGER = -1 << 63
_LARGEST_ENTRY_ID = (1 << 32) - 1
"""Limit of a bitmap; a ledger rolls over long before."""
