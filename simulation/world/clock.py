"""SimClock: the wall clock of a simulated host, tied to the loop's virtual time, with an offset that faults may move."""

import asyncio

START_MS = 1_700_000_000_000
"""Wall clock at the start of every run."""


class SimClock:
    """Satisfies `ports.clock.Clock`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.offset_ms = 0

    def now_ms(self) -> int:
        return START_MS + int(self._loop.time() * 1000) + self.offset_ms
