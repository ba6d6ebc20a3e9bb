"""LedgerClient: the ledger client as a program on a host of its own, across the simulated network; and its way to the metadata.

Two programs are made of it: `write` appends and notes what was acknowledged; `recover` opens, as often as it takes, and reads.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import EntryLost, LedgerError, LedgerReader, LedgerUnreadable, LedgerWriter
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.placement.rack_placement import AnyPlace
from bookkeeper.ports import BookieClient, MixingBookie
from bookkeeper.settings import BookKeeperSettings
from bookkeeper.write import together
from bookkeeper.write.parts import Part
from metadata.memory import MemoryStore, SharedTree
from metadata.store import Operation, OutcomeUnknown, Stat, StoreUnavailable
from ports.loop.promise import listen
from simulation.checks.history import Violation
from simulation.quorum.checker import QuorumChecker
from simulation.quorum.plan import Moment
from simulation.world.clock import SimClock
from simulation.world.loop import SimLoop
from wire.run import EntryRun, batch_of

TIMEOUT_SECONDS = 2.0
"""Time after which a bookie that does not answer is given up."""
RETRY_SECONDS = 0.3
SLEEP_SECONDS_MAX = 0.6
READ_BYTES_MAX = 1 << 20
READ_ENTRIES = (1, 3, 3, 20)
"""Entries that a client asks of a bookie at once; one of these numbers is drawn."""


@dataclass(slots=True)
class MetadataWay:
    """Way between one client and the metadata store. A write may be refused, or done without an answer."""

    rng: random.Random
    answer_seconds: float = 0.001
    lost_answers: float = 0.0
    """Probability that an answer is lost."""
    is_cut: bool = False

    def delay(self) -> float:
        return self.rng.expovariate(1 / self.answer_seconds)


class DistantStore(MemoryStore):
    """A session with a metadata store, over such a way."""

    way: MetadataWay
    committed: Callable[[], None] | None = None
    """Called after each write that took effect."""

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        await asyncio.sleep(self.way.delay())
        if self.way.is_cut:
            await asyncio.sleep(TIMEOUT_SECONDS)
            raise StoreUnavailable("cut off")
        stats = await super().commit(operations)
        if self.committed is not None:
            self.committed()
        if self.way.is_cut or self.way.rng.random() < self.way.lost_answers:
            raise OutcomeUnknown("the answer was lost")
        return stats


class FirstOnes(AnyPlace):
    """A new ledger is on the first bookies, so that a plan can say who is what; a replacement is any other."""

    def ensemble(self, bookies: Iterable[str], size: int, write_quorum: int) -> tuple[str, ...]:
        """See `Placement`."""
        return tuple(sorted(bookies)[:size])


class ShortReads:
    """A bookie of which few entries are asked at once: a recovery goes in small steps, asks for little that is not there."""

    def __init__(self, bookie: BookieClient, count_max: int) -> None:
        self._bookie, self._count_max = bookie, count_max
        self.add, self.fence, self.last_entry_id = bookie.add, bookie.fence, bookie.last_entry_id
        if isinstance(bookie, MixingBookie):
            self.mixing_for = bookie.mixing_for

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        return await self._bookie.read(ledger_id, first_entry_id, min(count_max, self._count_max), bytes_max)


class SimBookies(NetworkBookies):
    """`NetworkBookies` as one client has them."""

    read_entries_max = 1

    def __getitem__(self, name: str) -> BookieClient:
        return ShortReads(super().__getitem__(name), self.read_entries_max)


@dataclass(slots=True)
class World:
    """State that the programs of a run share. `ledger_id` is -1 until there is one."""

    loop: SimLoop
    checker: QuorumChecker
    shared: SharedTree
    settings: BookKeeperSettings
    events: dict[str, int]
    takes_parts: bool = False
    """The writer appends parts among its runs."""
    run_at: int = 0
    """Number of the append that is a run in any case, and all after it are parts; 0: none."""
    ledger_id: int = -1
    has_ledger: asyncio.Event = field(default_factory=asyncio.Event)
    appending: int = 0
    """Appends that are not answered."""
    has_written: bool = False
    """All that the writer had to append is appended."""
    writer_rests: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all that the writer had to append is answered."""
    moments: dict[int, list[tuple[float, Callable[[], object]]]] = field(default_factory=dict)
    """Callbacks by number of the append; each is called so many seconds after it."""

    def count(self, event: str) -> None:
        self.events[event] = self.events.get(event, 0) + 1

    def at(self, moment: Moment, callback: Callable[[], object]) -> None:
        """Call then; never, when there are not so many appends."""
        if moment.appends:
            self.moments.setdefault(moment.appends, []).append((moment.seconds, callback))
        else:
            self.loop.hardware_later(moment.seconds, callback)

    def on_written(self) -> None:
        self.has_written = True
        self._check_rest()

    def on_answered(self) -> None:
        self.appending -= 1
        self._check_rest()

    def _check_rest(self) -> None:
        if self.has_written and not self.appending:
            self.writer_rests.set()

    def on_append(self) -> None:
        self.count("appended")
        self.appending += 1
        for seconds, callback in self.moments.pop(self.events["appended"], ()):
            self.loop.hardware_later(max(0.0, seconds), callback)


