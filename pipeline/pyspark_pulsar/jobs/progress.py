"""A job's progress on a terminal: one line, written over. Of Spark's jobs: how many of their tasks are done."""

import sys
import threading
from types import TracebackType
from typing import Any, Self, TextIO

_LOOK_SECONDS = 0.5
_BAR_CHARACTERS = 30


def line(what: str, done: int, total: int) -> str:
    """`what [#####.....] done/total`."""
    filled = _BAR_CHARACTERS * done // total if total else 0
    return f"{what} [{'#' * filled}{'.' * (_BAR_CHARACTERS - filled)}] {done}/{total}"


class Progress:
    """`say` from any thread; nothing is written where there is no terminal, unless `always`."""

    def __init__(self, what: str, stream: TextIO | None = None, always: bool = False) -> None:
        self._what, self._stream = what, stream or sys.stderr
        self._shows, self._last = always or self._stream.isatty(), ""

    def say(self, done: int, total: int) -> None:
        text = line(self._what, done, total)
        if self._shows and text != self._last:
            self._stream.write("\r" + text.ljust(len(self._last)))
            self._stream.flush()
            self._last = text

    def end(self) -> None:
        if self._last:
            self._stream.write("\n")
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
