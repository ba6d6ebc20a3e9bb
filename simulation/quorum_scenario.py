"""QuorumScenario: a ledger on three to five real bookies, its writer, and two clients that recover it, across a network.

Every machine is a process of its own, with the real client, the real wire, the real bookie. They work while faults happen
(`simulation.quorum_faults`); then everything is healed, bookies are ended and started again, and one more client opens the
ledger and reads it. `simulation.quorum_checker` says what must hold all the while.
"""

import asyncio
from functools import partial
from typing import TextIO

from bookie.settings import BookieSettings
from bookkeeper.ledger_layouts import HIERARCHICAL
from bookkeeper.ledgers import LedgerError
from bookkeeper.metadata_codec import LedgerMetadata, decode_ledger_metadata
from bookkeeper.paths import AVAILABLE, ROOT
from bookkeeper.registry import LedgerRegistry
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore, SharedTree
from simulation.clock import SimClock
from simulation.history import Violation
from simulation.loop import SimLoop
from simulation.network import SimNetwork
from simulation.outcome import Outcome, play
from simulation.process import SimProcess
from simulation.quorum_bookie import BookieMachine
from simulation.quorum_checker import QuorumChecker
from simulation.quorum_client import LedgerClient, MetadataWay, World
from simulation.quorum_faults import QuorumFaults
from simulation.rng import stream
from simulation.trace import Trace

QUORUMS = ((3, 3, 2), (3, 3, 2), (3, 3, 2), (3, 2, 2), (4, 3, 2), (5, 3, 2), (3, 3, 3), (2, 2, 1))
WORK_SECONDS = 1.5
FAULT_SECONDS = (0.05, 0.2, 1.3)
"""In which all faults begin."""
START_SECONDS = 0.1
RUN_SECONDS_MAX = 60.0
OPEN_ATTEMPTS = 8
RECOVERERS = ("recoverer-0", "recoverer-1")
WRITER, JUDGE = "writer", "judge"


