"""ConfirmedListeners: listeners to moves of last_confirmed, and to other changes that need no particulars.
RefusedListener: the listener to refused appends.

The former are called at the end of the turn, once however many runs came in it. The only listener may take the only new run
itself: then the run is not kept for readers.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bookkeeper.write.parts import Part
from ports.loop.turn import turn_of
from wire.kernels.rows import ListenersRow
from wire.kernels.turns import joined_run
from wire.run import EntryRun

from .entry_metadata import EntryMetadata

Listener: TypeAlias = Callable[[], None]
New: TypeAlias = EntryRun | Part
Taker: TypeAlias = Callable[[New, Listener], int]
"""Gets a run that was just confirmed; it calls the second argument before that run may be read from the log. Returns how many
took the run without reading it."""


def _ignore(_run: EntryRun) -> None:
    pass


def _ignore_taken(_run: New, _count: int) -> None:
    pass


def run_of(new: New) -> EntryRun:
    """Run of its own; a part is copied out of its shared buffer."""
    return new.run() if isinstance(new, Part) else new


def joined(news: Sequence[New]) -> Iterator[EntryRun]:
    """Runs of their own: parts that follow one another are one."""
    parts: list[Part] = []
    for new in news:
        if parts and not (isinstance(new, Part) and _follows(parts[-1], new)):
            yield joined_run(parts)
            parts = []
        if isinstance(new, Part):
            parts.append(new)
        else:
            yield new
    if parts:
        yield joined_run(parts)


def _follows(before: Part, part: Part) -> bool:
    return part.ledger_id == before.ledger_id and part.first_entry_id == before.last_entry_id + 1


class RefusedListener:
    """The one that can go on after appends were refused, and the indexes that these had."""

    __slots__ = ("_entry_metadata", "listener")

    def __init__(self, entry_metadata: EntryMetadata | None) -> None:
        self.listener: Listener | None = None
        self._entry_metadata = entry_metadata

    def tell(self) -> bool:
        """Tell the listener that appends that are not stored yet fail. False: there is no listener that could go on."""
        if self.listener is None:
            return False
        if self._entry_metadata is not None:
            self._entry_metadata.take_back()
        self.listener()
        return True


class ConfirmedListeners(ListenersRow):
    """Called on the loop in the order in which they came. `keep` gets a run that may be read, `taken` one that so many took."""

    __slots__ = ("_given", "_keep", "_listeners", "_taken", "_turn")

    _new: New | None
    """The first run that came in this turn."""
    _more: list[New]
    """Runs that came after it."""

    def __init__(self, keep: Callable[[EntryRun], None] = _ignore, taken: Callable[[New, int], None] = _ignore_taken) -> None:
        self._turn = turn_of(asyncio.get_running_loop())
        self._listeners: dict[int, tuple[Listener, Taker | None]] = {}
        self._given = 0
        self._is_due = False
        self._keep, self._taken = keep, taken
        self._new, self._more = None, []

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
            self._turn.at_end(self.end_turn)

    def confirmed(self, new: New) -> None:
        """This run is new."""
        if self._is_due:
            self._more.append(new)
        else:
            self._is_due = True
            self._new = new
            self._turn.at_end(self.end_turn)

    def keep_new(self) -> None:
        """Keep the new runs for readers."""
        new, self._new = self._new, None
        more, self._more = self._more, []
        if more:
            for run in joined(more if new is None else [new, *more]):
                self._keep(run)
        elif new is not None:
            self._keep(run_of(new))

    def clear(self) -> None:
        self._listeners.clear()
        self._new, self._more = None, []

    def end_turn(self) -> None:
        """Tell what came in it."""
        self._is_due = False
        new, listeners = self._new, list(self._listeners.values())
        if new is not None and not self._more and len(listeners) == 1:
            taker = listeners[0][1]
            if taker is not None:
                count = taker(new, self.keep_new)
                self._new = None
                if count:
                    self._taken(new, count)
                return
        self.keep_new()
        for listener, _ in listeners:
            listener()


@dataclass(frozen=True, slots=True)
class AppendListeners:
    """Listeners of one managed ledger's appends. `confirmed` and `stamped` are notified of each stored run, before its future
    is done; `switched` when a new ledger has begun; `refused` when appends are to be refused: False fails the managed ledger
    instead.
    """

    confirmed: ConfirmedListeners
    switched: Callable[[], None]
    refused: Callable[[], bool]
    stamped: Callable[[EntryRun], None] | None = None
