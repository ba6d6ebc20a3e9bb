"""A bookie on a simulated machine: virtual time, a disk that loses and tears what was not synced, kill and power cut."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from bookie.bookie import Bookie
from bookie.errors import BookieStartError
from bookie.settings import BookieSettings
from simulation.disks.disk import SimDisk
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.process import SimProcess
from simulation.world.rng import stream
from simulation.world.trace import Trace

SMALL = BookieSettings(
    ("/data/journal",),
    ("/data/ledgers",),
    journal_max_size_mb=1,
    journal_pre_alloc_size_mb=1,
    db_storage_write_cache_max_size_mb=1,
    log_size_limit=600_000,
)
"""Small enough that a few adds fill a memtable, a journal file, an entry log."""


class StepDisk(SimDisk):
    """Calls `on_step` with the number of each call, as it begins to wait for its turn."""

    def __init__(self, loop: SimLoop, rng: random.Random) -> None:
        super().__init__(loop, rng)
        self.steps = 0
        self.on_step: Callable[[int], None] = lambda step: None

    def submit(self, *arguments: Any, **options: Any) -> "asyncio.Future[Any]":
        self.steps += 1
        self.on_step(self.steps)
        return super().submit(*arguments, **options)


class SimClock:
    """The loop's time as wall clock."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(self._loop.time() * 1000)


class Machine:
    """One host with one bookie."""

    was_known = False
    """The cluster has the bookie's cookie."""

    def __init__(self, seed: int, settings: BookieSettings = SMALL) -> None:
        self.loop = SimLoop(stream(seed, "loop"), Trace(None))
        self.disk = StepDisk(self.loop, stream(seed, "disk"))
        self.settings = settings
        self.bookie: Bookie
        self._rng = stream(seed, "bookie")
        self._ready: asyncio.Future[None]
        self._process = SimProcess(self.loop, SimNetwork(self.loop, stream(seed, "net")), "host", self.disk, self._main)

    @property
    def alive(self) -> bool:
        return self._process.alive

    def launch(self) -> "asyncio.Future[None]":
        """Start the process; the future is done when the bookie is, or has the BookieStartError."""
        self._ready = self.loop.create_future()
        self._process.start()
        return self._ready

    async def start(self) -> Bookie:
        await self.launch()
        return self.bookie

    def crash(self, *, power_cut: bool) -> None:
        if power_cut:
            self._process.cut_power()
        else:
            self._process.kill()

    async def _main(self) -> None:
        clock = SimClock(self.loop)
        bookie = self.bookie = Bookie(self.disk, self.settings, clock, self._rng, was_known=self.was_known)
        try:
            await bookie.start()
        except (BookieStartError, OSError) as error:
            self._ready.set_exception(error)
            return
        self._ready.set_result(None)
        await self.loop.create_future()


def on_machine(scenario: Callable[[Machine], Coroutine[Any, Any, Any]], seed: int = 0, settings: BookieSettings = SMALL) -> Any:
    machine = Machine(seed, settings)
    try:
        return machine.loop.run_until_complete(scenario(machine))
    finally:
        machine.loop.finish()
