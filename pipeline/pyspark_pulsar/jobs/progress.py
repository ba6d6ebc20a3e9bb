"""A job's progress on a terminal: one line, written over. For Spark's jobs the number of finished tasks."""

import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO

_LOOK_SECONDS = 0.5
_BAR_CHARACTERS, _BAR_CHARACTERS_MIN = 30, 5
_COLUMNS = 80
"""Columns of a terminal that does not state its width."""


def line(what: str, done: int, total: int, columns: int = _COLUMNS) -> str:
    """`what [#####.....] done/total`, shorter than a line has columns: without the bar, then without `what`, if need be."""
    counts, room = f"{done}/{total}", columns - 1
    bar = min(_BAR_CHARACTERS, room - len(f"{what} [] {counts}"))
    if bar >= _BAR_CHARACTERS_MIN:
        filled = bar * min(done, total) // total if total else 0
        return f"{what} [{'#' * filled}{'.' * (bar - filled)}] {counts}"
    return next((each for each in (f"{what} {counts}", counts) if len(each) <= room), "")


def columns_of(stream: TextIO) -> int:
    """Now: a window changes its size."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except OSError:  # also of a stream that is no file
        return _COLUMNS


class Progress:
    """`say` from any thread; nothing is written where there is no terminal that writes over a line, unless `always`."""

    def __init__(
        self, what: str, stream: TextIO | None = None, always: bool = False, columns: Callable[[TextIO], int] = columns_of
    ) -> None:
        self._what, self._stream, self._columns = what, stream or sys.stderr, columns
        self._shows, self._last = always or (self._stream.isatty() and os.environ.get("TERM") != "dumb"), ""

    def say(self, done: int, total: int) -> None:
        if not self._shows:
            return
        columns = self._columns(self._stream)
        text = line(self._what, done, total, columns)
        if text != self._last:
            self._stream.write("\r" + text.ljust(min(len(self._last), columns - 1)))
            self._stream.flush()
            self._last = text

    def end(self) -> None:
        """Ends the line: the next output begins a new one."""
        if self._last:
            self._stream.write("\n")
            self._stream.flush()
            self._last = ""


class SparkProgress:
    """`with` it Spark's active stages are looked at, until the end."""

    def __init__(self, context: Any, progress: Progress) -> None:
        self._context, self._progress = context, progress
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()
        self._progress.end()

    def _look(self) -> None:
        tracker = self._context.statusTracker()
        while not self._is_over.wait(_LOOK_SECONDS):
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            known = [each for each in stages if each is not None]
            if known:
                self._progress.say(sum(each.numCompletedTasks for each in known), sum(each.numTasks for each in known))
