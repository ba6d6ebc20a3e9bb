"""Messages that are out of order: the fewest that, taken away, leave the others in order. Pure.

The others are a longest increasing subsequence. Only stretches in which anything is out of order are looked at one by one.
"""

from bisect import bisect_left
from typing import Any

import numpy

from ...decode.octets import Flags, Places


def moved(ranks: Places) -> Flags:
    """`ranks[i]`, all different: the place that the message had which is i-th now. True for those that are moved."""
    found = numpy.zeros(len(ranks), numpy.bool_)
    if len(ranks) < 2 or bool((numpy.diff(ranks) > 0).all()):
        return found
    for start, stop in _disturbed(ranks):
        kept = _kept(ranks[start:stop].tolist())
        found[start:stop] = True
        found[start + numpy.array(kept)] = False
    return found


def _disturbed(ranks: Places) -> list[tuple[int, int]]:
    """Stretches with something out of order: between two places that all before are below and all behind are above."""
    highest, lowest = numpy.maximum.accumulate(ranks), numpy.minimum.accumulate(ranks[::-1])[::-1]
    bounds = numpy.concatenate(([0], numpy.flatnonzero(highest[:-1] < lowest[1:]) + 1, [len(ranks)]))
    longer = numpy.flatnonzero(numpy.diff(bounds) > 1)
    return [(int(bounds[each]), int(bounds[each + 1])) for each in longer]


def _kept(ranks: list[int]) -> list[int]:
    """The places of a longest increasing subsequence: by the smallest ends of those of each length."""
    ends: list[int] = []
    places: list[int] = []
    before: list[Any] = []
    for place, rank in enumerate(ranks):
        length = bisect_left(ends, rank)
        before.append(places[length - 1] if length else None)
        if length == len(ends):
            ends.append(rank)
            places.append(place)
        else:
            ends[length], places[length] = rank, place
    found = []
    at: Any = places[-1]
    while at is not None:
        found.append(at)
        at = before[at]
    return found[::-1]
