"""Pieces: where the pieces that catch-up readers go through begin and end, and who goes on fast enough to read ahead. Pure.

A reader that needs longer for a piece than half the time that the cache keeps things would find the next one gone: for such a
reader nothing is fetched before it asks.
"""

from typing import TypeVar

from wire.position import Position

T = TypeVar("T")

PIECES_MAX = 256
"""Pieces that are remembered. At the bound the oldest is forgotten: its reader waits for its next piece."""


class Pieces:
    """Pieces of one managed ledger. Time in seconds."""

    __slots__ = ("_ahead", "_entered", "_pace_s_max")

    def __init__(self, age_s_max: float) -> None:
        self._pace_s_max = age_s_max / 2
        self._entered: dict[Position, float] = {}
        """Times at which readers entered their piece, by the end of the piece."""
        self._ahead: dict[Position, Position] = {}
        """Begin and end of pieces that were fetched before a reader asked, and not entered yet."""

    def fetched_ahead(self, begin: Position, end: Position) -> None:
        _put(self._ahead, begin, end)

    def entered_ahead(self, position: Position) -> Position | None:
        """The end of the piece that was fetched ahead and begins there; only the first reader gets it."""
        return self._ahead.pop(position, None) if self._ahead else None

    def entered(self, begin: Position, end: Position, now: float) -> bool:
        """A reader is at `begin` now; whether the piece after `end` is worth fetching at once."""
        since = self._entered.pop(begin, None)
        _put(self._entered, end, now)
        return since is not None and now - since < self._pace_s_max

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert len(self._entered) <= PIECES_MAX
        assert len(self._ahead) <= PIECES_MAX


def _put(places: dict[Position, T], key: Position, value: T) -> None:
    if len(places) >= PIECES_MAX:
        del places[next(iter(places))]
    places[key] = value
