"""CursorSaves: the durable cursors of a process that changed, and when each is to be stored; those that are due go together.

Owns one timer, and the appends under way of plain cursors: the place of each is one small entry of an open cursor ledger.
Every other cursor is told to store itself, in a task of its own. The cursor says whether it is plain, and gives its entry;
its throttle says when it is due. The number of cursors bounds the waiting saves: each is planned once.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from typing import Protocol

from bookkeeper.ledgers import LedgerError, LedgerWriter
from bookkeeper.write.parts import Part
from bookkeeper.write.together import send
from ports.loop.promise import listen
from wire.position import Position
from wire.run import EntryRun, batch_of

GRID_SECONDS = 0.05
"""Step of time to which later saves are rounded, so that cursors that change now and then are stored together."""
AT_ONCE_MAX = 128
"""Cursors that are stored in one turn of the loop: a few milliseconds."""


class PlainSave:
    """One save under way: of this cursor, as it was at this version, in an entry of its cursor ledger."""

    __slots__ = ("cursor", "entry", "mark_delete", "on_end", "version", "writer")

    def __init__(
        self, cursor: "SavedTogether", writer: LedgerWriter, entry: bytes, mark_delete: Position, version: int
    ) -> None:
        self.cursor, self.writer, self.entry = cursor, writer, entry
        self.mark_delete, self.version = mark_delete, version
        self.on_end: Callable[[], None] | None = None
        """Called at the end: another save of the cursor waits for it."""

    def part_answered(self, part: Part, error: BaseException | None) -> None:
        self.cursor.save_ended(self, error)


class SavedTogether(Protocol):
    """A durable cursor, as it is seen here."""

    def begin_save(self) -> PlainSave | None:
        """Begin the save that is due. None: the cursor saves itself, or has nothing to store."""

    def save_ended(self, save: PlainSave, error: BaseException | None) -> None: ...


class CursorSaves:
    """Saves of cursors of all managed ledgers of a factory."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._by_step: dict[int, dict[SavedTogether, None]] = {}
        self._steps: list[int] = []
        """A heap of the steps that have cursors, perhaps of some that have none any more."""
        self._due: dict[SavedTogether, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_step = 0
        self._soon: asyncio.Handle | None = None

    def plan(self, cursor: SavedTogether, at: float) -> int:
        """Store it at that time of the loop or soon after; the key for `forget`."""
        step = -int(-at // GRID_SECONDS) if at > self._loop.time() else 0
        if not step:
            self._due[cursor] = None
            self._go_on()
            return 0
        waiting = self._by_step.get(step)
        if waiting is None:
            waiting = self._by_step[step] = {}
            heappush(self._steps, step)
        waiting[cursor] = None
        if self._timer is None or step < self._timer_step:
            self._set_timer()
        return step

    def forget(self, cursor: SavedTogether, step: int) -> None:
        """Forget the cursor: no more saves."""
        self._due.pop(cursor, None)
        waiting = self._by_step.get(step)
        if waiting is not None:
            waiting.pop(cursor, None)
            if not waiting:
                del self._by_step[step]

    def _set_timer(self) -> None:
        """Set the timer for the first step that has a cursor."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        steps = self._steps
        while steps and steps[0] not in self._by_step:
            heappop(steps)
        if steps:
            self._timer_step = steps[0]
            self._timer = self._loop.call_at(self._timer_step * GRID_SECONDS, self._step_came)

    def _step_came(self) -> None:
        self._timer = None
        while self._steps and self._steps[0] <= self._timer_step:
            self._due.update(self._by_step.pop(heappop(self._steps), {}))
        self._set_timer()
        self._save_due()

    def _go_on(self) -> None:
        if self._soon is None and self._due:
            self._soon = self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._soon = None
        self._save_due()

    def _save_due(self) -> None:
        """Some of those that are due; the others have the next turn."""
        chosen = list(islice(self._due, AT_ONCE_MAX))
        for cursor in chosen:
            del self._due[cursor]
        self._go_on()
        saves = [save for cursor in chosen if (save := cursor.begin_save()) is not None]
        if saves:
            _append(saves, self._loop.time())


def _append(saves: Sequence[PlainSave], now: float) -> None:
    """Append to all of their ledgers together, as far as these take parts."""
    entries = batch_of([save.entry for save in saves])
    parts: list[Part] = []
    for index, save in enumerate(saves):
        part = Part(entries, index, 1, save, None, now)
        if save.writer.take_part(part):
            parts.append(part)
        else:
            listen(save.writer.append(batch_of((save.entry,))), partial(_appended, save))
    send(parts)


def _appended(save: PlainSave, stored: "asyncio.Future[EntryRun]") -> None:
    save.cursor.save_ended(save, LedgerError("the append was cancelled") if stored.cancelled() else stored.exception())
