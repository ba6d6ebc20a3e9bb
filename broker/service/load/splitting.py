"""Splitting: which bundles are too much for one broker, and where they are cut. Pure.

Apache's BundleSplitterTask and its algorithms by their names. A cut is inside of its bundle, never on one of its edges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..ownership.bundles import HASH_MAX, Bundle
from .loads import BundleStats


class CannotSplit(Exception):
    """The bundle cannot be cut so; says why."""


class BundleReplaced(CannotSplit):
    """The namespace was cut otherwise meanwhile, and has no such bundle any more."""


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Limits of one bundle, and the most bundles that a namespace may have; 0 or less: no limit."""

    topics_max: int = 1000
    sessions_max: int = 1000
    msg_rate_max: int = 30_000
    bandwidth_max_mbytes: int = 100
    bundles_max: int = 128

    def asks(self, stats: BundleStats) -> bool:
        """Whether the bundle is too large. A bundle with one topic never is: a split would change nothing."""
        limits = (
            (stats.topics, self.topics_max),
            (stats.consumer_count + stats.producer_count, self.sessions_max),
            (stats.msg_rate, self.msg_rate_max),
            (stats.msg_throughput / (1 << 20), self.bandwidth_max_mbytes),
        )
        return stats.topics > 1 and any(0 < limit < value for value, limit in limits)


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """One topic of the bundle: its place in the hash space, and its load."""

    hash: int
    msg_rate: float
    msg_throughput: float


def in_two(bundle: Bundle, topics: Sequence[TopicLoad]) -> list[int]:
    """range_equally_divide: in the middle, independently of its topics."""
    middle = bundle.low + (bundle.high - bundle.low) // 2
    if not bundle.low < middle < bundle.high:
        raise CannotSplit(f"{bundle} is one hash: it cannot be cut")
    return [middle]


def by_topics(bundle: Bundle, topics: Sequence[TopicLoad]) -> list[int]:
    """topic_count_equally_divide: as many topics on either side."""
    hashes = sorted(topic.hash for topic in topics)
    if len(hashes) < 2:
        raise CannotSplit(f"{bundle} has {len(hashes)} topics: fewer than two cannot be divided")
    return [_between(bundle, hashes, len(hashes) // 2)]


def by_traffic(bundle: Bundle, topics: Sequence[TopicLoad]) -> list[int]:
    """flow_or_qps_equally_divide: as much of the messages and of the bytes on either side."""
    ordered = sorted(topics, key=lambda topic: topic.hash)
    if len(ordered) < 2:
        raise CannotSplit(f"{bundle} has {len(ordered)} topics: fewer than two cannot be divided")
    rate = sum(topic.msg_rate for topic in ordered) or 1.0
    throughput = sum(topic.msg_throughput for topic in ordered) or 1.0
    weights = [topic.msg_rate / rate + topic.msg_throughput / throughput for topic in ordered]
    total = sum(weights)
    if total == 0:
        return by_topics(bundle, topics)
    left, best = 0.0, (total, 1)
    for place in range(1, len(ordered)):
        left += weights[place - 1]
        best = min(best, (abs(total - 2 * left), place))
    return [_between(bundle, [topic.hash for topic in ordered], best[1])]


def _between(bundle: Bundle, hashes: Sequence[int], place: int) -> int:
    """A cut that has the topics before `place` below it; the nearest one that is possible when some share a hash."""
    cuts = [(abs(index - place), (hashes[index - 1] + hashes[index] + 1) // 2) for index in range(1, len(hashes))
            if hashes[index - 1] < hashes[index]]  # fmt: skip
    if not cuts:
        raise CannotSplit(f"all topics of {bundle} have one hash")
    return min(cuts)[1]


ALGORITHMS: Mapping[str, Callable[[Bundle, Sequence[TopicLoad]], list[int]]] = {
    "range_equally_divide": in_two,
    "topic_count_equally_divide": by_topics,
    "flow_or_qps_equally_divide": by_traffic,
}
SPECIFIED = "specified_positions_divide"


def at_positions(bundle: Bundle, positions: Sequence[int]) -> list[int]:
    """specified_positions_divide. CannotSplit when one is not inside the bundle."""
    cuts = sorted(set(positions))
    outside = [cut for cut in cuts if not bundle.low < cut < bundle.high]
    if not cuts or outside:
        named = ", ".join(f"0x{cut:08x}" for cut in outside) or "none were given"
        raise CannotSplit(f"positions must be inside {bundle}: {named}")
    return cuts


def cut_boundaries(boundaries: Sequence[int], bundle: Bundle, cuts: Sequence[int], bundles_max: int) -> tuple[int, ...]:
    """The namespace's boundaries with the bundle cut. CannotSplit when it is not one of them, or they become too many."""
    if (bundle.low, bundle.high) not in pairwise(boundaries):
        raise BundleReplaced(f"{bundle} is not a bundle of its namespace any more")
    new = tuple(sorted({*boundaries, *cuts}))
    if 0 < bundles_max < len(new) - 1:
        raise CannotSplit(
            f"{bundle.namespace} would have {len(new) - 1} bundles; loadBalancerNamespaceMaximumBundles={bundles_max}"
        )
    assert new[-1] == HASH_MAX, new
    return new
