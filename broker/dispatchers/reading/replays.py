"""Reads of entries that wait for redelivery or are due: they may be scattered, and reads are of consecutive entries.

A stretch is read if the first waiting entries are the larger part of it. Otherwise as many entries as a read has are picked one
by one: a round through a log of any length takes few reads.
"""

from collections.abc import Iterable

from pyroaring import BitMap

from wire.picked_runs import Picks
from wire.position import Position

from ..contract import Read
from .reader import Reader

_SPARSE = 2
"""A window is halved until at least one in that many of its entries is wanted."""


def replay(reader: Reader, waiting: Iterable[tuple[int, BitMap]], entries_max: int, spread_max: int) -> Read:
    """Up to `entries_max` waiting entries, from the first one on, by ledger, ascending; of a stretch, `spread_max`."""
    picks = first_of(waiting, entries_max)
    ledger_id, wanted = picks[0]
    length = window(wanted, entries_max, spread_max)
    first = wanted.min()
    if wanted.range_cardinality(first, first + length) < sum(len(entry_ids) for _, entry_ids in picks):
        return reader.pick(picks)
    return reader.replay(Position(ledger_id, first), length)


def first_of(waiting: Iterable[tuple[int, BitMap]], count: int) -> Picks:
    """The first `count` waiting entries, or all there are."""
    picks: list[tuple[int, BitMap]] = []
    for ledger_id, entry_ids in waiting:
        if count <= 0:
            break
        picks.append((ledger_id, entry_ids[:count]))  # a copy: the waiting entries may change while it is read
        count -= len(entry_ids)
    return picks


def picks_in(picks: Picks, ledger_id: int) -> BitMap:
    return next((entry_ids for each, entry_ids in picks if each == ledger_id), BitMap())


def window(wanted: BitMap, entries_max: int, spread_max: int) -> int:
    """Entries to read from the first wanted one on, to get up to `entries_max` wanted ones; within `spread_max` in all."""
    first = wanted.min()
    spread = spread_max
    while True:
        inside = min(wanted.range_cardinality(first, first + spread), entries_max)
        length = wanted[inside - 1] - first + 1
        if length <= inside * _SPARSE:
            return length
        spread = length // 2
