"""Lists of topic names: matched against a client's pattern, and hashed so that an unchanged list need not be sent. Pure.

A pattern comes from a peer, and Python's matcher backtracks where Apache's (RE2/J) does not, so only patterns that cannot run
away are evaluated here; for the others the client is told that the list is not filtered, and filters itself.
"""

import re
from collections.abc import Iterable, Sequence

from wire.kernels.entries import checksum

from .topic_name import TopicName

_REPEATS_MAX = 2
"""Unbounded repeats in a pattern; matching a name of n characters then takes about n ** 2 steps at most."""
_CHOICES_MAX = 4
"""Optional parts and groups in a pattern: each may double the steps."""
_ATOM = re.compile(
    r"""(?P<escape>\\.)
      | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
      | (?P<repeat>[*+?]|\{\d+(?:,\d*)?\})
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class UnusablePattern(ValueError):
    """A pattern that is not evaluated here: malformed, not ours to evaluate, or dangerous."""


def compile_pattern(pattern: str, length_max: int) -> re.Pattern[str]:
    """For `matching`. The pattern is about `tenant/namespace/topic`; a domain before it is cut off, as Apache does."""
    if len(pattern) > length_max:
        raise UnusablePattern(f"longer than {length_max} characters")
    _refuse_runaway(pattern)
    for domain in ("non-persistent://", "persistent://"):
        pattern = pattern.replace(domain, "", 1)
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UnusablePattern(str(error)) from error


def _refuse_runaway(pattern: str) -> None:
    """Repeats of groups, counted repeats, back-references, look-arounds, too many unbounded repeats."""
    repeats, choices, before = 0, 0, ""
    for match in _ATOM.finditer(pattern):
        kind, text = match.lastgroup or "", match[0]
        if kind == "repeat":
            if before == ")" and text != "?":
                raise UnusablePattern("a repeated group")
            if text[0] == "{":
                raise UnusablePattern("a counted repeat")
            repeats += text in "*+"
        choices += text in ("?", ")") and kind != "escape"
        if text in ("[", "[]", "[^]") or (kind == "set" and re.search(r"\[|--|&&|\|\||~~", text[1:])):
            raise UnusablePattern("a set inside a set, or one without an end")
        if kind == "escape" and text[1] not in ".-+*?()[]{}^$|/:_\\dDwWsS":
            raise UnusablePattern(f"escape {text}")
        before = ")" if kind == "other" and text == ")" else "" if kind != "repeat" else before
    if repeats > _REPEATS_MAX or choices > _CHOICES_MAX or re.search(r"\(\?(?!:)", pattern):
        raise UnusablePattern("too many repeats or choices, or an extension")


def matching(topics: Iterable[TopicName], pattern: re.Pattern[str]) -> list[str]:
    """Full names of the topics whose name without domain and partition matches as a whole."""
    return [str(topic) for topic in topics if pattern.fullmatch(f"{topic.namespace}/{topic.partitioned.local_name}")]


def topics_hash(topics: Sequence[str]) -> str:
    """Apache's TopicList.calculateHash: CRC32C over the names in Java's order joined by commas, in Guava's byte order."""
    ordered = sorted(topics, key=lambda topic: topic.encode("utf-16-be"))
    return checksum(",".join(ordered).encode()).to_bytes(4, "little").hex()
