"""LogScenario: a managed ledger and its cursors on one real bookie, with a crash after any one of its writes.

A write is a change of the metadata, or a call that changes the disk: of the log, of its ledgers, of the cursors, of trimming.
A life opens the log, checks every promise (`log_model`), works, and ends cleanly or by a crash. Last comes a look
at what is stored (`simulation.ledgers.log_leftovers`).
"""

import asyncio
import functools
import itertools
import random
from collections.abc import Sequence
from typing import Any, TextIO

from pyroaring import BitMap

from bookie.bookie import Bookie
from bookie.settings import BookieSettings
from bookkeeper.client import BookKeeper
from bookkeeper.settings import BookKeeperSettings
from managed_ledger.contract import EARLIEST, ManagedLedger
from managed_ledger.factory import ManagedLedgerFactory
from managed_ledger.settings import ManagedLedgerSettings
from metadata.memory import MemoryStore, SharedTree
from metadata.store import Operation
from metadata.tree import Applied, Tree
from simulation.clients.client import SERVER
from simulation.disks.disk import SimDisk
from simulation.ledgers.log_leftovers import check_leftovers
from simulation.ledgers.log_model import BATCH, LogModel
from simulation.world.bounded import bounded
from simulation.world.clock import SimClock
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.outcome import Outcome, play
from simulation.world.process import SimProcess
from simulation.world.rng import stream
from simulation.world.trace import Trace
from wire.position import Position
from wire.run import batch_of

NAME = "public/default/persistent/log"
CURSORS = ("a", "b")
COMMIT = "commit"
"""First word of the trace lines of metadata changes."""
WRITES = (COMMIT, "write", "sync", "name")
"""First words of the trace lines of writes."""
STEPS_MAX = 60
RUN_SECONDS_MAX = 120.0
READ_BYTES_MAX = 1 << 20


