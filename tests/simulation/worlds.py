"""Parts that tests of the simulation share: a loop with network and disk from a seed, and a check that a run replays."""

import io
from collections.abc import Callable, Coroutine
from typing import Any

from simulation.disks.disk import SimDisk
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.rng import stream
from simulation.world.trace import Trace


class World:
    """One run's loop, network and disk."""

    def __init__(self, seed: int, sink: io.StringIO | None = None) -> None:
        self.loop = SimLoop(stream(seed, "loop"), Trace(sink))
        self.network = SimNetwork(self.loop, stream(seed, "network"))
        self.disk = SimDisk(self.loop, stream(seed, "disk"))


def run(scenario: Callable[[World], Coroutine[Any, Any, Any]], seed: int = 0, sink: io.StringIO | None = None) -> Any:
    """Run a scenario to its end in a world of its own."""
    world = World(seed, sink)
    try:
        return world.loop.run_until_complete(scenario(world))
    finally:
        world.loop.finish()
