"""Owners of keys: the slots 0..65535 of hashed keys, shared out among the consumers of a Key_Shared subscription.

Three ways, as in Apache: consistent hashing (the default), ranges split in halves, and ranges that the consumers bring. The
first two promise no particular consumer for a slot; they promise that few slots move when a consumer comes or goes.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Protocol

from ..contract import ConsumerAdded, ConsumerId

LAST_SLOT = 65535
NOBODY = ConsumerId(-1)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`owners[i]` ("q") has the slots up to and including `bounds[i]` ("I"), from after the bound before; -1 is no consumer."""

    bounds: "array[int]"
    owners: "array[int]"

    def ranges(self, consumer: ConsumerId) -> tuple[tuple[int, int], ...]:
        """Inclusive ranges [start, end] that it owns."""
        starts = [0, *(bound + 1 for bound in self.bounds)]
        found = zip(starts, self.bounds, self.owners, strict=False)
        return tuple((start, end) for start, end, owner in found if owner == consumer)

    def owner(self, slot: int) -> int:
        place = bisect_left(self.bounds, slot)
        return self.owners[place] if place < len(self.owners) else NOBODY

    def keeping(self, kept: Mapping[int, ConsumerId]) -> "Assignment":
        """The same, except for single slots of other consumers."""
        pieces: list[tuple[int, ConsumerId]] = []
        slots = sorted(kept, reverse=True)
        for bound, owner in zip(self.bounds, map(ConsumerId, self.owners), strict=True):
            while slots and slots[-1] <= bound:
                slot = slots.pop()
                pieces += [(slot - 1, owner), (slot, kept[slot])]
            pieces.append((bound, owner))
        return _assignment(pieces)


class SlotsTaken(Exception):
    """The consumer cannot have the slots that it needs; the message is for it."""


class Selector(Protocol):
    """Keeps the consumers; `assignment` gives the current owners."""

    def add(self, added: ConsumerAdded) -> None:
        """SlotsTaken when that cannot be."""

    def remove(self, consumer: ConsumerId) -> None: ...
    def assignment(self) -> Assignment: ...


def _assignment(pieces: Iterable[tuple[int, ConsumerId]]) -> Assignment:
    """Assignment made of ascending (last slot, owner) pairs; neighbours of one owner are joined."""
    bounds, owners = array("I"), array("q")
    for bound, owner in pieces:
        if owners and owners[-1] == owner:
            bounds[-1] = bound
        elif not bounds or bound > bounds[-1]:
            bounds.append(bound)
            owners.append(owner)
    if not bounds or bounds[-1] < LAST_SLOT:
        bounds.append(LAST_SLOT)
        owners.append(NOBODY)
    return Assignment(bounds, owners)


class ConsistentHashing:
    """A ring with many points per consumer; a slot belongs to the first point at or after it."""

    def __init__(self, points_per_consumer: int) -> None:
        self._points_per_consumer = max(1, points_per_consumer)
        self._ring: list[tuple[int, str, ConsumerId]] = []
        self._ordinals: dict[ConsumerId, tuple[str, int]] = {}

    def add(self, added: ConsumerAdded) -> None:
        """Consumers of one name have points of their own: they are numbered."""
        taken = {ordinal for name, ordinal in self._ordinals.values() if name == added.name}
        ordinal = next(number for number in range(len(taken) + 1) if number not in taken)
        self._ordinals[added.consumer] = (added.name, ordinal)
        for point in range(self._points_per_consumer):
            digest = blake2b(f"{point}\0{ordinal}\0{added.name}".encode(), digest_size=2).digest()
            insort(self._ring, (int.from_bytes(digest), added.name, added.consumer))

    def remove(self, consumer: ConsumerId) -> None:
        if self._ordinals.pop(consumer, None) is not None:
            self._ring = [point for point in self._ring if point[2] != consumer]

    def assignment(self) -> Assignment:
        if not self._ring:
            return _assignment([])
        first_owner = self._ring[0][2]
        return _assignment([*((slot, owner) for slot, _, owner in self._ring), (LAST_SLOT, first_owner)])


class AutoSplit:
    """Each newcomer gets the lower half of the widest range; a leaving consumer leaves its range to the next one up."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, ConsumerId]] = []

    def add(self, added: ConsumerAdded) -> None:
        if not self._ranges:
            self._ranges.append((LAST_SLOT, added.consumer))
            return
        starts = [0, *(end + 1 for end, _ in self._ranges)]
        widths = [end - start for start, (end, _) in zip(starts, self._ranges, strict=False)]
        place = widths.index(max(widths))
        if widths[place] < 1:
            raise SlotsTaken("there are as many consumers as hash slots")
        self._ranges.insert(place, (starts[place] + widths[place] // 2, added.consumer))

    def remove(self, consumer: ConsumerId) -> None:
        self._ranges = [(end, owner) for end, owner in self._ranges if owner != consumer]
        if self._ranges:
            self._ranges[-1] = (LAST_SLOT, self._ranges[-1][1])

    def assignment(self) -> Assignment:
        return _assignment(self._ranges)


class ExclusiveRanges:
    """Each consumer brings its ranges; entries of other slots wait."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, ConsumerId]] = []

    def add(self, added: ConsumerAdded) -> None:
        if not added.hash_ranges:
            raise SlotsTaken("a sticky consumer has to name its hash ranges")
        wanted: list[tuple[int, int, ConsumerId]] = []
        for start, end in added.hash_ranges:
            if not 0 <= start <= end <= LAST_SLOT:
                raise SlotsTaken(f"hash range [{start}, {end}] is not within [0, {LAST_SLOT}]")
            wanted.append((start, end, added.consumer))
        ranges = sorted([*self._ranges, *wanted], key=lambda each: each[:2])
        for (_, last, _), (start, end, _) in pairwise(ranges):
            if start <= last:
                raise SlotsTaken(f"hash range [{start}, {end}] overlaps another one")
        self._ranges = ranges

    def remove(self, consumer: ConsumerId) -> None:
        self._ranges = [piece for piece in self._ranges if piece[2] != consumer]

    def assignment(self) -> Assignment:
        pieces: list[tuple[int, ConsumerId]] = []
        after = 0
        for start, end, owner in self._ranges:
            if start > after:
                pieces.append((start - 1, NOBODY))
            pieces.append((end, owner))
            after = end + 1
        return _assignment(pieces)
