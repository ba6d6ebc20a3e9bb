"""Failures of delivery that others have had, by their number in the catalogue of scenarios, on a topic in virtual time.

F11, F12 and F16 are also what ten thousand schedules of each dispatcher hold (`tests/broker/dispatchers`).
"""

import asyncio
import random

import pytest

from broker.topic.contract import SubscriptionType
from broker.topic.subscription.consumer import TopicConsumer
from tests.broker.topic.memory_ledger import MemoryLedger
from tests.broker.topic.topic_world import ConsumerEnd, TopicWorld, ack_run, payload, run, settle
from wire.position import Position
from wire.run import EntryRun

SHARED, FAILOVER, KEY_SHARED = SubscriptionType.SHARED, SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED
MESSAGES = 120
STUCK_SECONDS = 5.0


class SlowLedger(MemoryLedger):
    """Ledger whose reads take up to two seconds, and which counts the entries that it returned."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.entries_read = 0

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        await asyncio.sleep(self._chance.random() * self._chance.choice((0, 2)))
        found = await super().read(position, entries_max, bytes_max)
        self.entries_read += 0 if found is None else found.count
        return found

    def read_cached(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        return None


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED, FAILOVER])
@pytest.mark.parametrize("seed", range(12))
def test_f11_f12_who_joins_leaves_and_asks_again_while_reads_are_slow_never_stops_the_subscription(
    seed: int, kind: SubscriptionType
) -> None:
    """P#380, P#100, P#10813, P#9789: with permits and a backlog something comes within seconds, to the last message."""

    async def scenario() -> None:
        chance = random.Random(seed)
        world = TopicWorld(SlowLedger(chance))
        await world.publish(*[payload(key=f"k{index % 9}") for index in range(MESSAGES)])
        group: dict[TopicConsumer, tuple[ConsumerEnd, int]] = {}
        acknowledged: set[Position] = set()
        names = iter(range(1000))
        quiet = 0.0
        while len(acknowledged) < MESSAGES:
            if not group or (len(group) < 4 and chance.random() < 0.1):
                consumer, sink = await world.consumer(
                    permits=chance.choice((1, 5, 40)), type=kind, consumer_name=f"c{next(names)}"
                )
                group[consumer] = sink, 0
            await asyncio.sleep(0.5)
            quiet += 0.5
            for consumer, (sink, seen) in list(group.items()):
                new = sink.positions[seen:]
                group[consumer] = sink, len(sink.got)
                quiet = 0.0 if new else quiet
                doing = chance.random()
                if doing < 0.05 and len(group) > 1:
                    consumer.close()
                    del group[consumer]
                    quiet = 0.0
                elif doing < 0.15:
                    consumer.redeliver([], None)
                    consumer.flow(len(new))
                    quiet = 0.0
                elif new:
                    consumer.acknowledge_run(ack_run(*new))
                    acknowledged.update(new)
                    consumer.flow(len(new))
                assert world.topic.stats().subscriptions["s"].consumers is not None
            if kind is not FAILOVER and all(sink.got for sink, _ in group.values()) and len(acknowledged) < MESSAGES:
                assert quiet <= STUCK_SECONDS + 2, "it stands still"
        assert world.topic.stats().subscriptions["s"].msg_backlog == 0
        await world.topic.close()

    run(scenario, seed)


def test_f13_a_consumer_of_higher_priority_that_joins_during_dispatch_gets_what_is_not_acknowledged_and_no_more() -> None:
    """P#15189, P#3504: processed by both is only what was not acknowledged at the switch; the order is kept."""

    async def scenario() -> None:
        world = TopicWorld()
        first, one = await world.consumer(permits=10, type=FAILOVER, consumer_name="a", priority_level=1)
        positions = await world.publish_many(30)
        assert one.positions == positions[:10]
        _, two = await world.consumer(type=FAILOVER, consumer_name="b", priority_level=0)
        first.acknowledge_run(ack_run(*positions[:6]))
        first.flow(20)
        await asyncio.sleep(2)
        assert one.positions == positions[:10], "nothing new to who is to be relieved"
        assert two.positions == positions[6:]
        assert (("active", False) in one.heard, ("active", True) in two.heard) == (True, True)
        await world.topic.close()

    run(scenario)