class LedgerClient:
    """One program's."""

    def __init__(self, world: World, name: str, way: MetadataWay, rng: random.Random) -> None:
        self._world, self._name, self._way, self._rng = world, name, way, rng

    async def connect(self) -> BookKeeper:
        """Connects for as long as the program lives."""
        store = DistantStore(SimClock(self._world.loop), self._world.shared, alone=False, answer_delay=self._way.delay)
        store.way = self._way
        store.committed = partial(self._checked, self._check_segments)
        self._bookies = SimBookies(store, TIMEOUT_SECONDS)
        self._bookies.read_entries_max = self._rng.choice(READ_ENTRIES)
        await self._bookies.open()
        return BookKeeper(self._bookies, store, self._world.settings, self._rng, FirstOnes(self._rng))

    # The writer

    async def write(self, entries: int, pause_seconds: float, ending: str) -> None:
        """Append runs until so many entries are; then "close", or wait for ever ("hang"), or "sleep" and append again."""
        writer = await self._create(await self.connect())
        self._world.ledger_id = writer.ledger_id
        self._world.has_ledger.set()
        while writer.next_entry_id < entries and not self._is_over:
            self._append_some(writer)
            await asyncio.sleep(self._rng.choice((0.0, self._rng.expovariate(1 / pause_seconds))))
            if self._rng.random() < 0.1:
                await self._read_back(writer)
        if ending == "sleep":
            await asyncio.sleep(self._rng.uniform(0.0, SLEEP_SECONDS_MAX))
            for _ in range(3):
                self._append(writer)
                await asyncio.sleep(pause_seconds)
        self._world.on_written()
        if ending != "close":
            await self._world.loop.create_future()
        await self._close(writer)
        await self._bookies.close()

    _is_over = False
    """An append has failed: none will succeed any more."""
    _confirmed = -1
    """The writer's last add confirmed, as seen last."""
    _acknowledged = -1
    """The newest entry that was acknowledged: they are in their order, without gaps."""

    async def _create(self, client: BookKeeper) -> LedgerWriter:
        while True:
            try:
                return await client.create({})
            except LedgerError:
                await asyncio.sleep(RETRY_SECONDS)

    def _append_some(self, writer: LedgerWriter) -> None:
        """A run, or up to three parts in one mix."""
        self._check_confirmed(writer)
        left = self._world.run_at - 1 - self._world.events["appended"]
        is_run = self._rng.random() < 0.3 if not self._world.run_at or left > 0 else left == 0
        if is_run or not self._world.takes_parts:
            self._append(writer)
            return
        count = self._rng.choice((1, 2, 2, 3))
        payloads = [self._rng.randbytes(100) for _ in range(min(count, left) if left > 0 else count)]
        mix, now = batch_of(payloads), self._world.loop.time()
        parts = [Part(mix, index, 1, self, payload, now) for index, payload in enumerate(payloads)]
        taken = [part for part in parts if writer.take_part(part)]
        for _ in taken:
            self._world.count("taken as a part")
            self._world.on_append()
        together.send(taken)
        if not taken:
            self._append(writer)

    def part_answered(self, part: Part, error: BaseException | None) -> None:
        """See `PartOwner`."""
        payload = part.source
        assert isinstance(payload, bytes)
        self._on_answer(part.first_entry_id, payload, error)

    def _append(self, writer: LedgerWriter) -> None:
        payload = self._rng.randbytes(self._rng.choice((1, 100, 100, 3000)))
        entry_id = writer.next_entry_id
        future = writer.append(batch_of((payload,)))
        self._world.on_append()
        self._check_confirmed(writer)
        if self._world.takes_parts:
            listen(future, partial(self._on_append, entry_id, payload))
        else:
            future.add_done_callback(partial(self._on_append, entry_id, payload))

    def _check_confirmed(self, writer: LedgerWriter) -> None:
        last = writer.last_add_confirmed
        if last < self._confirmed:
            raise Violation(f"the writer's last add confirmed went back from {self._confirmed} to {last}")
        self._confirmed = last

    def _on_append(self, entry_id: int, payload: bytes, future: "asyncio.Future[Any]") -> None:
        self._on_answer(entry_id, payload, future.exception())

    def _on_answer(self, entry_id: int, payload: bytes, error: BaseException | None) -> None:
        self._world.on_answered()
        if error is None:
            self._world.count("acknowledged")
            self._checked(lambda: self._world.checker.on_acknowledged(entry_id, payload))
            self._checked(partial(self._check_order, entry_id))
        elif isinstance(error, LedgerError):
            self._is_over = True
        else:
            self._world.loop.fail(error)

    def _check_segments(self) -> None:
        """Checks that the writer gives only unconfirmed entries to a new segment."""
        if self._world.ledger_id >= 0:
            self._world.checker.on_segment(self._acknowledged)

    def _check_order(self, entry_id: int) -> None:
        self._acknowledged += 1
        if entry_id != self._acknowledged:
            raise Violation(f"entry {entry_id} was acknowledged when {self._acknowledged} was due")

    def _checked(self, check: Callable[[], None]) -> None:
        try:
            check()
        except Violation as violation:
            self._world.loop.fail(violation)

    async def _read_back(self, writer: LedgerWriter) -> None:
        if writer.last_add_confirmed >= 0:
            first = self._rng.randint(0, writer.last_add_confirmed)
            try:
                self._world.checker.on_read(self._name, await writer.read(first, 5, READ_BYTES_MAX))
            except EntryLost as lost:
                raise Violation(f"{self._name}: {lost}, although one copy is good") from lost
            except LedgerUnreadable:
                self._world.count("unreadable for now")

    async def _close(self, writer: LedgerWriter) -> None:
        try:
            await writer.close()
        except LedgerError:
            self._world.count("close failed")
            return
        self._world.count("closed by its writer")
        self._world.checker.on_ended(self._name, writer.last_add_confirmed, writer.length_bytes)

    # Recovery

    async def recover(self, attempts: int) -> None:
        """Open the ledger, with recovery, and read all of it. LedgerError when the attempts are used up."""
        client = await self.connect()
        await self._world.has_ledger.wait()
        reader = await self._open(client, attempts)
        self._world.count("opened")
        self._world.checker.on_ended(self._name, reader.last_entry_id, reader.length_bytes)
        await self._read_all(reader, attempts)
        await self._bookies.close()

    async def _open(self, client: BookKeeper, attempts: int) -> LedgerReader:
        for _ in range(attempts - 1):
            try:
                return await client.open(self._world.ledger_id)
            except LedgerError as error:
                self._world.count("open failed")
                self._world.loop.trace.record(self._name, f"open failed: {error}")
                await asyncio.sleep(self._rng.uniform(0.0, RETRY_SECONDS))
        return await client.open(self._world.ledger_id)

    async def _read_all(self, reader: LedgerReader, attempts: int) -> None:
        entry_id = 0
        while entry_id <= reader.last_entry_id:
            try:
                run = await reader.read(entry_id, 1 + self._rng.randrange(20), READ_BYTES_MAX)
            except EntryLost as lost:
                raise Violation(f"{self._name}: {lost}, although one copy is good") from lost
            except LedgerUnreadable:
                attempts -= 1
                if not attempts:
                    raise
                self._world.count("unreadable for now")
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._world.checker.on_read(self._name, run)
            entry_id = run.last_entry_id + 1
