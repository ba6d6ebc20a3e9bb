"""QuorumScenario: a ledger on three to five real bookies, its writer, and two clients that recover it, across a network.

Every machine is a process of its own, with the real client, the real wire, the real bookie. They work as `quorum_plan` has
drawn, while faults happen (`quorum_faults`); then everything is healed, bookies are ended and started again, and one more
client opens the ledger and reads it. `quorum_checker` says what must hold all the while.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import TextIO
from unittest.mock import patch

from bookkeeper.ledger_end import read_ahead
from bookkeeper.ledger_metadata.codec import LedgerMetadata, decode_ledger_metadata
from bookkeeper.ledger_metadata.layouts import HIERARCHICAL
from bookkeeper.ledger_metadata.paths import AVAILABLE, ROOT
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.ledgers import LedgerError
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore, SharedTree
from simulation.checks.history import Violation
from simulation.quorum.bookie import BookieMachine
from simulation.quorum.checker import QuorumChecker
from simulation.quorum.client import LedgerClient, MetadataWay, World
from simulation.quorum.faults import QuorumFaults
from simulation.quorum.plan import NEVER, RECOVERERS, WRITER, Moment, QuorumPlan, Recovering, host_of
from simulation.quorum.races import DRAWN, draw_plan, late_race
from simulation.quorum.repair import SESSION_SECONDS, Repairer
from simulation.world.bounded import bounded
from simulation.world.clock import SimClock
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.outcome import Outcome, play
from simulation.world.process import SimProcess
from simulation.world.rng import stream
from simulation.world.trace import Trace

WORK_SECONDS = 1.5
START_SECONDS = 0.1
LATEST_SECONDS = 0.9
"""Latest time at which clients begin to recover, whatever the writer has done."""
RUN_SECONDS_MAX = 60.0
OPEN_ATTEMPTS = 8
REPAIR_LOOKS, REPAIR_LOOK_SECONDS = 200, 0.25
JUDGE = "judge"
PARTS_EVERY = 4
"""One seed in so many has a writer that appends parts among its runs."""
LATE_OF, LATE_ONES = 16, (11, 15)
"""Seeds with these remainders, modulo the first number, run the race that is made for writers of parts."""
READ_AHEAD_ENTRIES = 4
"""Entries read ahead at once: a recovery has more than one window, and asks for few entries that are not there."""


class QuorumScenario:
    """The run of one seed. `race`: the plan that it has in any case; empty: the seed's."""

    machine: type[BookieMachine] = BookieMachine

    def __init__(self, seed: int, sink: TextIO | None = None, race: str = "") -> None:
        self.seed = seed
        self.loop = SimLoop(stream(seed, "loop"), Trace(sink))
        self._rng = stream(seed, "quorum")
        self._network = SimNetwork(self.loop, stream(seed, "network"))
        plan = self.plan = self._draw(race)
        self.checker = QuorumChecker(self._metadata)
        settings = BookKeeperSettings(plan.quorum.ensemble_size, plan.quorum.write_quorum, plan.quorum.ack_quorum)
        self.world = World(self.loop, self.checker, SharedTree(), settings, {"appended": 0, "acknowledged": 0, "opened": 0})
        self.world.takes_parts = seed % PARTS_EVERY == PARTS_EVERY - 1
        self.world.run_at = plan.run_at
        hosts = [host_of(number) for number in range(plan.bookies)]
        self.bookies = [self.machine(self.loop, self._network, host, seed, plan.settings, self.checker) for host in hosts]
        self._clients: dict[str, SimProcess] = {}
        self._begun: dict[str, None] = {}
        self._repairer = Repairer(self.world, self._network, seed)
        self._ways = {name: MetadataWay(stream(seed, f"way {name}")) for name in (WRITER, *RECOVERERS, JUDGE)}
        self._cached: tuple[bytes, LedgerMetadata] | None = None

    def _draw(self, race: str) -> QuorumPlan:
        draw = DRAWN[race] if race else late_race if self.seed % LATE_OF in LATE_ONES else draw_plan
        return draw(stream(self.seed, "plan"))

    def run(self) -> Outcome:
        with patch.object(read_ahead, "ENTRIES_MAX", READ_AHEAD_ENTRIES):
            return play(self.seed, self.loop, self._play(), self.world.events)

    async def _play(self) -> None:
        plan = self.plan
        await self._prepare()
        rotting = [self.bookies[number] for number in plan.rotting]
        faults = QuorumFaults(
            self.loop, self._network, stream(self.seed, "faults"), self.bookies, rotting, self._clients, self._ways
        )
        self._plan_faults(faults)
        self._start_clients(faults)
        await faults.play(plan.faults, plan.faults_seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(WORK_SECONDS):
                await self._until_rest()
        self.loop.trace.wake_no_more()
        faults.heal()
        await self._restart_bookies()
        for name, count in faults.counts.items():
            self.world.events[f"fault {name}"] = count
        await self._judge()
        if self.checker.end is not None:
            await self._see_repair()
        await self._check_bookies()

    async def _see_repair(self) -> None:
        """Waits until copies that a bookie took with it are elsewhere. The ledger is closed."""
        if self.plan.leaves is not None:
            await self._until_repaired()

    async def _until_repaired(self) -> None:
        """Waits until no entry is on a bookie that has left, or on too few. Violation after REPAIR_LOOKS."""
        for _ in range(REPAIR_LOOKS):
            if self.checker.lacking() is None:
                self.world.count("repaired")
                return
            await asyncio.sleep(REPAIR_LOOK_SECONDS)
        raise Violation(f"not repaired: {self.checker.lacking()}")

    async def _check_bookies(self) -> None:
        events, plan = self.world.events, self.plan
        events.update(self.checker.events)
        if self.world.ledger_id >= 0:
            events["ensembles changed"] = len(self._metadata().segments) - 1
        excused = {*plan.rotting, plan.liar, plan.loser}
        for number, machine in enumerate(self.bookies):
            if number not in excused and machine.bookie is not None and self.checker.ledger_id >= 0:
                await machine.bookie.check_kept()

    async def _prepare(self) -> None:
        for way, seconds in self.plan.distances.items():
            self._network.set_distance(*way, seconds)
        if self.plan.liar is not None:
            machine = self.bookies[self.plan.liar]
            machine.process.may_die = machine.disk.is_lying = True
            self.checker.forgetful = machine.name
        for machine in self.bookies:
            machine.start()
        store = MemoryStore(SimClock(self.loop), self.world.shared, alone=False)
        await LedgerRegistry(store, stream(self.seed, "cluster")).initialise()
        for machine in self.bookies:
            await store.put(f"{AVAILABLE}/{machine.name}", b"")
        await asyncio.sleep(START_SECONDS)

    def _plan_faults(self, faults: QuorumFaults) -> None:
        self._ways[WRITER].answer_seconds = self.plan.metadata_seconds
        for moment, number in self.plan.ends:
            self.world.at(moment, partial(faults.end, self.bookies[number]))
        if self.plan.run_at:
            late = partial(self._network.set_distance, WRITER, host_of(self.plan.laggard), NEVER)
            self.world.at(Moment(self.plan.run_at, 0.0), late)
        if self.plan.rots is not None:
            for number in self.plan.rotting:
                self.world.at(self.plan.rots, partial(faults.rot_last, self.bookies[number]))
        if self.plan.loser is None:
            return
        machine = self.bookies[self.plan.loser]
        if self.plan.loses is not None:
            self.world.at(self.plan.loses, partial(faults.lose, machine, self.plan.lost_directories))
        if self.plan.leaves is not None:
            self._repairer.process.start()
            self.world.at(self.plan.leaves, partial(self._leave, machine))
        if self.plan.repairer_dies is not None:
            self.world.at(self.plan.repairer_dies, self._repairer.die)

    def _leave(self, machine: BookieMachine) -> None:
        self.world.count("left for good")
        machine.leave()
        self.loop.hardware_later(SESSION_SECONDS, self._repairer.unregister, machine.name)

    def _start_clients(self, faults: QuorumFaults) -> None:
        plan = self.plan
        work = partial(self._client(WRITER).write, plan.entries, plan.pause_seconds, plan.ending)
        self._clients[WRITER] = SimProcess(self.loop, self._network, WRITER, None, work)
        for name, recovering in zip(RECOVERERS, plan.recovering, strict=True):
            self._clients[name] = SimProcess(self.loop, self._network, name, None, partial(self._recover, name))
            for moment in (recovering.begins, Moment(0, LATEST_SECONDS)):
                self.world.at(moment, partial(self._begin, name, recovering, faults))
        self._clients[WRITER].start()

    def _begin(self, name: str, recovering: Recovering, faults: QuorumFaults) -> None:
        if name in self._begun:
            return
        self._begun[name] = None
        self._clients[name].start()
        if recovering.fence_lost_at is not None:
            faults.lose_fence(name, self.bookies[recovering.fence_lost_at], recovering.fence_lost_seconds)

    async def _until_rest(self) -> None:
        """Waits until the recoverers have ended and the writer has ended or rests."""
        for name in RECOVERERS:
            await self._clients[name].ended.wait()
        ends = (self._clients[WRITER].ended.wait(), self.world.writer_rests.wait())
        tasks = [asyncio.ensure_future(end) for end in ends]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()

    def _client(self, name: str) -> LedgerClient:
        return LedgerClient(self.world, name, self._ways[name], stream(self.seed, name))

    async def _recover(self, name: str) -> None:
        try:
            await self._client(name).recover(OPEN_ATTEMPTS)
        except LedgerError as error:
            self.loop.trace.record(name, f"gave up: {error}")
            self.world.count("gave up")

    async def _restart_bookies(self) -> None:
        """Restarts bookies whose disk has failed; of the others some crash once more, so that only the disk's word counts."""
        for machine in self.bookies:
            is_sick = machine.has_failed_disk or not machine.is_serving
            if machine.process.alive and (is_sick or self._rng.random() < 0.6):
                self._rng.choice((machine.process.kill, machine.process.cut_power))()
            if not machine.process.alive and machine.process.error is None:
                machine.start()
        await asyncio.sleep(START_SECONDS)

    async def _judge(self) -> None:
        """Judges without faults. Bookies that rot keeps from starting may be too many to write to, never too many to read."""
        dead = sum(not machine.process.alive for machine in self.bookies)
        process = SimProcess(self.loop, self._network, JUDGE, None, partial(self._judge_ledger, dead))
        process.start()
        async with asyncio.timeout(RUN_SECONDS_MAX):
            await process.ended.wait()
        if self.world.events["acknowledged"] and self.checker.end is None and dead <= self.plan.quorum.failures_max:
            raise Violation("nobody was told the end of the ledger")

    async def _judge_ledger(self, dead: int) -> None:
        if self.world.ledger_id < 0:
            return
        try:
            await self._client(JUDGE).recover(OPEN_ATTEMPTS)
        except LedgerError as error:
            if dead <= self.plan.quorum.failures_max or self.checker.end is not None:
                raise Violation(f"cannot be opened, with {dead} bookies dead and nothing else wrong: {error}") from error
            self.world.count("cannot be written to")

    def _metadata(self) -> LedgerMetadata:
        found = self.world.shared.tree.get(HIERARCHICAL.path(ROOT, self.world.ledger_id))
        assert found is not None, "the metadata of the ledger is gone"
        if self._cached is None or self._cached[0] != found.value:
            self._cached = found.value, decode_ledger_metadata(found.value)
        return self._cached[1]


@bounded
def run_quorum_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a replicated ledger that this seed stands for."""
    return QuorumScenario(seed, sink).run()


@bounded
def run_fence_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """A replicated ledger of which one bookie's fence is lost, with each seed."""
    return QuorumScenario(seed, sink, "fence").run()


@bounded
def run_rot_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """A replicated ledger whose last entries rot on one bookie, with each seed."""
    return QuorumScenario(seed, sink, "rot").run()


@bounded
def run_loss_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """A replicated ledger of which one bookie loses what it had, with each seed."""
    return QuorumScenario(seed, sink, "loss").run()