def test_f14_a_seek_with_several_failover_consumers_begins_again_for_one_of_them() -> None:
    """P#749."""

    async def scenario() -> None:
        world = TopicWorld()
        first, one = await world.consumer(type=FAILOVER, consumer_name="a")
        _, two = await world.consumer(type=FAILOVER, consumer_name="b")
        positions = await world.publish_many(10)
        first.acknowledge_run(ack_run(*positions[:5]))
        assert (one.positions, two.positions) == (positions, [])
        await first.seek(positions[2], ())
        assert (one.heard[-1], two.heard[-1]) == (("closed",), ("closed",))
        _, again = await world.consumer(type=FAILOVER, consumer_name="a")
        _, other = await world.consumer(type=FAILOVER, consumer_name="b")
        assert (again.positions, other.positions) == (positions[2:], [])
        assert [each.redelivery_count for each in again.got] == [0] * 8
        await world.topic.close()

    run(scenario)


def test_f15_of_failover_consumers_that_were_all_killed_and_come_back_one_is_active_within_a_second() -> None:
    """P#1061."""

    async def scenario() -> None:
        world = TopicWorld()
        group = [await world.consumer(type=FAILOVER, consumer_name=f"c{number}") for number in range(3)]
        positions = await world.publish_many(4)
        for consumer, _ in group:
            consumer.close()
        back = [await world.consumer(type=FAILOVER, consumer_name=f"c{number}") for number in range(3)]
        await asyncio.sleep(1)
        active = [sink for _, sink in back if sink.heard and sink.heard[-1] == ("active", True)]
        assert len(active) == 1
        assert active[0].positions == positions
        await world.topic.close()

    run(scenario)


def test_f16_a_rewind_while_a_read_is_under_way_keeps_the_order_of_each_key() -> None:
    """P#7553, P#10762, P#23802, P#8292, with a slow consumer that joins and leaves."""

    async def scenario() -> None:
        world = TopicWorld(SlowLedger(random.Random(4)))
        keys = [f"k{index % 5}" for index in range(60)]
        slow, _ = await world.consumer(permits=3, type=KEY_SHARED, consumer_name="slow")
        positions = await world.publish(*[payload(key=key) for key in keys])
        quick, sink = await world.consumer(permits=20, type=KEY_SHARED, consumer_name="quick")
        await asyncio.sleep(3)
        quick.redeliver([], None)
        slow.close()
        quick.flow(200)
        last: dict[str, int] = {}
        done: set[Position] = set()
        for _ in range(60):
            await asyncio.sleep(1)
            fresh = [each for each in sink.positions if each not in done]
            sink.got.clear()
            for position in fresh:
                key = keys[positions.index(position)]
                assert position.entry_id >= last.get(key, -1), f"{key} goes back"
                last[key] = position.entry_id
            quick.acknowledge_run(ack_run(*fresh)) if fresh else None
            done.update(fresh)
        assert done == set(positions)
        await world.topic.close()

    run(scenario)


def test_f17_one_hot_key_that_is_asked_for_again_makes_no_loop_of_reads() -> None:
    """P#21656, P#23999: at most three reads for each delivery, and progress."""

    async def scenario() -> None:
        ledger = SlowLedger(random.Random(2))
        world = TopicWorld(ledger)
        consumer, sink = await world.consumer(permits=10, type=KEY_SHARED, consumer_name="a")
        _, other = await world.consumer(permits=10, type=KEY_SHARED, consumer_name="b")
        positions = await world.publish(*[payload(key="hot") for _ in range(50)])
        await asyncio.sleep(5)
        if other.got:  # whose the key is
            sink = other
            consumer = next(each for each in world.topic.subscriptions.all[0].consumers if each.name == "b")
        done: set[Position] = set()
        delivered = 0
        for number in range(200):
            await asyncio.sleep(1)
            got, sink.got[:] = sink.positions, []
            delivered += len(got)
            if number % 10 == 3:
                consumer.redeliver([], None)
            elif got:
                consumer.acknowledge_run(ack_run(*got))
                done.update(got)
            consumer.flow(len(got))
        assert done == set(positions)
        assert ledger.entries_read <= 3 * delivered + 100
        await settle()
        await world.topic.close()

    run(scenario)
