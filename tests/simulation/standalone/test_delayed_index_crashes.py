"""A broker that is killed between any two steps of storing delayed messages, in simulation.

The steps are those that outlive it: a bucket's ledger is made, written, closed and deleted, and the cursor's properties change.
The broker is killed right before each of them or right after it, once in each run. No message may be early, lost, or come after
its acknowledgement was answered; and when all is done no ledger is left behind, but for one that no property named yet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from random import Random
from typing import Any, TypeVar

import pytest

from bookkeeper.ledgers import DEFAULT_QUORUMS, LedgerReader, LedgerStore, LedgerWriter, Quorums
from broker.topic.contract import SubscriptionType
from broker.topic.delayed.delayed_index import DelayedIndex, index_of
from managed_ledger.contract import ManagedCursor
from simulation.clients.client import Client, Recorder
from simulation.standalone.scenario import TOPIC
from simulation.world.process import SimProcess
from wire.generated.pulsar_api_pb2 import BaseCommand

from ..served import Served, Session, Unjudged
from ..worlds import World, run
from .test_delayed_index import SMALL_BUCKETS, names, texts

T = TypeVar("T")
SETTINGS = {**SMALL_BUCKETS, "delayedDeliveryMinIndexCountPerBucket": "20", "delayedDeliveryMaxNumBuckets": "4"}
SMALL_LEDGERS = {"managedLedgerMaxEntriesPerLedger": "70", "managedLedgerMinLedgerRolloverTimeMinutes": "0"}
GROUPS, GROUP = 7, 30
ROUND_SECONDS = 60.0


class Steps:
    """Counts them over the lives of the broker, and kills it at one."""

    def __init__(self, served: Served, kill_at: int) -> None:
        self.count = 0
        self.made: list[int] = []
        self.named: set[int] = set()
        self.deleted: set[int] = set()
        self.killed = asyncio.Event()
        self._served = served
        self._kill_at = kill_at

    async def step(self, work: Awaitable[T]) -> T:
        await self._point()
        done = await work
        await self._point()
        return done

    async def _point(self) -> None:
        self.count += 1
        if self.count == self._kill_at:
            self._served.server.process.kill()
            self.killed.set()
            await asyncio.get_running_loop().create_future()


class SteppedWriter:
    """A LedgerWriter whose appends and end are steps."""

    def __init__(self, writer: LedgerWriter, steps: Steps) -> None:
        self._writer, self._steps = writer, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def append(self, batch: Any) -> Any:
        return await self._steps.step(self._writer.append(batch))

    async def close(self) -> None:
        await self._steps.step(self._writer.close())


class SteppedLedgers:
    """A LedgerStore for one index."""

    def __init__(self, ledgers: LedgerStore, steps: Steps) -> None:
        self._ledgers, self._steps = ledgers, steps

    async def create(self, custom_metadata: Mapping[str, bytes], quorums: Quorums = DEFAULT_QUORUMS) -> Any:
        async def made() -> LedgerWriter:
            writer = await self._ledgers.create(custom_metadata, quorums)
            self._steps.made.append(writer.ledger_id)
            return writer

        return SteppedWriter(await self._steps.step(made()), self._steps)

    async def open(self, ledger_id: int) -> LedgerReader:
        return await self._ledgers.open(ledger_id)

    async def delete(self, ledger_id: int) -> None:
        async def deleted() -> None:
            await self._ledgers.delete(ledger_id)
            self._steps.deleted.add(ledger_id)

        await self._steps.step(deleted())


class SteppedCursor:
    """A ManagedCursor whose changes of properties are steps."""

    def __init__(self, cursor: ManagedCursor, steps: Steps) -> None:
        self._cursor, self._steps = cursor, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    async def change_cursor_properties(self, put: Mapping[str, str], removed: Collection[str] = ()) -> None:
        async def changed() -> None:
            await self._cursor.change_cursor_properties(put, removed)
            self._steps.named.update(map(int, put.values()))

        await self._steps.step(changed())


class Ledger:
    """Published, delivered and acknowledged messages by number, over all lives of the broker."""

    def __init__(self) -> None:
        self.times: dict[int, int] = {}
        self.published: set[int] = set()
        """Messages whose publishing was answered."""
        self.came: set[int] = set()
        self.asked: set[int] = set()
        """Messages whose acknowledgement was asked for; for those in `done` it was answered."""
        self.done: set[int] = set()


class Judged(Session):
    """Judges each delivery as it comes, and acknowledges it when told to."""

    facts: Ledger

    def on_command(self, command: BaseCommand, payload: bytes) -> None:
        known = set(self.received)
        super().on_command(command, payload)
        for position in self.received.keys() - known:
            number = int(self.received[position][0])
            assert self.facts.times[number] <= self.served.now_ms(), f"{number} is early"
            assert number not in self.facts.done, f"{number} came after its acknowledgement was answered"
            self.facts.came.add(number)

    async def publish_group(self, numbers: range, rng: Random) -> None:
        for number in numbers:
            self.facts.times[number] = self.served.now_ms() + rng.choice((200, 2500, 9000, 25_000, 40_000)) + rng.randrange(900)
        self._positions, self._answered = [], asyncio.Event()
        try:
            await self.publish(*map(texts, numbers), deliver_at_ms=[self.facts.times[number] for number in numbers])
        finally:
            self.facts.published.update(numbers[: len(self._positions)])

    async def acknowledge_some(self, rng: Random, share: float) -> None:
        for position, (text, *_) in list(self.received.items()):
            number = int(text)
            if number not in self.facts.done and rng.random() < share:
                self.facts.asked.add(number)
                await self.acknowledge(position)
                self.facts.done.add(number)


async def until_killed(served: Served, steps: Steps, facts: Ledger, work: Callable[[Judged], Awaitable[None]]) -> None:
    """A client program that ends with the broker, or before."""

    async def main() -> None:
        recorder = Recorder(Unjudged(), served.world.loop.trace, served.world.loop.time)
        session = Judged(await Client(recorder, TOPIC).connection(), served)
        session.facts = facts
        await work(session)

    program = SimProcess(served.world.loop, served.world.network, f"judge-{steps.count}", None, main)
    program.start()
    ends = [asyncio.create_task(each.wait()) for each in (program.ended, steps.killed)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=4 * ROUND_SECONDS)
    assert any(end.done() for end in ends), "neither ended"
    for end in ends:
        end.cancel()
    program.kill()


def watch(monkeypatch: pytest.MonkeyPatch, steps: Steps) -> None:
    """Every index that is made from now on goes by these steps."""

    def stepped(host: Any, cursor: Any, place: Any, name: Any, driver: Any, settings: Any, wall_ms: Any) -> Any:
        index = index_of(host, SteppedCursor(cursor, steps), place, name, driver, settings, wall_ms)
        if isinstance(index, DelayedIndex):
            index._ledgers = SteppedLedgers(index._ledgers, steps)
        return index

    monkeypatch.setattr("broker.topic.subscription.subscription.index_of", stepped)


def play(monkeypatch: pytest.MonkeyPatch, kind: SubscriptionType, kill_at: int, settings: Mapping[str, str]) -> Steps:
    """Seven groups, some of each due soon; the broker is killed at one step and started again; then all comes to its end."""
    rng, facts, found = Random(kill_at), Ledger(), []

    async def groups(session: Judged) -> None:
        await session.subscribe(kind=kind)
        for group in range(GROUPS):
            await session.publish_group(range(group * GROUP, (group + 1) * GROUP), rng)
            await session.receive(1.5)
            await session.acknowledge_some(rng, 0.6)
        await session.receive(3)

    async def ending(session: Judged) -> None:
        await session.subscribe(kind=kind)
        for _ in range(12):
            await session.receive(5)
            await session.acknowledge_some(rng, 1)
        assert facts.published - facts.asked <= facts.came, "lost"
        assert facts.published <= facts.came | facts.asked
        await session.receive(8)
        assert names(session.served) == {}, "a bucket is left"

    async def scenario(world: World) -> None:
        served = Served(world, settings)
        steps = Steps(served, kill_at)
        found.append(steps)
        watch(monkeypatch, steps)
        await served.server.start()
        await until_killed(served, steps, facts, groups)
        if not steps.killed.is_set():
            served.server.process.kill()
        for _ in range(2):  # at the latest in the second life nobody is killed
            steps.killed.clear()
            if not served.server.process.alive:
                await served.server.start()
                await until_killed(served, steps, facts, ending)
        assert served.server.process.alive

    run(scenario, kill_at)
    return found[0]


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
@pytest.mark.parametrize("part", range(4))
def test_killed_at_any_step_nothing_is_early_lost_or_left_behind(
    monkeypatch: pytest.MonkeyPatch, kind: SubscriptionType, part: int
) -> None:
    """Shared on a log of one ledger, Key_Shared on one of many."""
    settings = SETTINGS if kind is SubscriptionType.SHARED else {**SETTINGS, **SMALL_LEDGERS}
    steps_max = play(monkeypatch, kind, 0, settings).count
    assert 60 < steps_max < 300, "all kinds of steps are among them"
    for kill_at in range(1 + part, steps_max, 4):
        monkeypatch.undo()
        steps = play(monkeypatch, kind, kill_at, settings)
        left = set(steps.made) - steps.deleted
        assert not left & steps.named, f"killed at {kill_at}: {left} are left behind"
        assert len(left) <= 1
