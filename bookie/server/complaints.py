"""Complaints: what peers do wrong, in the log, so that no crowd of them can fill it. Pure but for the log."""

import logging
from collections.abc import Callable

from ports.logs import line

LINES_MAX = 100
"""In a period."""
PERIOD_SECONDS = 60.0


class Complaints:
    """Of all connections of one bookie. What is left out is counted, and told with the first line of the next period."""

    def __init__(self, log: logging.Logger, now: Callable[[], float]) -> None:
        """`now`: seconds on a clock that does not go back."""
        self._log, self._now = log, now
        self._began_at = now()
        self._lines = self._left_out = 0

    def tell(self, what: str, **fields: object) -> None:
        """A warning."""
        now = self._now()
        if now >= self._began_at + PERIOD_SECONDS:
            if self._left_out:
                self._log.warning(line("complaints about peers were left out", count=self._left_out))
            self._began_at, self._lines, self._left_out = now, 0, 0
        if self._lines >= LINES_MAX:
            self._left_out += 1
            return
        self._lines += 1
        self._log.warning(line(what, **fields))
