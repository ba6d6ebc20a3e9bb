"""Published messages reach consumers, and acknowledged ones do not come back."""

from broker.dispatchers.settings import DispatcherSettings
from broker.topic.contract import SubscriptionType
from broker.topic.dispatch.dispatch_driver import READS_AT_ONCE_MAX
from tests.broker.topic.topic_world import TopicWorld, ack_run, payload, run, send_run, settle
from wire.position import Position


def test_published_runs_get_receipts_in_order_and_reach_an_exclusive_consumer() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        _, consumer = await world.consumer()
        producer, sink = await world.producer()
        producer.publish(send_run([0, 1]))
        producer.publish(send_run([2]))
        await settle()
        assert sink.heard == [("receipts", [0, 1], Position(3, 0)), ("receipts", [2], Position(3, 2))]
        assert consumer.entries == [0, 1, 2]
        await world.topic.close()

    run(scenario)


def test_acknowledged_messages_are_not_delivered_to_the_next_consumer() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        first, got = await world.consumer()
        await world.publish_many(4)
        assert got.entries == [0, 1, 2, 3]
        first.acknowledge_run(ack_run((3, 0), (3, 2)))
        first.close()
        _, again = await world.consumer()
        assert again.entries == [1, 3]
        await world.topic.close()

    run(scenario)


def test_shared_consumers_get_every_message_once_between_them() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        ends = [(await world.consumer(permits=100, type=SubscriptionType.SHARED, consumer_name=n))[1] for n in "abc"]
        await world.publish_many(90)
        assert sorted(entry for end in ends for entry in end.entries) == list(range(90))
        assert all(end.got for end in ends)
        await world.topic.close()

    run(scenario)


def test_entries_in_memory_are_delivered_at_once_up_to_a_bound_per_turn() -> None:
    async def scenario() -> None:
        world = TopicWorld(dispatching=DispatcherSettings(dispatcher_max_read_batch_size=1))
        world.ledger.is_in_memory = True
        await world.publish_many(5 * READS_AT_ONCE_MAX)
        consumer, end = await world.consumer(permits=0, from_earliest=True)
        assert end.entries == []
        consumer.flow(4 * READS_AT_ONCE_MAX)
        assert end.entries == list(range(READS_AT_ONCE_MAX)), "others have their turn in between"
        await settle()
        await settle()
        assert end.entries == list(range(4 * READS_AT_ONCE_MAX))
        await world.topic.close()

    run(scenario)


def test_entries_in_memory_that_waited_for_their_consumer_are_delivered_within_its_flow() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.is_in_memory = True
        first, end = await world.consumer(permits=0, type=SubscriptionType.KEY_SHARED, consumer_name="a")
        _, other = await world.consumer(permits=1000, type=SubscriptionType.KEY_SHARED, consumer_name="b")
        await world.publish(*[payload(key=f"key {number}") for number in range(59)])
        await world.publish(payload(key="key 59"))
        waiting = sorted(set(range(60)) - set(other.entries))
        assert waiting, "the keys of some of the messages are the first consumer's"
        assert [place.entry_id for place in world.ledger.kept_from.values() if place] == [waiting[0]]
        first.flow(1000)
        assert sorted(end.entries) == waiting, "before any other task runs"
        await world.topic.close()
        assert set(world.ledger.kept_from.values()) == {None}

    run(scenario)
