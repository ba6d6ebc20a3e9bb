"""How much to read again at once: entries that wait for redelivery may be scattered, and reads are of consecutive ones."""

from pyroaring import BitMap

_SPARSE = 2
"""A window is halved until at least one in that many of its entries is wanted."""


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
