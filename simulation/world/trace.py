"""Trace: the line-by-line record of a run, and its hash. Owns the order of what happened; never decides anything.

Two runs of one seed must yield the same lines; the hash says so without keeping them.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO


@dataclass(slots=True)
class _Wake:
    word: str | tuple[str, ...]
    lines: int
    callback: Callable[[], object]


class Trace:
    """Hashes every line; also writes it to `sink` when there is one."""

    def __init__(self, sink: TextIO | None = None) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._sink = sink
        self.now = 0.0
        self.count = 0
        self._wakes: list[_Wake] = []

    def record(self, source: str, what: str) -> None:
        """One line: virtual time, who, what. No addresses, no object representations: nothing that differs between runs."""
        line = f"{self.now:.6f} {source} {what}\n"
        self.count += 1
        self._hash.update(line.encode())
        if self._sink is not None:
            self._sink.write(line)
        if self._wakes:
            self._wake(what)

    def wake_at(self, word: str | tuple[str, ...], lines: int, callback: Callable[[], object]) -> None:
        """Call at the so-manieth line from now that begins with `word` (one of them): in the middle of what happens then."""
        self._wakes.append(_Wake(word, lines, callback))

    def wake_no_more(self) -> None:
        self._wakes.clear()

    def _wake(self, what: str) -> None:
        for wake in self._wakes[:]:
            if what.startswith(wake.word):
                wake.lines -= 1
                if wake.lines == 0:
                    self._wakes.remove(wake)
                    wake.callback()

    @property
    def hash(self) -> str:
        return self._hash.hexdigest()


class TraceHandler(logging.Handler):
    """Writes each record as one line of the trace."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        error = "" if record.exc_info is None or record.exc_info[1] is None else f" {record.exc_info[1]!r}"
        self._trace.record("log", f"{record.levelname} {record.name}: {record.getMessage()}{error}".replace("\n", " | "))


@contextmanager
def logged_to(trace: Trace) -> Iterator[None]:
    """Sends all logging to the trace and nowhere else, so that a failing seed can be read and replays compare the lines too."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [TraceHandler(trace)]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
