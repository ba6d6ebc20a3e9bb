"""Any schedule of messages, syncs, cuts and crashes, with a writer and up to three recoverers: what must hold in all of them.

An entry that was acknowledged is in the closed ledger with its bytes; nothing is acknowledged beyond the end; every client sees
the same end; receipts come in order; a header never claims more than was confirmed.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import decode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerError, LedgerReader, LedgerWriter
from bookkeeper.settings import BookKeeperSettings
from bookkeeper.write.quorum_tracker import Quorum
from metadata.memory import MemoryStore, SharedTree
from tests.bookkeeper.fake_bookies import FixedClock, batch, payloads_of, run
from tests.bookkeeper.scheduled_bookies import Link, ScheduledBookie, Stored
from wire.run import EntryRun

STEPS = [
    *("append", "append", "request", "request", "push", "push", "sync", "sync", "answer", "answer", "pull", "pull"),
    *("recover", "recover", "cut", "crash", "sick", "close"),
]
RECOVERERS_MAX = 3
Step = tuple[str, int]


class World:
    """One writer, its bookies, and recoverers that come when the schedule says. Spare bookies replace those that fail."""

    def __init__(self, sizes: tuple[int, int, int], spares: int = 0, *, delays_change: bool = False) -> None:
        self.settings = BookKeeperSettings(*sizes, bookkeeper_delay_ensemble_change=delays_change)
        self.shared = SharedTree()
        self.bookies = {f"b{number}": ScheduledBookie() for number in range(sizes[0] + spares)}
        self.links: list[Link] = []
        self.clients = 0
        self.payloads: list[bytes] = []
        self.acknowledged: list[int] = []
        self.appends: list[asyncio.Future[EntryRun]] = []
        self.recoveries: list[asyncio.Task[LedgerReader]] = []
        self.closing: asyncio.Task[None] | None = None
        self.claimed: list[tuple[int, int]] = []
        self.writer: LedgerWriter

    def client(self) -> BookKeeper:
        links = {name: Link(bookie) for name, bookie in self.bookies.items()}
        self.links += links.values()
        self.clients += 1
        store = MemoryStore(FixedClock(), self.shared, alone=False)
        return BookKeeper(links, store, self.settings, Random(self.clients))

    async def begin(self) -> None:
        client = self.client()
        await client.initialise()
        self.writer = await client.create({})

    def take(self, step: Step) -> None:
        name, number = step
        match name:
            case "append":
                self.append(number % 3 + 1)
            case "recover":
                self.recover()
            case "close":
                self.closing = self.closing or asyncio.ensure_future(self.writer.close())
            case "request" | "answer" | "push" | "pull":
                self.move(name, number)
            case _:
                self.disturb(name, number)

    def disturb(self, name: str, number: int) -> None:
        bookie = list(self.bookies.values())[number % len(self.bookies)]
        match name:
            case "sync":
                bookie.sync()
            case "sick":
                bookie.sick = not bookie.sick
            case "crash":
                self.crash(bookie)
            case "cut":
                self.links[number % len(self.links)].cut()

    def recover(self) -> None:
        if len(self.recoveries) < RECOVERERS_MAX:
            self.recoveries.append(asyncio.ensure_future(self.client().open(self.writer.ledger_id)))

    def append(self, count: int) -> None:
        first = self.writer.next_entry_id
        payloads = [b"%d" % entry_id * (entry_id % 3 + 1) for entry_id in range(first, first + count)]
        confirmed = self.writer.last_add_confirmed
        entries = batch(*payloads)
        future = self.writer.append(entries)
        if self.writer.next_entry_id == first:
            assert future.exception() is not None
            return
        self.payloads += payloads
        self.claimed.append((struct.unpack_from(">q", entries.buffer, 16)[0], confirmed))
        future.add_done_callback(lambda done: self.acknowledge(range(first, first + count), done))
        self.appends.append(future)

    def acknowledge(self, entries: range, done: "asyncio.Future[EntryRun]") -> None:
        if done.exception() is None:
            self.acknowledged += entries

    def move(self, name: str, number: int) -> None:
        """One message, or all messages, of a link's requests or answers."""
        queues = [link.requests if name in ("request", "push") else link.answers for link in self.links]
        waiting = [queue for queue in queues if queue]
        if waiting:
            queue = waiting[number % len(waiting)]
            queue.popleft()()
            if name in ("push", "pull"):
                drain(queue)

    def push(self, link: Link) -> None:
        """Delivers all requests that wait to go to the bookie, and syncs it."""
        drain(link.requests)
        link.bookie.sync()

    def pull(self, link: Link) -> None:
        drain(link.answers)

    def crash(self, bookie: ScheduledBookie) -> None:
        bookie.crash()
        for link in self.links:
            if link.bookie is bookie:
                link.cut()

    async def heal(self) -> None:
        """Everything that is under way comes to its end."""
        for bookie in self.bookies.values():
            bookie.sick = False
        while any(link.requests or link.answers for link in self.links) or any(
            bookie.journal for bookie in self.bookies.values()
        ):
            for link in self.links:
                drain(link.requests)
            for bookie in self.bookies.values():
                bookie.sync()
            for link in self.links:
                drain(link.answers)
            await ticks()

    async def finish(self, work: "asyncio.Task[LedgerReader]") -> LedgerReader:
        while not work.done():
            await ticks()
            await self.heal()
        return work.result()

    async def check(self) -> None:
        assert self.acknowledged == list(range(len(self.acknowledged))), "receipts in order, without a gap"
        for claimed, confirmed in self.claimed:
            assert claimed <= confirmed
        await self.heal()
        reader = await self.finish(asyncio.ensure_future(self.client().open(self.writer.ledger_id)))
        last = reader.last_entry_id
        assert last >= max(self.acknowledged, default=-1), "no acknowledged entry is lost"
        for recovery in self.recoveries:
            assert recovery.done()
            if recovery.exception() is None:
                assert (recovery.result().last_entry_id, recovery.result().length_bytes) == (last, reader.length_bytes)
        assert reader.length_bytes == sum(map(len, self.payloads[: last + 1]))
        if self.closing is not None and self.closing.done() and self.closing.exception() is None:
            assert (self.writer.last_add_confirmed, self.writer.length_bytes) == (last, reader.length_bytes)
        self.check_copies(last)
        self.append(1)
        await self.heal()
        assert max(self.acknowledged, default=-1) <= last, "nothing is acknowledged after the end"
        for bookie in self.bookies.values():
            self.crash(bookie)
        read: list[bytes] = []
        while len(read) <= last:
            work = asyncio.ensure_future(self.client().open(self.writer.ledger_id))
            again = await self.finish(work)
            assert again.last_entry_id == last
            read += await self.read(again, len(read))
        assert read == self.payloads[: last + 1]

    def check_copies(self, last: int) -> None:
        """An ack quorum of those that the metadata names has each entry durably: one bookie less than that may be lost for
        good."""
        ledger_id, tree = self.writer.ledger_id, self.shared.tree
        found = tree.get(ledger_path(ledger_id))
        assert found is not None
        metadata = decode_ledger_metadata(found.value)
        quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        firsts = [segment.first_entry_id for segment in metadata.segments]
        assert firsts == sorted(set(firsts))
        for entry_id in range(last + 1):
            ensemble = [segment for segment in metadata.segments if segment.first_entry_id <= entry_id][-1].bookies
            assert len(set(ensemble)) == len(ensemble)
            holders = [self.bookies[ensemble[index]] for index in quorum.write_set(entry_id)]
            copies = sum(entry_id in bookie.durable.get(ledger_id, Stored()).entries for bookie in holders)
            assert copies >= quorum.ack_quorum, entry_id

    async def read(self, reader: LedgerReader, first: int) -> list[bytes]:
        work = asyncio.ensure_future(reader.read(first, 100, 1 << 20))
        while not work.done():
            await ticks()
            await self.heal()
        return payloads_of(work.result())

    async def end(self) -> None:
        """Everything has an answer, and every failure is one of the contract's."""
        work: list[asyncio.Future[Any]] = [*self.recoveries, *self.appends, *([self.closing] if self.closing else [])]
        for each in work:
            assert each.done()
            error = each.exception()
            assert error is None or isinstance(error, LedgerError), error


def drain(queue: deque[Callable[[], None]]) -> None:
    while queue:
        queue.popleft()()


async def ticks() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def scenario(world: World, steps: list[Step]) -> None:
    await world.begin()
    for step in steps:
        world.take(step)
        await ticks()
    await world.check()
    await world.end()


SIZES = st.sampled_from([(1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 3, 2), (3, 3, 2), (3, 2, 2), (3, 3, 3), (4, 3, 2)])
SCHEDULES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 40)), max_size=80)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SIZES, SCHEDULES)
def test_acknowledged_entries_survive_any_schedule(sizes: tuple[int, int, int], steps: list[Step]) -> None:
    async def any_schedule() -> None:
        await scenario(World(sizes), steps)

    run(any_schedule())


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SIZES, st.integers(1, 2), st.booleans(), SCHEDULES)
def test_acknowledged_entries_survive_any_schedule_in_which_bookies_are_replaced(
    sizes: tuple[int, int, int], spares: int, delays_change: bool, steps: list[Step]
) -> None:
    async def any_schedule() -> None:
        await scenario(World(sizes, spares, delays_change=delays_change), steps)

    run(any_schedule())
