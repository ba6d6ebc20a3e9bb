"""Topics on the real managed ledger with small ledgers that roll over and are trimmed, over ledgers in memory."""

import asyncio
import random

import pytest

from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.topic.acknowledging import REPLICATED_SUBSCRIPTION_PROPERTY
from broker.topic.contract import AccessMode, Acknowledgement, SubscriptionType
from broker.topic.opening import PersistentTopics
from managed_ledger.contract import EARLIEST
from tests.broker.topic.subscription.subscription_model import Model
from tests.broker.topic.topic_world import TOPIC, World, ack_run, payload, run, send_run, settle
from tests.managed_ledger.ledger_world import NAME, trimming
from tests.managed_ledger.ledger_world import World as Storage
from wire.position import Position

STEPS = 50


class StoredWorld(World):
    """A topic of a broker that can be killed."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.storage = Storage(trimming(), step_s)

    async def open(self) -> None:
        topics = PersistentTopics(self.storage.ledgers, TopicSettings(), DispatcherSettings(), self.storage.clock)
        self.topic = await topics(TOPIC, NAME, -1, create=True)
        self.log = self.topic.ledger

    async def restart(self) -> None:
        await self.storage.restart()
        await self.open()


def test_messages_and_acknowledgements_survive_unloading() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        producer, heard = await world.producer(access_mode=AccessMode.EXCLUSIVE)
        consumer, sink = await world.consumer(type=SubscriptionType.SHARED, subscription="a b/ä~*")
        for number in range(5):
            producer.publish(send_run([3 * number, 3 * number + 1, 3 * number + 2]))
        await asyncio.sleep(1)
        assert heard.answered == list(range(15))
        assert len(sink.got) == 15
        consumer.acknowledge_run(ack_run(*sink.positions[::2]))
        await world.topic.close()
        await world.restart()
        again, rest = await world.consumer(type=SubscriptionType.SHARED, subscription="a b/ä~*")
        await asyncio.sleep(1)
        assert rest.positions == sink.positions[1::2]
        assert list(world.topic.stats().subscriptions) == ["a b/ä~*"]
        assert (await world.producer(access_mode=AccessMode.EXCLUSIVE))[0].topic_epoch == 1
        again.acknowledge_run(ack_run(*rest.positions))
        await asyncio.sleep(1)
        await world.topic.trim()
        assert world.topic.stats().subscriptions["a b/ä~*"].msg_backlog == 0
        assert (await again.last_message()).position.entry_id == -1, "all is consumed and trimmed"

    run(scenario)


def test_a_reader_that_seeks_and_leaves_can_use_its_name_again_at_once() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        positions = await world.publish(*[payload(batch=2) for _ in range(4)])
        for _ in range(3):
            reader, sink = await world.consumer(durable=False, subscription="reader", start=positions[1])
            await asyncio.sleep(1)
            assert sink.positions == positions[1:]
            await reader.seek(positions[2], (0b10,))
            back, sink = await world.consumer(durable=False, subscription="reader", start=EARLIEST)
            await asyncio.sleep(1)
            assert [(d.position, d.ack_set) for d in sink.got] == [(positions[2], (0b10,)), (positions[3], None)]
            back.close()

    run(scenario)


def test_a_topic_that_lost_its_log_to_another_owner_lets_everybody_go() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        old, heard = await world.producer()
        _, sink = await world.consumer()
        old.publish(send_run([0]))
        await asyncio.sleep(1)
        other = StoredWorld()
        other.storage.tree, other.storage.shared = world.storage.tree, world.storage.shared
        other.storage.start()
        await other.open()
        old.publish(send_run([1]))
        await asyncio.sleep(1)
        assert [what for what, *_ in heard.heard] == ["receipts", "closed", "send_failed"]
        assert sink.heard == [("closed",)]
        assert world.topic.is_closed
        assert other.log.entry_count == 1
        with pytest.raises(BrokerError) as refused:
            await world.consumer()
        assert refused.value.code is ServerError.SERVICE_NOT_READY

    run(scenario)


def test_a_topic_whose_storage_fails_closes_and_loses_nothing_that_had_a_receipt() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        producer, heard = await world.producer()
        producer.publish(send_run([0, 1]))
        await asyncio.sleep(1)
        world.storage.ledger_store.fail_appends, world.storage.ledger_store.fail_opens = 1, 99
        producer.publish(send_run([2]))
        producer.publish(send_run([3]))
        await asyncio.sleep(1)
        assert [what for what, *_ in heard.heard] == ["receipts", "send_failed", "closed", "send_failed"]
        assert heard.heard[1] == ("send_failed", [2], ServerError.PERSISTENCE)
        await world.topic.close()
        world.storage.ledger_store.fail_opens = 0
        await world.open()
        _, sink = await world.consumer()
        await asyncio.sleep(1)
        assert len(sink.got) == 2

    run(scenario)


def test_the_end_of_a_terminated_topic_survives_loading_again() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        producer, heard = await world.producer()
        consumer, sink = await world.consumer()
        producer.publish(send_run([0]))
        await asyncio.sleep(1)
        await world.topic.terminate()
        producer.publish(send_run([1]))
        await settle()
        assert heard.heard[1:] == [("closed",), ("send_failed", [1], ServerError.SERVICE_NOT_READY)]
        consumer.acknowledge_run(ack_run(*sink.positions))
        assert sink.heard == [("end",)]
        await world.topic.close()
        await world.restart()
        _, late = await world.consumer()
        assert late.heard == [("end",)]
        with pytest.raises(BrokerError) as refused:
            await world.producer()
        assert refused.value.code is ServerError.TOPIC_TERMINATED

    run(scenario)


def test_a_deleted_topic_is_gone() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        await world.consumer()
        await world.publish_many(3)
        await world.topic.delete(force=True)
        assert not await world.storage.ledgers.exists(NAME)
        await world.open()
        await settle()
        assert not world.topic.stats().subscriptions

    run(scenario)


@pytest.mark.parametrize("subscription_type", list(SubscriptionType))
@pytest.mark.parametrize("schedule", range(8))
def test_the_subscription_behaves_as_the_naive_model_on_stored_ledgers(
    subscription_type: SubscriptionType, schedule: int
) -> None:
    rng = random.Random(f"{subscription_type} {schedule}")

    async def scenario() -> None:
        world = StoredWorld(step_s=rng.choice((0.0, 0.0, 0.003)))
        await world.open()
        model = Model(world, rng, subscription_type)
        await model.join()
        for _ in range(STEPS):
            await model.step()
        if schedule % 2:
            while model.clients:
                await model.leave()
            await world.topic.close()
            await world.restart()
        await model.finish()

    run(scenario, rng.getrandbits(30))


def test_the_properties_of_the_last_cumulative_ack_are_kept_with_the_place() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        consumer, sink = await world.consumer()
        await world.publish_many(4)
        await asyncio.sleep(1)
        consumer.acknowledge(marked(sink.positions[2], a=1, b=-(1 << 63)))
        consumer.acknowledge(marked(sink.positions[1], late=1))
        consumer.acknowledge_run(ack_run(sink.positions[3]))
        cursor = world.log.cursors["s"]
        assert cursor.properties == {"a": 1, "b": -(1 << 63)}, "neither one that moves nothing nor a single ack changes them"
        await world.topic.close()
        await world.restart()
        assert world.log.cursors["s"].properties == {"a": 1, "b": -(1 << 63)}

    run(scenario)


def test_a_cumulative_ack_without_properties_clears_them_but_for_the_subscriptions_own() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        consumer, sink = await world.consumer()
        await world.publish_many(3)
        await asyncio.sleep(1)
        consumer.acknowledge(marked(sink.positions[0], **{REPLICATED_SUBSCRIPTION_PROPERTY: 1, "a": 1}))
        consumer.acknowledge(marked(sink.positions[1]))
        assert world.log.cursors["s"].properties == {REPLICATED_SUBSCRIPTION_PROPERTY: 1}
        await world.topic.close()

    run(scenario)


def marked(position: Position, **properties: int) -> Acknowledgement:
    return Acknowledgement(True, (position,), ((),), (0,), properties)


def test_a_topic_whose_metadata_is_broken_says_so_by_its_name_and_the_others_are_served() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        await world.publish(payload())
        path = f"/managed-ledgers/{NAME}"
        stored = await world.storage.store.get(path)
        assert stored is not None
        for broken in (stored.value[:-3], b"\x47\x78\x00\x00\x00\x05\x08\x01", b"\xff" * 40):
            await world.storage.store.put(path, broken)
            await world.storage.restart()
            with pytest.raises(BrokerError) as refused:
                await world.open()
            assert refused.value.code is ServerError.PERSISTENCE
            assert NAME in refused.value.message
            topics = PersistentTopics(world.storage.ledgers, TopicSettings(), DispatcherSettings(), world.storage.clock)
            other = await topics(f"{TOPIC}-other", f"{NAME}-other", -1, create=True)
            await other.ledger.append(send_run([0]).entries)
        await world.storage.store.put(path, stored.value)
        await world.open()
        assert world.log.entry_count == 1, "no need to start the broker again"

    run(scenario)
