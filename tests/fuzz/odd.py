"""Values that a client may send: mostly plausible ones, now and then one from the edge. Pure; all chance is handed in."""

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

WORDS = (0, 1, 2, 63, 64, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1)
"""Unsigned numbers of 64 bits."""
NUMBERS = (0, 1, -1, 2, 1000, 1 << 20, (1 << 20) + 1, (1 << 31) - 1, -(1 << 31))
"""Signed numbers of 32 bits."""
LONGS = (0, 1, -1, 1 << 31, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63))
TEXTS = (
    "",
    " ",
    ".",
    "..",
    "/",
    "a/b",
    "%2F",
    "%",
    "\x00",
    "\n",
    "é",
    "💥",
    "x" * 255,
    "x" * 4097,
    "a,b=c",
    "pulsar.dedup",
    "pulsar.repl.r1",
    "__compaction",
    "${x}",
    "-partition-0",
)
PATTERNS = (".*", "public/default/.*", "persistent://public/default/fuzz-.*", "(a+)+$", "[", "(?i)x", "a{1,999}", "\\p{L}", "")


def is_odd(rng: Random, one_in: int = 8) -> bool:
    """Whether this value is to be an odd one."""
    return rng.randrange(one_in) == 0


def either(rng: Random, usual: T, odd: Sequence[T], one_in: int = 8) -> T:
    """The usual value, or one of the odd ones."""
    return rng.choice(odd) if is_odd(rng, one_in) else usual


def value_of(rng: Random, enumeration: Any) -> Any:
    """One of an enumeration's numbers; the stubs want its own type for it."""
    return rng.choice(enumeration.values())


def text(rng: Random, usual: str, one_in: int = 8) -> str:
    return either(rng, usual, TEXTS, one_in)


def some(rng: Random, values: Sequence[T], count_max: int) -> list[T]:
    """A few of them, in any order, perhaps one twice."""
    return [rng.choice(values) for _ in range(rng.randrange(count_max + 1))] if values else []


def ack_set(rng: Random) -> list[int]:
    """Words of a set of what is not acknowledged yet."""
    return [rng.choice((0, -1, 1, 2, 5, *LONGS)) for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 300)))]