class TracedTree(Tree):
    """Outlives the processes that use it, as a disk does."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def apply(self, operations: Sequence[Operation], session: int, now_ms: int) -> Applied:
        applied = super().apply(operations, session, now_ms)
        paths = " ".join(f"{type(operation).__name__.lower()} {operation.path}" for operation in operations)
        self._trace.record("metadata", f"{COMMIT} {paths}")
        return applied


class LogScenario:
    """The run of one seed. `crash_after`: the only crash comes after so many writes; None: lives and crashes are drawn."""

    def __init__(self, seed: int, sink: TextIO | None = None, crash_after: int | None = None) -> None:
        self.seed = seed
        self.loop = SimLoop(stream(seed, "loop"), Trace(sink))
        self.disk = SimDisk(self.loop, stream(seed, "disk"))
        self.model = LogModel(CURSORS)
        self.tree = TracedTree(self.loop.trace)
        self.events = {"confirmed": 0, "acknowledged": 0, "flushed": 0, "consumed": 0, "opened": 0, "crashed": 0}
        self._crash_after = crash_after
        self._rng = stream(seed, "log")
        self._settings = _draw_settings(self._rng)
        self._network = SimNetwork(self.loop, stream(seed, "network"))
        self._clock = SimClock(self.loop)
        self._next_number = 0
        self._lives = 0
        self._is_last = False

    def run(self) -> Outcome:
        return play(self.seed, self.loop, self._play(), self.events)

    async def _play(self) -> None:
        machine = SimProcess(self.loop, self._network, SERVER, self.disk, self._live)
        crashes = [self._crash_after] if self._crash_after else self._draw_crashes()
        for after in crashes:
            end = stream(self.seed, f"end {self._lives} {after}").choice((machine.kill, machine.cut_power))
            self.loop.trace.wake_at(WRITES, after, functools.partial(self._crash_with, end))
            await self._life_of(machine)
            self.loop.trace.wake_no_more()
        self._is_last = True
        for _ in range(2):  # what the one trims, and the other finds
            await self._life_of(machine)
        check_leftovers(self.tree, NAME, self.events["crashed"])

    def _draw_crashes(self) -> list[int]:
        return [self._rng.randint(1, self._rng.choice((30, 130))) for _ in range(self._rng.choice((1, 2, 3)))]

    def _crash_with(self, end: Any) -> None:
        self.events["crashed"] += 1
        self.loop.hardware_later(0.0, end)

    async def _life_of(self, machine: SimProcess) -> None:
        machine.start()
        async with asyncio.timeout(RUN_SECONDS_MAX):
            await machine.ended.wait()

    # One life

    async def _live(self) -> None:
        self._lives += 1
        rng = stream(self.seed, f"life {self._lives}")
        bookie = Bookie(self.disk, _BOOKIE, self._clock, rng)
        await bookie.start()
        shared = SharedTree()
        shared.tree = self.tree
        store = MemoryStore(self._clock, shared, answer_delay=lambda: rng.expovariate(1 / 0.001))
        ledgers = BookKeeper({SERVER: bookie}, store, BookKeeperSettings(1, 1, 1), rng)
        await ledgers.initialise()
        factory = ManagedLedgerFactory(ledgers, store, self._settings, self._clock)
        await self._work(await factory.open(NAME), rng)
        asked = {name: dict(promise.asked) for name, promise in self.model.cursors.items()}
        await factory.close()
        for name, parts in asked.items():
            self.model.cursors[name].stored = parts
        await ledgers.close()
        await bookie.stop()
        await store.close()

    async def _work(self, log: ManagedLedger, rng: random.Random) -> None:
        for name in CURSORS:
            await log.open_cursor(name, EARLIEST)
        self.events["consumed"] += self.model.check_log(await read_all(log))
        for name in CURSORS:
            cursor = log.cursors[name]
            for ledger in log.ledgers():
                await cursor.load_acknowledged(ledger.ledger_id, 0, ledger.entries)
            self.model.check_cursor(name, cursor)
        self.events["opened"] += 1
        for _ in range(0 if self._is_last else rng.randint(1, STEPS_MAX)):
            await self._step(log, rng)
            await asyncio.sleep(rng.choice((0.0, 0.0, rng.expovariate(1 / 0.002), 0.02)))
        if self._is_last:
            await log.trim()

    async def _step(self, log: ManagedLedger, rng: random.Random) -> None:
        chance = rng.random()
        name = rng.choice(CURSORS)
        if chance < 0.4 or not self.model.confirmed:
            self._append(log, rng)
        elif chance < 0.75:
            self._acknowledge(log, name, rng)
        elif chance < 0.9:
            parts = dict(self.model.cursors[name].asked)
            await log.cursors[name].flush()
            self.model.cursors[name].stored = parts
            self.events["flushed"] += 1
        elif chance < 0.95:
            await log.trim()
        else:
            await log.set_properties({"step": str(self._next_number)})

    def _append(self, log: ManagedLedger, rng: random.Random) -> None:
        number = self._next_number
        self._next_number += 1
        future = log.append(batch_of((b"%d" % number + bytes(rng.choice((0, 100, 3000))),)))
        future.add_done_callback(functools.partial(self._on_append, number))

    def _on_append(self, number: int, future: "asyncio.Future[Any]") -> None:
        run = future.result()
        self.model.on_confirmed(number, Position(run.ledger_id, run.first_entry_id))
        self.events["confirmed"] += 1

    def _acknowledge(self, log: ManagedLedger, name: str, rng: random.Random) -> None:
        there = sorted(self.model.confirmed.values())
        recent = there[-8:] if rng.random() < 0.7 else there
        position, promise, cursor = rng.choice(recent), self.model.cursors[name], log.cursors[name]
        self.events["acknowledged"] += 1
        kind = rng.random()
        if kind < 0.2:
            left = rng.randrange(1 << BATCH)
            cursor.acknowledge_batch_indexes(position, (left,), BATCH)
            promise.ask(position, ~left & ((1 << BATCH) - 1))
        elif kind < 0.5:
            cursor.acknowledge_cumulative(position)
            self.model.acknowledged_through(name, position, there)
            promise.ask(position)
        else:
            chosen = rng.sample(recent, rng.randint(1, min(4, len(recent))))
            for each in chosen:
                if not cursor.acknowledge_entry(each.ledger_id, each.entry_id):
                    cursor.acknowledge_entries(each.ledger_id, BitMap([each.entry_id]))
                promise.ask(each)


_BOOKIE = BookieSettings(("/j",), ("/l",), journal_max_size_mb=16, journal_pre_alloc_size_mb=1)


def _draw_settings(rng: random.Random) -> ManagedLedgerSettings:
    return ManagedLedgerSettings(
        managed_ledger_max_entries_per_ledger=rng.choice((2, 5, 20)),
        managed_ledger_min_ledger_rollover_time_minutes=0,
        managed_ledger_cursor_max_entries_per_ledger=rng.choice((1, 3, 1000)),
        managed_ledger_default_mark_delete_rate_limit=rng.choice((1.0, 100.0, 1000.0)),
        managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=rng.choice((0, 2, 1000)),
        managed_ledger_max_unacked_ranges_to_persist=rng.choice((0, 1, 10_000)),
        managed_ledger_cache_size_mb=rng.choice((0, 1)),
    )


async def read_all(log: ManagedLedger) -> dict[int, Position]:
    """Everything there is, by the number that `LogScenario` puts at the beginning of an entry."""
    found: dict[int, Position] = {}
    position = EARLIEST
    while (run := await log.read(position, 7, READ_BYTES_MAX)) is not None:
        for entry_id in range(run.first_entry_id, run.last_entry_id + 1):
            found[int(bytes(run.payload(entry_id)).rstrip(b"\0"))] = Position(run.ledger_id, entry_id)
        position = Position(run.ledger_id, run.last_entry_id + 1)
    return found


@bounded
def run_log_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a managed ledger that this seed stands for."""
    return LogScenario(seed, sink).run()


def failures_of_every_crash(seed: int) -> list[str]:
    """This seed's first life again and again, each time with a crash after another one of its writes: what failed."""
    failures = []
    for after in itertools.count(1):
        outcome = LogScenario(seed, crash_after=after).run()
        if outcome.failure is not None:
            failures.append(f"seed {seed}, a crash after write {after}: {outcome.failure}")
        if not outcome.events["crashed"]:
            break
    return failures
