"""Ranges: what holds which entries of one ledger, and of many; sorted, without overlap, the newest wins. Pure.

BookKeeper's bookie accepts any order of entry ids, gaps and overwrites; the last write of an entry is what a read gets
(a recovery writes entries again that are there already). Entries come nearly always in order: that is an append.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

NO_ENTRY = 1 << 63
"""Greater than every entry id."""


class Part(Protocol):
    """Consecutive entries: an EntryRun in memory, a Span on disk."""

    @property
    def first_entry_id(self) -> int: ...
    @property
    def last_entry_id(self) -> int: ...


class Sliceable(Part, Protocol):
    """A part of which a part can be made."""

    def entries(self, first_entry_id: int, count: int) -> "Sliceable": ...


P = TypeVar("P", bound=Sliceable)


class Ranges(Generic[P]):
    """The parts of one ledger."""

    __slots__ = ("_firsts", "_parts", "has_replaced")

    def __init__(self) -> None:
        self.has_replaced = False
        """A part has taken the place of older entries: cutting it out would not bring them back."""
        self._firsts: list[int] = []
        self._parts: list[P] = []

    def __iter__(self) -> Iterator[P]:
        return iter(self._parts)

    @property
    def last_entry_id(self) -> int:
        return self._parts[-1].last_entry_id if self._parts else -1

    def insert(self, part: P) -> None:
        """Add a part; what older parts hold of the same entries is forgotten."""
        parts = self._parts
        if not parts or part.first_entry_id > parts[-1].last_entry_id:
            parts.append(part)
            self._firsts.append(part.first_entry_id)
        else:
            self._insert_between(part)

    def find(self, entry_id: int) -> P | None:
        """The part that holds the entry."""
        index = bisect_right(self._firsts, entry_id) - 1
        if index < 0 or self._parts[index].last_entry_id < entry_id:
            return None
        return self._parts[index]

    def first_after(self, entry_id: int) -> int:
        """The first entry id of the next part that begins after `entry_id`; NO_ENTRY when there is none."""
        index = bisect_right(self._firsts, entry_id)
        return self._firsts[index] if index < len(self._firsts) else NO_ENTRY

    def between(self, first: int, last: int) -> list[P]:
        """The parts that begin with one of these entries."""
        return self._parts[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]

    def replace_between(self, first: int, last: int, parts: list[P]) -> None:
        """Other parts for those that `between` gives; they hold the same entries."""
        low, high = bisect_left(self._firsts, first), bisect_right(self._firsts, last)
        self._parts[low:high] = parts
        self._firsts[low:high] = [part.first_entry_id for part in parts]

    def _insert_between(self, new: P) -> None:
        first, last = new.first_entry_id, new.last_entry_id
        low = bisect_left(self._firsts, first)
        if low and self._parts[low - 1].last_entry_id >= first:
            low -= 1
        high = bisect_right(self._firsts, last)
        old = self._parts[low:high]
        self.has_replaced = self.has_replaced or bool(old)
        before = [_slice(part, part.first_entry_id, first - 1) for part in old if part.first_entry_id < first]
        after = [_slice(part, last + 1, part.last_entry_id) for part in old if part.last_entry_id > last]
        kept = [*before, new, *after]
        self._parts[low:high] = kept
        self._firsts[low:high] = [part.first_entry_id for part in kept]

    def cut(self, first: int, last: int) -> bool:
        """Take these entries out, all of which are here. False: they are not, or had taken the place of older ones.

        An iteration that began before goes on with the old parts.
        """
        low, high = bisect_left(self._firsts, first), bisect_right(self._firsts, last)
        if low and self._parts[low - 1].last_entry_id >= first:
            low -= 1
        old = self._parts[low:high]
        if self.has_replaced or joined_ranges(_common(part, first, last) for part in old) != [(first, last)]:
            return False
        before = [_slice(part, part.first_entry_id, first - 1) for part in old if part.first_entry_id < first]
        after = [_slice(part, last + 1, part.last_entry_id) for part in old if part.last_entry_id > last]
        self._parts = [*self._parts[:low], *before, *after, *self._parts[high:]]
        self._firsts = [part.first_entry_id for part in self._parts]
        return True

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert self._firsts == [part.first_entry_id for part in self._parts]
        for part, following in pairwise(self._parts):
            assert part.last_entry_id < following.first_entry_id, "parts ascend and do not overlap"
        assert all(part.first_entry_id <= part.last_entry_id for part in self._parts)


class LedgerRanges(Generic[P]):
    """The parts of many ledgers, by ledger id."""

    __slots__ = ("_ledgers",)

    def __init__(self) -> None:
        self._ledgers: dict[int, Ranges[P]] = {}

    def find(self, ledger_id: int, entry_id: int) -> P | None:
        """The part that holds the entry."""
        ranges = self._ledgers.get(ledger_id)
        return None if ranges is None else ranges.find(entry_id)

    def first_after(self, ledger_id: int, entry_id: int) -> int:
        ranges = self._ledgers.get(ledger_id)
        return NO_ENTRY if ranges is None else ranges.first_after(entry_id)

    def last_entry_id(self, ledger_id: int) -> int:
        """-1: none."""
        ranges = self._ledgers.get(ledger_id)
        return -1 if ranges is None else ranges.last_entry_id

    def ranges_of(self, ledger_id: int) -> list[tuple[int, int]]:
        """First and last entry id of each of its parts, ascending."""
        return [(part.first_entry_id, part.last_entry_id) for part in self._ledgers.get(ledger_id, ())]

    def forget(self, ledger_id: int) -> None:
        """Drop a deleted ledger's parts."""
        self._ledgers.pop(ledger_id, None)

    def __bool__(self) -> bool:
        return bool(self._ledgers)

    def ascending(self) -> Iterator[tuple[int, Iterator[P]]]:
        """The parts of each ledger, by ledger id. Ledgers forgotten meanwhile are left out."""
        for ledger_id in sorted(self._ledgers):
            ranges = self._ledgers.get(ledger_id)
            if ranges is not None:
                yield ledger_id, iter(ranges)

    def of(self, ledger_id: int) -> Ranges[P]:
        """The ledger's parts, made when missing."""
        ranges = self._ledgers.get(ledger_id)
        if ranges is None:
            ranges = self._ledgers[ledger_id] = Ranges()
        return ranges

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        for ranges in self._ledgers.values():
            ranges.check_invariants()


def _common(part: Part, first: int, last: int) -> tuple[int, int]:
    """Entries of the range that `part` has; it has some."""
    return max(first, part.first_entry_id), min(last, part.last_entry_id)


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges, those that overlap or meet as one; ascending."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _slice(part: P, first: int, last: int) -> P:
    sliced = part.entries(first, last - first + 1)
    assert isinstance(sliced, type(part))
    return sliced
