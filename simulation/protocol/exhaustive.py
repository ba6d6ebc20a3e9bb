"""Exhaustive search: every state that a model can reach, each once, breadth first: the first violation is a shortest one.

Knows nothing of the model but that it is made of immutable parts, and gives a key and its next states. `Frozen` makes an
immutable part of a pure machine: a caller gets a copy, which is frozen again.
"""

import copy
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from simulation.checks.history import Violation

M = TypeVar("M")
CONSTANTS = (int, str, bytes, frozenset, type(None))


class Frozen(Generic[M]):
    """A machine that no code changes any more, and the key of its state."""

    __slots__ = ("_machine", "key")

    def __init__(self, machine: M) -> None:
        self._machine = machine
        self.key = _key(vars(machine))

    def thaw(self) -> M:
        """A copy to work with. The items of its containers are copied too, one level down."""
        machine = object.__new__(type(self._machine))
        machine.__dict__.update({name: _copied(value) for name, value in vars(self._machine).items()})
        return machine

    def peek(self) -> M:
        """The value, to be read only."""
        return self._machine


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copy.copy(item) for key, item in value.items()}
    return copy.copy(value) if isinstance(value, list) else value


def _key(value: Any) -> Hashable:
    if isinstance(value, CONSTANTS):
        return value
    if isinstance(value, dict):
        return frozenset((key, _key(item)) for key, item in value.items())  # order does not count: see the machines
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    if hasattr(value, "__slots__"):
        return tuple(_key(getattr(value, name)) for name in value.__slots__)
    return value  # type: ignore[no-any-return]  # an enum, or something else that has a hash


class State(Protocol):
    """State of a model. States are never changed."""

    def key(self) -> Hashable:
        """Equal for states of which the same can be said."""

    def steps(self) -> Iterable[tuple[str, Callable[[], "State"]]]:
        """Possible next steps, in words, and the states after them. Making one raises Violation when a promise is broken."""


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a search. `story` are the steps to the first violation; empty: there is none within the bounds."""

    states: int
    transitions: int
    violation: str | None
    story: tuple[str, ...]
    is_complete: bool


def search(start: State, states_max: int) -> Found:
    """All states, or `states_max` of them."""
    seen: dict[Hashable, int] = {start.key(): 0}
    origins: list[tuple[int, str]] = [(-1, "")]
    frontier: list[tuple[int, State]] = [(0, start)]
    transitions = 0
    while frontier:
        following: list[tuple[int, State]] = []
        for number, state in frontier:
            for what, step in state.steps():
                transitions += 1
                try:
                    after = step()
                except Violation as violation:
                    story = (*_story(origins, number), what)
                    return Found(len(seen), transitions, str(violation), story, is_complete=False)
                key = hash(after.key())
                if key in seen:
                    continue
                seen[key] = len(origins)
                origins.append((number, what))
                following.append((seen[key], after))
                if len(seen) >= states_max:
                    return Found(len(seen), transitions, None, (), is_complete=False)
        frontier = following
    return Found(len(seen), transitions, None, (), is_complete=True)


def _story(origins: list[tuple[int, str]], number: int) -> list[str]:
    steps = []
    while number > 0:
        number, what = origins[number]
        steps.append(what)
    return steps[::-1]
