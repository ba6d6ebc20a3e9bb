"""Lists of topic names: matched against a client's pattern, and hashed so that an unchanged list need not be sent.

A pattern comes from a peer, and Python's own matcher backtracks: RE2 does not, as Apache's (RE2/J), so that a name costs time
linear in its length for any pattern. Constructs that neither knows (look-arounds, back-references) are left to the client.
"""

from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from heapq import merge
from itertools import islice
from typing import Protocol

import re2

from ports.loop.slices import in_slices
from wire.kernels.entries import checksum

from ..topic_name import TopicName

NAMES_PER_SLICE = 500
"""Names that are matched, or put in order, in one turn of the loop: some 3 milliseconds."""
_MEMORY_BYTES_MAX = 1 << 20
"""Memory of one pattern and its automaton; a pattern that needs more is refused."""


class Pattern(Protocol):
    """A pattern that was compiled."""

    def fullmatch(self, text: str) -> object | None: ...


class UnusablePattern(ValueError):
    """A pattern that is not evaluated here: malformed, too long, or beyond RE2."""


def compile_pattern(pattern: str, length_max: int) -> Pattern:
    """Returns a pattern for `matching`. The pattern is about `tenant/namespace/topic`; a domain before it is cut off, as Apache
    does."""
    if len(pattern) > length_max:
        raise UnusablePattern(f"longer than {length_max} characters")
    for domain in ("non-persistent://", "persistent://"):
        pattern = pattern.replace(domain, "", 1)
    return linear_pattern(pattern)


@lru_cache(maxsize=256)
def linear_pattern(pattern: str) -> Pattern:
    """A pattern that matches in time linear in any text. UnusablePattern."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES_MAX
    try:
        found: Pattern = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0] if error.args else error
        raise UnusablePattern(why.decode(errors="replace") if isinstance(why, bytes) else str(why)) from error
    return found


async def matching(topics: Iterable[TopicName], pattern: Pattern | None) -> list[str]:
    """Full names of the topics whose name without domain and partition matches as a whole; None: all topics. In slices."""
    listed = in_slices(topics, NAMES_PER_SLICE)
    return [str(topic) async for topic in listed if pattern is None or is_matched(topic, pattern)]


def is_matched(topic: TopicName, pattern: Pattern) -> bool:
    return pattern.fullmatch(f"{topic.namespace}/{topic.partitioned.local_name}") is not None


async def topics_hash(topics: Sequence[str]) -> str:
    """Apache's TopicList.calculateHash: CRC32C over the names in Java's order joined by commas, in Guava's byte order.

    In slices: names are put in order some at a time, and merged. `topics` must stay as it is meanwhile.
    """
    slices = in_slices(range(0, len(topics), NAMES_PER_SLICE), 1)
    ordered = merge(*[sorted(topics[at : at + NAMES_PER_SLICE], key=java_order) async for at in slices], key=java_order)
    found = 0
    async for at in in_slices(range(0, len(topics), NAMES_PER_SLICE), 1):
        names = ",".join(islice(ordered, NAMES_PER_SLICE))
        found = checksum(f",{names}".encode() if at else names.encode(), found)
    return found.to_bytes(4, "little").hex()


def java_order(name: str) -> str:
    """Names sorted by this are in the order of Java's strings: that of UTF-16's units."""
    return name if name.isascii() else "".join(map(chr, array("H", name.encode("utf-16-le"))))