class QuorumScenario:
    """The run of one seed."""

    def __init__(self, seed: int, sink: TextIO | None = None) -> None:
        self.seed = seed
        self.loop = SimLoop(stream(seed, "loop"), Trace(sink))
        self._rng = stream(seed, "quorum")
        self._network = SimNetwork(self.loop, stream(seed, "network"))
        ensemble, write, ack = self._rng.choice(QUORUMS)
        self._write_quorum, self._ack_quorum = write, ack
        self.checker = QuorumChecker(self._metadata)
        self.world = World(
            self.loop, self.checker, SharedTree(), BookKeeperSettings(ensemble, write, ack), {"acknowledged": 0, "opened": 0}
        )
        settings = self._draw_bookie_settings()
        hosts = [f"bookie-{number}" for number in range(min(5, max(3, ensemble + self._rng.choice((0, 1, 1, 2)))))]
        self.bookies = [BookieMachine(self.loop, self._network, host, seed, settings, self.checker) for host in hosts]
        self._clients: dict[str, SimProcess] = {}
        self._ways = {name: MetadataWay(stream(seed, f"way {name}")) for name in (WRITER, *RECOVERERS, JUDGE)}
        self._cached: tuple[bytes, LedgerMetadata] | None = None

    def run(self) -> Outcome:
        return play(self.seed, self.loop, self._play(), self.world.events)

    def _draw_bookie_settings(self) -> BookieSettings:
        interval = self._rng.choice((20, 100, 1000))
        return BookieSettings(
            ("/j",), ("/l",), journal_max_size_mb=16, journal_pre_alloc_size_mb=1, journal_alignment_size=512,
            flush_interval=interval,
        )  # fmt: skip

    async def _play(self) -> None:
        await self._prepare()
        rotting = self._rng.sample(self.bookies, self._rng.randrange(self._ack_quorum))
        faults = QuorumFaults(
            self.loop, self._network, stream(self.seed, "faults"), self.bookies, rotting, self._clients, self._ways
        )
        self._start_clients(faults)
        await faults.play(self._rng.choice((0, 1, 2, 3, 4, 6)), self._rng.choice(FAULT_SECONDS))
        await asyncio.sleep(max(0.0, WORK_SECONDS - self.loop.time()))
        self.loop.trace.wake_no_more()
        faults.heal()
        await self._restart_bookies()
        for name, count in faults.counts.items():
            self.world.events[f"fault {name}"] = count
        await self._judge()
        for machine in self.bookies:
            if machine not in rotting and machine.bookie is not None and self.world.ledger_id >= 0:
                await machine.bookie.check_kept(self.world.ledger_id)
        if self.world.ledger_id >= 0:
            self.world.events["ensembles changed"] = len(self._metadata().segments) - 1

    async def _prepare(self) -> None:
        self._draw_distances()
        for machine in self.bookies:
            machine.start()
        store = MemoryStore(SimClock(self.loop), self.world.shared, alone=False)
        await LedgerRegistry(store, stream(self.seed, "cluster")).initialise()
        for machine in self.bookies:
            await store.put(f"{AVAILABLE}/{machine.name}", b"")
        await asyncio.sleep(START_SECONDS)

    def _draw_distances(self) -> None:
        """Some bookies are far from some clients: what one client has done another may not see for long."""
        for client in (WRITER, *RECOVERERS):
            for machine in self.bookies:
                for way in ((client, machine.host), (machine.host, client)):
                    self._network.set_distance(*way, self._rng.choice((0.000_05, 0.000_3, 0.000_3, 0.003, 0.02)))

    def _start_clients(self, faults: QuorumFaults) -> None:
        rng, pause = self._rng, self._rng.choice((0.003, 0.02, 0.05))
        work = partial(self._client(WRITER).write, rng.randint(1, 20), pause, rng.choice(("close", "hang", "hang")))
        self._clients[WRITER] = SimProcess(self.loop, self._network, WRITER, None, work)
        latest = rng.choice((0.1, 0.4, 0.9))
        for machine in rng.sample(self.bookies, rng.choice((0, 0, 1, 2))):
            self.loop.hardware_later(rng.uniform(0.0, 0.15), faults.end, machine)
        together = rng.uniform(0.0, latest)
        for name in RECOVERERS:
            after = rng.choice((together, rng.uniform(0.0, latest), rng.uniform(latest / 2, latest)))
            work = partial(self._recover, name, after)
            self._clients[name] = SimProcess(self.loop, self._network, name, None, work)
            if rng.random() < 0.3:
                self._lose_fence(faults, name, after)
        for process in self._clients.values():
            process.start()

    def _lose_fence(self, faults: QuorumFaults, recoverer: str, after_seconds: float) -> None:
        """One bookie hears of the recovery late, and of the writer later still."""
        machine = self._rng.choice(self.bookies)
        self._network.set_distance(WRITER, machine.host, 0.05)
        seconds = self._rng.choice((0.005, 0.02))
        self.loop.hardware_later(after_seconds, faults.lose_requests, recoverer, machine, seconds)

    def _client(self, name: str) -> LedgerClient:
        return LedgerClient(self.world, name, self._ways[name], stream(self.seed, name))

    async def _recover(self, name: str, after_seconds: float) -> None:
        try:
            await self._client(name).recover(after_seconds, OPEN_ATTEMPTS)
        except LedgerError as error:
            self.loop.trace.record(name, f"gave up: {error}")
            self.world.count("gave up")

    async def _restart_bookies(self) -> None:
        """Those whose disk has failed must be; of the others some crash once more, so that only the disk's word counts."""
        for machine in self.bookies:
            is_sick = machine.has_failed_disk or not machine.is_serving
            if machine.process.alive and (is_sick or self._rng.random() < 0.6):
                self._rng.choice((machine.process.kill, machine.process.cut_power))()
            if not machine.process.alive and machine.process.error is None:
                machine.start()
        await asyncio.sleep(START_SECONDS)

    async def _judge(self) -> None:
        """Nobody disturbs it. Bookies that rot keeps from starting may be too many to write to, never too many to read."""
        dead = sum(not machine.process.alive for machine in self.bookies)
        process = SimProcess(self.loop, self._network, JUDGE, None, partial(self._judge_ledger, dead))
        process.start()
        async with asyncio.timeout(RUN_SECONDS_MAX):
            await process.ended.wait()
        if self.world.events["acknowledged"] and self.checker.end is None and dead <= self._write_quorum - self._ack_quorum:
            raise Violation("nobody was told the end of the ledger")

    async def _judge_ledger(self, dead: int) -> None:
        if self.world.ledger_id < 0:
            return
        try:
            await self._client(JUDGE).recover(0.0, OPEN_ATTEMPTS)
        except LedgerError as error:
            if dead <= self._write_quorum - self._ack_quorum or self.checker.end is not None:
                raise Violation(f"cannot be opened, with {dead} bookies dead and nothing else wrong: {error}") from error
            self.world.count("cannot be written to")

    def _metadata(self) -> LedgerMetadata:
        found = self.world.shared.tree.get(HIERARCHICAL.path(ROOT, self.world.ledger_id))
        assert found is not None, "the metadata of the ledger is gone"
        if self._cached is None or self._cached[0] != found.value:
            self._cached = found.value, decode_ledger_metadata(found.value)
        return self._cached[1]


def run_quorum_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a replicated ledger that this seed stands for."""
    return QuorumScenario(seed, sink).run()
