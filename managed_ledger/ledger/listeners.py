"""ConfirmedListeners: who wants to hear that last_confirmed moved, or of another change that needs no particulars.
RefusedListener: who hears that appends are refused.

The former are told at the end of the turn, and once however many runs came in it. Where one run alone is new and one listener
there, it may take the run itself: then nobody keeps it.
"""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from ports.turn import turn_of
from wire.run import EntryRun

from .entry_metadata import EntryMetadata

Listener: TypeAlias = Callable[[], None]
Taker: TypeAlias = Callable[[EntryRun, Listener], int]
"""Gets a run that was just confirmed; it calls the second argument before anybody reads that run from the log. How many took
the run without reading it."""


def _ignore(_run: EntryRun) -> None:
    pass


def _ignore_taken(_run: EntryRun, _count: int) -> None:
    pass


class RefusedListener:
    """The one that can go on after appends were refused, and the indexes that these had."""

    __slots__ = ("_entry_metadata", "listener")

    def __init__(self, entry_metadata: EntryMetadata | None) -> None:
        self.listener: Listener | None = None
        self._entry_metadata = entry_metadata

    def tell(self) -> bool:
        """Nothing that was appended and is not stored will be. False: nobody is there who could go on after that."""
        if self.listener is None:
            return False
        if self._entry_metadata is not None:
            self._entry_metadata.take_back()
        self.listener()
        return True


class ConfirmedListeners:
    """Called on the loop in the order in which they came. `keep` gets a run that may be read, `taken` one that so many took."""

    __slots__ = ("_given", "_is_due", "_keep", "_listeners", "_new", "_taken", "_turn")

    def __init__(
        self, keep: Callable[[EntryRun], None] = _ignore, taken: Callable[[EntryRun, int], None] = _ignore_taken
    ) -> None:
        self._turn = turn_of(asyncio.get_running_loop())
        self._listeners: dict[int, tuple[Listener, Taker | None]] = {}
        self._given = 0
        self._is_due = False
        self._keep, self._taken = keep, taken
        self._new: EntryRun | None = None
        """The only run that came in this turn."""

    def add(self, listener: Listener, taker: Taker | None = None) -> Listener:
        """Returns the call that ends it; ending twice is fine."""
        self._given += 1
        key = self._given
        self._listeners[key] = listener, taker

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    def moved(self) -> None:
        """Something has changed."""
        self.keep_new()
        if not self._is_due:
            self._is_due = True
            self._turn.at_end(self._tell)

    def confirmed(self, run: EntryRun) -> None:
        """This run is new."""
        if self._is_due:
            self.keep_new()
            self._keep(run)
        else:
            self._is_due = True
            self._new = run
            self._turn.at_end(self._tell)

    def keep_new(self) -> None:
        """Whoever reads now finds what is new."""
        run, self._new = self._new, None
        if run is not None:
            self._keep(run)

    def clear(self) -> None:
        self._listeners.clear()
        self._new = None

    def _tell(self) -> None:
        self._is_due = False
        run, listeners = self._new, list(self._listeners.values())
        if run is not None:
            taker = listeners[0][1] if len(listeners) == 1 else None
            if taker is not None:
                count = taker(run, self.keep_new)
                self._new = None
                if count:
                    self._taken(run, count)
                return
            self.keep_new()
        for listener, _ in listeners:
            listener()
