"""Bundles: the ranges of the hash space that a namespace is cut into, and the range of a topic. Pure.

As Apache's NamespaceBundleFactory and ConsistentHashingTopicBundleAssigner: CRC32 of the topic's full name (a partition's with
its suffix) falls into one range, lower bound included, upper excluded but for the last one's.
"""

import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha1
from itertools import pairwise
from typing import Any

from metadata.store import MetadataError

from ..topic_name import NamespaceName, TopicName

HASH_MAX = 0xFFFFFFFF
OWNERS = "/namespace"
_RANGE = re.compile(r"(0x[0-9a-f]{8})_(0x[0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Bundle:
    """One range of a namespace: from `low` up to, and but at the end of the space without, `high`."""

    namespace: NamespaceName
    low: int
    high: int

    @property
    def range(self) -> str:
        """Range in an operator's form: `0x00000000_0x40000000`."""
        return f"0x{self.low:08x}_0x{self.high:08x}"

    def covers(self, topic: TopicName) -> bool:
        found = topic_hash(str(topic))
        return topic.namespace == self.namespace and self.low <= found and (found < self.high or self.high == HASH_MAX)

    @property
    def path(self) -> str:
        """Path of the node that names the owner."""
        return f"{OWNERS}/{self.namespace}/{self.range}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.range}"


@dataclass(frozen=True, slots=True)
class Bundles:
    """A namespace's. `boundaries` rise from 0 to HASH_MAX, two of them at least."""

    namespace: NamespaceName
    boundaries: tuple[int, ...]

    def __post_init__(self) -> None:
        edges = self.boundaries
        rise = all(low < high for low, high in pairwise(edges))
        if len(edges) < 2 or edges[0] != 0 or edges[-1] != HASH_MAX or not rise:
            raise ValueError(f"boundaries of {self.namespace} do not rise from 0x00000000 to 0xffffffff")

    def of(self, topic: TopicName) -> Bundle:
        return self._at(bisect_right(self.boundaries, topic_hash(str(topic)), 0, len(self.boundaries) - 1) - 1)

    def all(self) -> list[Bundle]:
        return [self._at(index) for index in range(len(self.boundaries) - 1)]

    def named(self, text: str) -> Bundle | None:
        """The one of this range, if there is one."""
        return next((bundle for bundle in self.all() if bundle.range == text), None)

    def _at(self, index: int) -> Bundle:
        return Bundle(self.namespace, self.boundaries[index], self.boundaries[index + 1])


def topic_hash(name: str) -> int:
    """CRC32, 0 to HASH_MAX."""
    return zlib.crc32(name.encode())


def parse_bundles(namespace: NamespaceName, value: bytes) -> Bundles | None:
    """Returns the bundles in Apache's LocalPolicies or Policies; None when they name none. MetadataError."""
    try:
        found: Any = (json.loads(value) or {}).get("bundles")
        edges = None if found is None else found.get("boundaries")
        return None if not edges else Bundles(namespace, tuple(int(edge, 16) for edge in edges))
    except (ValueError, TypeError, AttributeError) as error:
        raise MetadataError(f"unreadable bundles of {namespace}: {error}") from error


def parse_range(namespace: NamespaceName, text: str) -> Bundle | None:
    """`0x00000000_0x40000000`; None for anything else."""
    match = _RANGE.fullmatch(text)
    bundle = None if match is None else Bundle(namespace, int(match[1], 16), int(match[2], 16))
    return bundle if bundle is not None and bundle.low < bundle.high else None


def place(cut: Bundles, bundle: Bundle, brokers: Iterable[str]) -> str | None:
    """Returns the broker that is to serve a bundle without owner: all that know the same brokers agree.

    Each gets as many bundles of a namespace as any other, or one more. Owned bundles stay in their place when brokers come.
    """
    ranked = sorted(brokers, key=lambda broker: sha1(f"{broker} {cut.namespace}".encode(), usedforsecurity=False).digest())
    return ranked[cut.all().index(bundle) % len(ranked)] if ranked else None
