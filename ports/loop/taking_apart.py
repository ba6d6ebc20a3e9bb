"""Copies of collections that keep nothing that was taken: things that end in a slice leave memory in its turn. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def taken_apart(things: Iterable[T]) -> Iterator[T]:
    """Each thing of a copy, which keeps none that was taken: those that end in a slice leave memory in its turn."""
    rest = list(things)
    rest.reverse()
    return (rest.pop() for _ in range(len(rest)))


def items_taken_apart(things: Mapping[K, T]) -> Iterator[tuple[K, T]]:
    """Same as `taken_apart` for the items of a mapping. Makes no list of pairs, or the cycle collector would run."""
    keys, values = list(things), list(things.values())
    keys.reverse()
    values.reverse()
    return ((keys.pop(), values.pop()) for _ in range(len(keys)))
