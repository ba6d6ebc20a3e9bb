"""The server's log lines go into the trace of the run, so that a failing seed can be read, and replays compare them too."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from simulation.world.trace import Trace


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
    """While it lasts, all logging goes there and nowhere else."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [TraceHandler(trace)]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
