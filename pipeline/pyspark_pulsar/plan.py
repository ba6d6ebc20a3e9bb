"""Tasks that read a topic, and the ranges of each: ranges of ledgers packed up to a size. Pure.

A task costs Spark about 0.15 s, so small ledgers share one, and a long ledger is cut where its bytes reach the size. Each split
is one span of the topic, in order.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .positions import Ledger, LedgerRange, Place


@dataclass(frozen=True, slots=True)
class TopicRanges:
    """Ranges of one topic, in order."""

    topic: str
    ranges: tuple[LedgerRange, ...]

    @property
    def entries(self) -> int:
        return sum(each.count for each in self.ranges)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.ranges)


class Split(TopicRanges):
    """Ranges that one task reads of one topic: at least one."""

    __slots__ = ()

    @property
    def first(self) -> Place:
        return self.ranges[0].first

    @property
    def last(self) -> Place:
        """The place of the last entry of all; its entry is in the split."""
        return self.ranges[-1].last


def splits_of(topic: str, ranges: Iterable[LedgerRange], split_bytes: int) -> Iterator[Split]:
    """Every entry of the ranges once, in order; splits of about `split_bytes`, and of one entry at least."""
    packed: list[LedgerRange] = []
    room = split_bytes
    for piece in _pieces(ranges, split_bytes):
        if packed and piece.size_bytes > room:
            yield Split(topic, tuple(packed))
            packed, room = [], split_bytes
        packed.append(piece)
        room -= piece.size_bytes
    if packed:
        yield Split(topic, tuple(packed))


def _pieces(ranges: Iterable[LedgerRange], split_bytes: int) -> Iterator[LedgerRange]:
    for each in ranges:
        parts = max(1, min(each.count, round(each.size_bytes / split_bytes)))
        bounds = [each.first_entry_id + each.count * part // parts for part in range(parts + 1)]
        yield from (each.part(first, end) for first, end in itertools.pairwise(bounds))


TASKS = 32
"""Below that many, every split is a task of its own: there are cores for them."""


def tasks_of(splits: Sequence[Split], split_bytes: int) -> list[tuple[Split, ...]]:
    """Splits of each task. Small splits of many topics share one: up to `split_bytes`, and so that TASKS are left."""
    count_max = -(-len(splits) // TASKS)
    tasks: list[tuple[Split, ...]] = []
    packed: list[Split] = []
    for each in splits:
        is_full = len(packed) == count_max or sum(other.size_bytes for other in [*packed, each]) > split_bytes
        if packed and is_full:
            tasks.append(tuple(packed))
            packed = []
        packed.append(each)
    return [*tasks, tuple(packed)] if packed else tasks


def since(ledgers: Sequence[Ledger], starting_time_ms: int | None, ahead_ms: int) -> list[Ledger]:
    """Without the ledgers that were closed before that time: nothing in them was published later.

    A ledger is closed by a broker's clock and a message published by its client's, which may be ahead by `ahead_ms`.
    """
    return [each for each in ledgers if starting_time_ms is None or not 0 < each.closed_at_ms < starting_time_ms - ahead_ms]
