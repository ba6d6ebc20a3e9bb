"""Parts of holes: the bits of a span of positions, their weight, and the place where a span is cut in two. Pure.

A weight is about the bytes that CRoaring holds in memory and writes: per container (65,536 entries of one ledger) the smallest
of a list of values, a list of runs and a bit set. No Python statement per entry: one per container.
"""

from collections.abc import Iterator
from typing import Any

from pyroaring import BitMap

from wire.position import Position

from .bitmaps import range_count
from .segment_format_v1 import Span

FIRST = Position(-1, -1)
END = Position((1 << 63) - 1, 0)
CONTAINER = 1 << 16
SEGMENT_WEIGHT_MAX = 12 << 10
"""A segment is cut where it would become heavier; a dense container, 8 KB, is never cut."""

_CONTAINER_WEIGHT = 16
_BIT_SET_BYTES = 8192


def part(bits: BitMap, first: int, last: int) -> BitMap:
    """A copy of the bits in [first, last]."""
    if not bits:
        return BitMap()
    lowest, highest = int(bits.min()), int(bits.max())
    if first <= lowest and highest <= last:
        return bits.copy()
    if last < lowest or highest < first:
        return BitMap()
    return bits & BitMap(range(max(first, lowest), min(last, highest) + 1))


def parts(by_ledger: Any, span: Span) -> dict[int, BitMap]:
    """Bitmaps within the span, from a SortedDict by ledger, without empty ones."""
    found: dict[int, BitMap] = {}
    for ledger_id in by_ledger.irange(span.start.ledger_id, span.end.ledger_id):
        first, last = limits(span, ledger_id)
        bits = part(by_ledger[ledger_id], first, last)
        if bits:
            found[ledger_id] = bits
    return found


def limits(span: Span, ledger_id: int) -> tuple[int, int]:
    """The first and the last entry of that ledger that may be in the span."""
    first = max(span.start.entry_id, 0) if ledger_id == span.start.ledger_id else 0
    last = span.end.entry_id - 1 if ledger_id == span.end.ledger_id else (1 << 32) - 1
    return first, last


def next_bit(bits: BitMap, at: int) -> int | None:
    """The first number from `at` on."""
    return bits.next_set_bit(at) if bits and at <= bits.max() else None


def containers(bits: BitMap) -> Iterator[tuple[int, int]]:
    """The first entry that each container can have, and the container's weight."""
    at = next_bit(bits, 0)
    while at is not None:
        first = at - at % CONTAINER
        count = bits.range_cardinality(first, first + CONTAINER)
        last = bits[bits.rank(first + CONTAINER - 1) - 1]
        runs_at_most = min(count, last - at + 1 - count + 1)
        yield first, _CONTAINER_WEIGHT + min(2 * count, 4 * runs_at_most, _BIT_SET_BYTES)
        at = next_bit(bits, first + CONTAINER)


def weight(holes: dict[int, BitMap]) -> int:
    return sum(each for bits in holes.values() for _, each in containers(bits))


def ranges(holes: dict[int, BitMap]) -> int:
    return sum(map(range_count, holes.values()))


def cuts(holes: dict[int, BitMap]) -> list[Position]:
    """Positions at which a new segment begins, so that none is heavier than the bound for longer than a container."""
    found: list[Position] = []
    total = 0
    for ledger_id, bits in holes.items():
        for first, each in containers(bits):
            if total and total + each > SEGMENT_WEIGHT_MAX:
                found.append(Position(ledger_id, first))
                total = 0
            total += each
    return found
