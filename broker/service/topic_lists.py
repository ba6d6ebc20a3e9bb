"""Lists of topic names: matched against a client's pattern, and hashed so that an unchanged list need not be sent.

A pattern comes from a peer, and Python's own matcher backtracks: RE2 does not, as Apache's (RE2/J), so that a name costs time
linear in its length whatever the pattern. What neither knows (look-arounds, back-references) is left to the client.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol

import re2

from ports.slices import in_slices
from wire.kernels.entries import checksum

from .topic_name import TopicName

NAMES_PER_SLICE = 500
"""Names that are matched in one turn of the loop: some 3 milliseconds."""
_MEMORY_BYTES_MAX = 1 << 20
"""Of one pattern and what it learns while it matches; a pattern that needs more is refused."""


class Pattern(Protocol):
    """A pattern that was compiled."""

    def fullmatch(self, text: str) -> object | None: ...


class UnusablePattern(ValueError):
    """A pattern that is not evaluated here: malformed, too long, or beyond RE2."""


def compile_pattern(pattern: str, length_max: int) -> Pattern:
    """For `matching`. The pattern is about `tenant/namespace/topic`; a domain before it is cut off, as Apache does."""
    if len(pattern) > length_max:
        raise UnusablePattern(f"longer than {length_max} characters")
    for domain in ("non-persistent://", "persistent://"):
        pattern = pattern.replace(domain, "", 1)
    return linear_pattern(pattern)


@lru_cache(maxsize=256)
def linear_pattern(pattern: str) -> Pattern:
    """A pattern that matches in time linear in the text, whatever it is. UnusablePattern."""
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
    """Full names of the topics whose name without domain and partition matches as a whole; None: of all. In slices."""
    listed = in_slices(topics, NAMES_PER_SLICE)
    return [str(topic) async for topic in listed if pattern is None or is_matched(topic, pattern)]


def is_matched(topic: TopicName, pattern: Pattern) -> bool:
    return pattern.fullmatch(f"{topic.namespace}/{topic.partitioned.local_name}") is not None


def topics_hash(topics: Sequence[str]) -> str:
    """Apache's TopicList.calculateHash: CRC32C over the names in Java's order joined by commas, in Guava's byte order."""
    whole = ",".join(topics)
    ordered = sorted(topics) if whole.isascii() else sorted(topics, key=lambda topic: topic.encode("utf-16-be"))
    return checksum(",".join(ordered).encode()).to_bytes(4, "little").hex()
