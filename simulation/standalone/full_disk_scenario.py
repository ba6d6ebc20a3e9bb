"""A standalone whose disk is small, and filled again and again: by others, down to some bytes, and by what it writes itself.

The plan is that of a standalone, without errors of the disk; beside its faults come times without room, drawn from
the seed. Kills and power cuts come in them too, and the server starts with nothing free. When the work is over, nothing is free
for the last time: everything acknowledged is delivered while that lasts. Then there is room, and publishing goes on.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from metadata.embedded import EmbeddedStore
from metadata.store import MetadataStore
from simulation.checks.history import Stop
from simulation.disks.small_disk import SimRows, SmallDisk
from simulation.drawn_settings import SMALL_DISK, draw_some
from simulation.standalone.faults import NEVER, Faults
from simulation.standalone.machine import DATA, ServerMachine
from simulation.standalone.plan import WORK_SECONDS, Fault, FaultKind, Plan, draw_plan
from simulation.standalone.scenario import TOPIC, Scenario
from simulation.world.bounded import bounded
from simulation.world.loop import SimLoop
from simulation.world.outcome import Outcome
from simulation.world.rng import stream

ERRORS = frozenset({FaultKind.DISK_ERROR, FaultKind.FULL_DISK})
DISK_BYTES = (16 << 20, 32 << 20, 64 << 20)
PAYLOAD_BYTES_MAX = (2000, 8000)
JOURNAL: Mapping[str, str] = {"journalMaxSizeMB": "1", "journalPreAllocSizeMB": "1"}
"""Settings with which a run begins several files."""
LEFT_BYTES = (0, 0, 4096, 100_000, 500_000)
FULL_SECONDS = (0.05, 1.0, 4.0)


@dataclass(frozen=True, slots=True)
class Fullness:
    """Bytes that others leave free from `at` on, and for how long; `is_greedy`: they also take room that becomes free."""

    at: float
    seconds: float
    left_bytes: int
    is_greedy: bool


def draw_fullness(seed: int) -> tuple[int, list[Fullness]]:
    """The size of the disk, and when it is full."""
    rng = stream(seed, "full disk")
    times = [
        Fullness(rng.uniform(0.5, WORK_SECONDS), rng.choice(FULL_SECONDS), rng.choice(LEFT_BYTES), rng.random() < 0.5)
        for _ in range(rng.choice((1, 2, 4)))
    ]
    return rng.choice(DISK_BYTES), sorted(times, key=lambda each: each.at)


class SmallMachine(ServerMachine):
    """A host with a small disk, on which the metadata are too."""

    disk: SmallDisk

    def _make_disk(self, loop: SimLoop, rng: random.Random) -> SmallDisk:
        return SmallDisk(loop, rng)

    async def _open_store(self) -> MetadataStore:
        directory = f"{DATA}/metadata"
        rows, loaded = await SimRows.open(self.disk, directory)
        return EmbeddedStore(rows, loaded, self.clock)


class FullDiskFaults(Faults):
    """Faults, and beside them the times without room. `until_all_is_read`: of what is acknowledged."""

    fullness: Sequence[Fullness] = ()
    disk: SmallDisk
    until_all_is_read: Callable[[], Awaitable[None]]

    async def play(self, faults: Sequence[Fault]) -> None:
        for each in self.fullness:
            self._loop.hardware_later(max(0.0, each.at - self._loop.time()), self._fill, each)
        await super().play(faults)
        self._loop.trace.record("fault", "nothing is free")
        self.disk.fill(0, is_greedy=self._rng.random() < 0.5)
        if self._rng.random() < 0.5:
            await self.restart(self._rng.choice((Stop.KILL, Stop.POWER_CUT)))
        await self.until_all_is_read()
        self._loop.trace.record("fault", "there is room")
        self.disk.make_room()

    def _fill(self, each: Fullness) -> None:
        whose = ", and no more" if each.is_greedy else ""
        self._loop.trace.record("fault", f"{each.left_bytes} bytes are free for {each.seconds} s{whose}")
        self._disk_trouble.append((self._loop.time(), NEVER))
        self.disk.fill(each.left_bytes, is_greedy=each.is_greedy)
        self._loop.hardware_later(each.seconds, self.disk.make_room)


class FullDiskScenario(Scenario):
    """The run of one seed."""

    machine = SmallMachine

    def _make_faults(self) -> Faults:
        faults = FullDiskFaults(self.loop, self.network, self.server, self.recorder, stream(self.plan.seed, "faults"), TOPIC)
        assert isinstance(self.server, SmallMachine)
        disk = faults.disk = self.server.disk
        disk.size_bytes, faults.fullness = draw_fullness(self.plan.seed)
        disk.heal()
        faults.until_all_is_read = self._until_all_is_read
        return faults

    async def _until_all_is_read(self) -> None:
        await self._until(lambda: self.checker.left_behind() is None, "nothing is free, and what is stored is not delivered")


@bounded
def run_full_disk_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a standalone on a small disk that this seed stands for."""
    return FullDiskScenario(draw_full_disk_plan(seed), sink).run()


def draw_full_disk_plan(seed: int) -> Plan:
    plan, rng = draw_plan(seed), stream(seed, "full disk payloads")
    return replace(
        plan,
        faults=tuple(fault for fault in plan.faults if fault.kind not in ERRORS),
        settings={**plan.settings, **JOURNAL, **draw_some(SMALL_DISK, stream(seed, "small disk settings"))},
        producers=tuple(
            (client, replace(shape, payload_bytes_max=rng.choice(PAYLOAD_BYTES_MAX))) for client, shape in plan.producers
        ),
    )
