"""A closed ledger loses a bookie while others have no room: auto-recovery waits for room, and goes on by itself.

The ledger is written and closed as in the quorum scenario's race of a repair, with its faults. Then the disks of some or all
bookies are filled, down to some bytes; a bookie leaves for good; an auditor and a replication worker run, and may die. Always:
- the ledger keeps its mark until all its copies are there;
- the metadata names no bookie that does not have what it is named for (`QuorumChecker`), and an entry that is there stays;
- a repair that cannot be done is tried again in pauses that grow.
Where a bookie has room the ledger is repaired at once. When there is room everywhere it is repaired, and read once more.
"""

import asyncio
import random
from dataclasses import replace
from functools import partial
from typing import TextIO

from bookkeeper.repair.underreplication.tree import LEDGERS as MARKS
from simulation.checks.history import Violation
from simulation.disks.small_disk import SmallDisk
from simulation.quorum.bookie import BookieMachine
from simulation.quorum.plan import QuorumPlan
from simulation.quorum.repair import SETTINGS
from simulation.quorum.scenario import REPAIR_LOOK_SECONDS, REPAIR_LOOKS, START_SECONDS, QuorumScenario
from simulation.world.bounded import bounded
from simulation.world.loop import SimLoop
from simulation.world.outcome import Outcome
from simulation.world.rng import stream

DISK_BYTES = 4 << 30
LEFT_BYTES = (0, 4096, 100_000, 1_000_000)
NEEDED_BYTES = (0, 50_000, None)
"""Bytes that must be free for a recovery's adds, as those of a repair are, when the disk is full."""
CHECK_MS = (100, 500)
FULL_SECONDS = (2.0, 6.0, 20.0)
LOOK_SECONDS = 0.02
PAUSES_UNTIL_LONGEST = 6
"""A worker's first pauses are shorter than `lockReleaseOfFailedLedgerGracePeriod`."""


class SmallBookieMachine(BookieMachine):
    """A bookie with a disk of finite size."""

    disk: SmallDisk

    def make_disk(self, loop: SimLoop, rng: random.Random, host: str) -> SmallDisk:
        disk = SmallDisk(loop, rng, host)
        disk.size_bytes = disk.capacity_bytes = DISK_BYTES
        return disk


class FullRepairScenario(QuorumScenario):
    """The run of one seed."""

    machine = SmallBookieMachine

    def __init__(self, seed: int, sink: TextIO | None = None) -> None:
        super().__init__(seed, sink, "repair")
        self._chance = stream(seed, "full repair")
        self._was_marked = False

    def _draw(self, race: str) -> QuorumPlan:
        plan, rng = super()._draw(race), stream(self.seed, "full repair settings")
        settings = replace(
            plan.settings,
            disk_check_interval=rng.choice(CHECK_MS),
            min_usable_size_for_high_priority_writes=rng.choice(NEEDED_BYTES),
        )
        return replace(plan, settings=settings, leaves=None, repairer_dies=None)

    async def _see_repair(self) -> None:
        rng = self._chance
        loser = self.bookies[self.plan.loser or 0]
        full = self._fill([machine for machine in self.bookies if machine is not loser])
        await asyncio.sleep(rng.choice((0.0, 1.0)))
        self._leave(loser)
        self._repairer.process.start()
        seconds = rng.choice(FULL_SECONDS)
        self._plan_troubles(full, seconds)
        await self._watch(seconds)
        self.world.count("not repaired while disks are full" if self.checker.lacking() else "repaired while disks are full")
        for machine in full:
            machine.disk.make_room()
            if not machine.process.alive:
                machine.start()
        self.loop.trace.record("fault", "there is room")
        await self._until_repaired()
        await self._until_unmarked()
        await asyncio.sleep(START_SECONDS)
        await self._judge()

    def _fill(self, others: list[BookieMachine]) -> list[SmallBookieMachine]:
        rng = self._chance
        full = others if rng.random() < 0.5 else rng.sample(others, rng.randint(1, len(others)))
        found = [machine for machine in full if isinstance(machine, SmallBookieMachine)]
        for machine in found:
            left_bytes, is_greedy = rng.choice(LEFT_BYTES), rng.random() < 0.5
            self.loop.trace.record("fault", f"{machine.host} has {left_bytes} bytes left{' and no more' if is_greedy else ''}")
            machine.disk.fill(left_bytes, is_greedy=is_greedy)
        return found

    def _plan_troubles(self, full: list[SmallBookieMachine], seconds: float) -> None:
        """The repairer dies, a bookie without room is killed and started again, or neither."""
        rng, later = self._chance, self.loop.hardware_later
        if rng.random() < 0.3:
            later(rng.uniform(0.0, seconds), self._repairer.die)
        if rng.random() < 0.3:
            later(rng.uniform(0.0, seconds / 2), partial(self._restart, rng.choice(full)))

    def _restart(self, machine: SmallBookieMachine) -> None:
        self.world.count("restarted without room")
        machine.process.kill()
        machine.start()

    # Checks

    async def _watch(self, seconds: float) -> None:
        end = self.loop.time() + seconds
        while self.loop.time() < end:
            self._look()
            await asyncio.sleep(LOOK_SECONDS)
        longest = SETTINGS.lock_release_of_failed_ledger_grace_period / 1000
        tries_max = PAUSES_UNTIL_LONGEST * self._repairer.lives + seconds / longest + 1
        if self._repairer.failures > tries_max:
            raise Violation(f"{self._repairer.failures} tries in {seconds} s to repair what has no place")
        self.world.events["tries in vain"] = self._repairer.failures

    def _look(self) -> None:
        self.checker.check_moves()
        is_marked, lacking = self._is_marked(), self.checker.lacking()
        if self._was_marked and not is_marked and lacking is not None:
            raise Violation(f"the mark of the ledger is gone, and it lacks copies: {lacking}")
        self._was_marked = is_marked

    def _is_marked(self) -> bool:
        paths = [MARKS]
        for path in paths:
            paths += [f"{path}/{name}" for name in self.world.shared.tree.children(path)]
        return any(path.rpartition("/")[2].startswith("urL") for path in paths)

    async def _until_unmarked(self) -> None:
        for _ in range(REPAIR_LOOKS):
            if not self._is_marked():
                return
            await asyncio.sleep(REPAIR_LOOK_SECONDS)
        raise Violation("the ledger has all its copies, and is still marked")


@bounded
def run_full_repair_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The repair of a ledger among bookies without room that this seed stands for."""
    return FullRepairScenario(seed, sink).run()
