"""How to read again what waits for redelivery or has come due: it may be scattered, and reads are of consecutive entries.

Where at least every second entry of a stretch is wanted, the stretch is read. Otherwise the entries are picked one by one.
"""

from pyroaring import BitMap

from wire.position import Position

from .contract import Read
from .reader import Reader

_SPARSE = 2
"""A window is halved until at least one in that many of its entries is wanted."""
PICKED_SPREAD_MAX = 1 << 14
"""Over how many entries a pick may go: those between cost a few nanoseconds each."""


def replay(reader: Reader, first: Position, wanted: BitMap, entries_max: int, spread_max: int) -> Read:
    """Up to `entries_max` of the wanted entries of a ledger, from `first`, which is one of them; of a stretch, `spread_max`."""
    if first.entry_id > wanted.min():
        wanted = wanted - BitMap(range(first.entry_id))
    length = window(wanted, entries_max, spread_max)
    if length < min(entries_max, len(wanted)):
        picks = (wanted & BitMap(range(first.entry_id, first.entry_id + PICKED_SPREAD_MAX)))[:entries_max]
        if wanted.range_cardinality(first.entry_id, first.entry_id + length) < len(picks):
            return reader.pick(first.ledger_id, picks)
    return reader.replay(first, length)


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
