"""LedgerScenario: a ledger whose writer and whose recovery overlap, on one real bookie, which may crash. The fencing promise.

A writer appends and notes what was acknowledged; at some moment another client opens the ledger, which fences, recovers and
closes it. Then every acknowledged entry, from before or after, is in the opened ledger, with its bytes; a client that opens it
again, also after a crash, sees the same.
"""

import asyncio
import functools
import random
from collections.abc import Callable, Sequence
from typing import TextIO

from bookie.bookie import Bookie
from bookie.settings import BookieSettings
from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerError, LedgerWriter
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore, SharedTree
from metadata.tree import Tree
from simulation.checks.history import Violation
from simulation.clients.client import SERVER
from simulation.disks.disk import SimDisk
from simulation.world.bounded import bounded
from simulation.world.clock import SimClock
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.outcome import Outcome, play
from simulation.world.process import SimProcess
from simulation.world.rng import stream
from simulation.world.trace import Trace
from wire.run import batch_of

SETTINGS = BookKeeperSettings(1, 1, 1)
RUN_SECONDS_MAX = 60.0
PAYLOAD_BYTES = (1, 100, 3000)
TORN_PAYLOAD_BYTES = (3000, 6000, 20_000)
"""Frames of many sectors, of which a power cut leaves some."""


class LedgerScenario:
    """The run of one seed."""

    payload_bytes: Sequence[int] = PAYLOAD_BYTES

    def __init__(self, seed: int, sink: TextIO | None = None) -> None:
        self.seed = seed
        self.loop = SimLoop(stream(seed, "loop"), Trace(sink))
        self.disk = SimDisk(self.loop, stream(seed, "disk"))
        self.acknowledged: dict[int, bytes] = {}
        self.opened: list[bytes] | None = None
        self.events = {"appended": 0, "acknowledged": 0, "opened": 0, "crashed": 0}
        self._rng = stream(seed, "ledger")
        self._network = SimNetwork(self.loop, stream(seed, "network"))
        self._clock = SimClock(self.loop)
        self._tree = Tree()
        self._ledger_id = -1
        self._lives = 0

    def run(self) -> Outcome:
        return play(self.seed, self.loop, self._play(), self.events)

    async def _play(self) -> None:
        machine = SimProcess(self.loop, self._network, SERVER, self.disk, self._live)
        for _ in range(self._rng.choice((1, 2, 3))):
            machine.start()
            self._plan_crash(machine)
            await self._wait(machine)
            self.loop.trace.wake_no_more()
        machine.start()
        await self._wait(machine)

    def _plan_crash(self, machine: SimProcess) -> None:
        """Plans the crash of this life, if any."""
        if self._rng.random() < 0.5:
            end = self._rng.choice((machine.kill, machine.cut_power, machine.cut_power))
            self.loop.trace.wake_at("", self._rng.randint(1, 150), functools.partial(self._crash_with, end))
            self.events["crashed"] += 1

    def _crash_with(self, end: Callable[[], None]) -> None:
        self.loop.hardware_later(0.0, end)

    async def _wait(self, machine: SimProcess) -> None:
        async with asyncio.timeout(RUN_SECONDS_MAX):
            await machine.ended.wait()

    # One life of the machine

    async def _live(self) -> None:
        self._lives += 1
        rng = stream(self.seed, f"life {self._lives}")
        settings = BookieSettings(("/j",), ("/l",), journal_max_size_mb=16, journal_pre_alloc_size_mb=1)
        bookie = Bookie(self.disk, settings, self._clock, rng)
        await bookie.start()
        shared = SharedTree()
        shared.tree = self._tree
        writer_side = BookKeeper({SERVER: bookie}, self._store(shared, alone=True), SETTINGS, rng)
        reader_side = BookKeeper({SERVER: bookie}, self._store(shared, alone=False), SETTINGS, rng)
        await writer_side.initialise()
        async with asyncio.TaskGroup() as group:
            if self._ledger_id < 0:
                writer = await writer_side.create({})
                self._ledger_id = writer.ledger_id
                group.create_task(self._write(writer, rng))
            group.create_task(self._open(reader_side, rng))
        await self._read_all(writer_side)
        await bookie.stop()

    def _store(self, shared: SharedTree, *, alone: bool) -> MemoryStore:
        return MemoryStore(self._clock, shared, alone=alone, answer_delay=lambda: self._rng.expovariate(1 / 0.001))

    async def _write(self, writer: LedgerWriter, rng: random.Random) -> None:
        for _ in range(rng.randint(1, 150)):
            payload = rng.randbytes(rng.choice(self.payload_bytes))
            entry_id = writer.next_entry_id
            future = writer.append(batch_of((payload,)))
            self.events["appended"] += 1
            future.add_done_callback(lambda done, entry=entry_id, data=payload: self._on_append(done, entry, data))  # type: ignore[misc]
            await asyncio.sleep(rng.choice((0.0, 0.0, rng.expovariate(1 / 0.001))))

    def _on_append(self, future: "asyncio.Future[object]", entry_id: int, payload: bytes) -> None:
        error = future.exception()
        if error is None:
            self.events["acknowledged"] += 1
            self.acknowledged[entry_id] = payload
            self._check()
        elif not isinstance(error, LedgerError):
            self.loop.fail(error)

    async def _open(self, client: BookKeeper, rng: random.Random) -> None:
        await asyncio.sleep(rng.uniform(0.0, 0.1))
        await self._read_all(client)
        await asyncio.sleep(rng.choice((0.0, 0.05)))

    async def _read_all(self, client: BookKeeper) -> None:
        if self._ledger_id < 0:
            return
        reader = await client.open(self._ledger_id)
        payloads: list[bytes] = []
        while len(payloads) <= reader.last_entry_id:
            run = await reader.read(len(payloads), 1 + self._rng.randrange(20), 1 << 20)
            payloads += [bytes(run.payload(run.first_entry_id + index)) for index in range(run.count)]
        self.events["opened"] += 1
        self.loop.trace.record("ledger", f"opened up to {reader.last_entry_id}")
        if self.opened is not None and payloads != self.opened:
            raise Violation(f"opened twice with {len(self.opened)} and {len(payloads)} entries, or other bytes")
        self.opened = payloads
        self._check()

    def _check(self) -> None:
        if self.opened is None:
            return
        for entry_id, payload in self.acknowledged.items():
            if entry_id >= len(self.opened):
                raise Violation(f"entry {entry_id} was acknowledged, and the ledger was closed with {len(self.opened)} entries")
            if self.opened[entry_id] != payload:
                raise Violation(f"entry {entry_id}: other bytes than were acknowledged")


class TornScenario(LedgerScenario):
    """A power cut while the journal's large frames are written, in each life."""

    payload_bytes = TORN_PAYLOAD_BYTES

    def _plan_crash(self, machine: SimProcess) -> None:
        self.loop.trace.wake_at("write /j", self._rng.randint(1, 40), functools.partial(self._crash_with, machine.cut_power))
        self.events["crashed"] += 1


@bounded
def run_ledger_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a ledger that this seed stands for."""
    return LedgerScenario(seed, sink).run()


@bounded
def run_torn_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a ledger in whose frames power cuts come."""
    return TornScenario(seed, sink).run()
