"""Policies that a topic in use obeys, each with what shows that it does: nothing is asked of settings, only of what happens.

A check tries what the policy forbids, slows down or brings about, and says whether it was in force; it leaves the topic `t` of
`route_world.prepare` as it was.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from bookkeeper.ledgers import Quorums
from broker.errors import BrokerError
from broker.schema.values import SchemaData, SchemaType
from broker.service.lifecycle.housekeeping import Inactivity, SeenTopic, Standing
from broker.service.topic_name import TopicName
from broker.topic.contract import SubscriptionType
from broker.topic.publish.producer import TopicProducer
from broker.topic.subscription.consumer import TopicConsumer
from tests.broker.admin.admin_world import NAME, AdminWorld
from tests.broker.topic.topic_world import PRODUCER, SUBSCRIBE, ConsumerEnd, ProducerEnd, payload, send_run, settle
from wire.generated.pulsar_api_pb2 import MessageMetadata

Check = Callable[[AdminWorld, Any], Awaitable[bool]]
NEVER_MS = 1 << 50
MESSAGES = 10
"""Messages that `route_world.prepare` stores in the topic."""
_numbers = count()


@dataclass(frozen=True, slots=True)
class Enforced:
    """One policy. The paths are below the namespace and below the topic; empty: it is not said there."""

    is_in_force: Check
    of_namespace: str
    of_topic: str
    body: Any
    set_by: str = "POST"
    neutral: Any = None
    """Body that takes the policy back where no route removes it."""

    @property
    def name(self) -> str:
        return self.of_topic or self.of_namespace


async def refused(asked: Coroutine[Any, Any, Any]) -> bool:
    """Whether it was; what was given is given back."""
    try:
        given = await asked
    except BrokerError:
        return True
    if isinstance(given, TopicProducer | TopicConsumer):
        given.close()
    return False


def produce(topic: Any, end: ProducerEnd | None = None, **fields: Any) -> Coroutine[Any, Any, Any]:
    number = next(_numbers)
    request = replace(PRODUCER, producer_id=number, name=f"p{number}", **fields)
    found: Coroutine[Any, Any, Any] = topic.add_producer(request, end or ProducerEnd())
    return found


def consume(topic: Any, end: ConsumerEnd | None = None, **fields: Any) -> Coroutine[Any, Any, Any]:
    given = {"type": SubscriptionType.SHARED, "consumer_id": next(_numbers), "consumer_name": f"c{next(_numbers)}", **fields}
    found: Coroutine[Any, Any, Any] = topic.subscribe(replace(SUBSCRIBE, **given), end or ConsumerEnd())
    return found


# ---- How fast


async def holds_publishers(world: AdminWorld, topic: Any) -> bool:
    end = ProducerEnd()
    producer = await produce(topic, end)
    producer.publish(send_run(range(50)))
    await settle()
    producer.close()
    return ("hold_reading",) in end.heard


async def holds_deliveries(world: AdminWorld, topic: Any) -> bool:
    end = ConsumerEnd()
    consumer = await consume(topic, end)
    consumer.flow(1000)
    await settle()
    consumer.close()
    return 0 < len(end.got) < MESSAGES


async def counts_subscribers(world: AdminWorld, topic: Any) -> bool:
    name = f"again{next(_numbers)}"
    return any([await refused(consume(topic, consumer_name=name, consumer_id=1)) for _ in range(3)])


# ---- How many


async def is_full_of_producers(world: AdminWorld, topic: Any) -> bool:
    taken = await produce(topic)
    found = await refused(produce(topic))
    taken.close()
    return found


def is_full_of_consumers(first: str, second: str) -> Check:
    async def check(world: AdminWorld, topic: Any) -> bool:
        taken = await consume(topic, subscription=first)
        found = await refused(consume(topic, subscription=second))
        taken.close()
        return found

    return check


async def is_full_of_subscriptions(world: AdminWorld, topic: Any) -> bool:
    taken = await consume(topic)
    found = await refused(consume(topic, subscription=f"another{next(_numbers)}"))
    taken.close()
    return found


async def makes_no_topics(world: AdminWorld, topic: Any) -> bool:
    return await refused(world.service.lifecycle.topic(TopicName.parse(f"{NAME}/another{next(_numbers)}"), may_create=True))


# ---- Who and how


async def wants_encryption(world: AdminWorld, topic: Any) -> bool:
    """Whether unencrypted producers are refused; the connection checks each message
    (tests/broker/connection/producers/test_encryption_required.py)."""
    producer = await produce(topic, is_encrypted=True)
    found = await refused(produce(topic))
    assert bool(producer.is_encryption_required) == found
    producer.close()
    return found


async def takes_failover_alone(world: AdminWorld, topic: Any) -> bool:
    assert not await refused(consume(topic, type=SubscriptionType.FAILOVER))
    return await refused(consume(topic))


async def makes_no_subscriptions(world: AdminWorld, topic: Any) -> bool:
    return await refused(consume(topic, subscription=f"another{next(_numbers)}"))


async def takes_seven_bytes(world: AdminWorld, topic: Any) -> bool:
    """The connection asks the producer (tests/broker/connection/test_bad_input.py)."""
    producer = await produce(topic)
    producer.close()
    return bool(producer.message_size_max == 7)


# ---- What is kept, and for how long


async def lets_expire(world: AdminWorld, topic: Any) -> bool:
    await topic.ledger.append(send_run([0], [payload(publish_time=1000)]).entries)
    await asyncio.sleep(5)
    return bool(topic.stats().subscriptions["s"].msg_backlog == 0)


async def keeps_an_hour(world: AdminWorld, topic: Any) -> bool:
    return bool(topic.ledger.retention == (3_600_000, 20_000 << 20))


async def keeps_one_copy(world: AdminWorld, topic: Any) -> bool:
    return bool(topic.ledger.persistence == (Quorums(1, 1, 1), 3.5))


async def sends_producers_away(world: AdminWorld, topic: Any) -> bool:
    await topic.upkeep.check_quotas()
    return await refused(produce(topic))


async def sends_producers_away_from_what_is_old(world: AdminWorld, topic: Any) -> bool:
    """Whether an old backlog disconnects producers, by the time at which ledgers were closed, as is the default."""
    topic.ledger.roll_over()
    return await sends_producers_away(world, topic)


async def stores_once(world: AdminWorld, topic: Any) -> bool:
    await asyncio.sleep(1)
    producer = await produce(topic)
    before = topic.ledger.entry_count
    for _ in range(2):
        producer.publish(send_run([5]))
        await settle()
    producer.close()
    return bool(topic.ledger.entry_count - before == 1)


async def goes_when_caught_up(world: AdminWorld, topic: Any) -> bool:
    await world.done("POST", "t/subscription/s/skip_all")
    return is_expired(topic, NEVER_MS)


async def goes_when_nobody_is_there(world: AdminWorld, topic: Any) -> bool:
    return is_expired(topic, topic.activity().last_active_ms + 5000)


def is_expired(topic: Any, now_ms: int) -> bool:
    """Whether the broker's housekeeping would delete the topic at that time."""
    policies = topic.upkeep.policies
    seen = SeenTopic(topic.activity(), policies.inactive, policies.retention)
    return Inactivity().standing(topic.name, seen, now_ms) is Standing.EXPIRED


async def delivers_at_once(world: AdminWorld, topic: Any) -> bool:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, deliver_at_time=NEVER_MS).SerializeToString()
    await topic.ledger.append(send_run([0], [len(metadata).to_bytes(4) + metadata]).entries)
    end = ConsumerEnd()
    consumer = await consume(topic, end, subscription=f"another{next(_numbers)}")
    consumer.flow(1000)
    await settle()
    consumer.close()
    assert len(end.got) >= MESSAGES
    return bool(len(end.got) == topic.ledger.entry_count)


async def compacts(world: AdminWorld, topic: Any) -> bool:
    """Here nothing can be compacted: that it is begun is seen by the refusal."""
    try:
        topic.upkeep.check_compaction()
    except BrokerError:
        return True
    return False


# ---- Schemas


def _schema() -> SchemaData:
    """One that may follow all before it."""
    fields = (f'{{"name":"f{each}","type":["null","string"],"default":null}}' for each in range(next(_numbers) % 900))
    return SchemaData(SchemaType.JSON, f'{{"type":"record","name":"R","fields":[{",".join(fields)}]}}'.encode())


async def lets_no_schema_follow(world: AdminWorld, topic: Any) -> bool:
    return await refused(world.service.schemas.for_producer(TopicName.parse(topic.name), _schema()))


async def wants_a_schema(world: AdminWorld, topic: Any) -> bool:
    await world.service.schemas.put(TopicName.parse(topic.name), _schema())
    return await refused(world.service.schemas.for_producer(TopicName.parse(topic.name), None))


_RATE = {"dispatchThrottlingRateInMsg": 2, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1000}
_QUOTA = {"limitSize": 10, "limitTime": -1, "policy": "producer_exception"}
_OF_AGE = "?backlogQuotaType=message_age"
_AGE = {"limitSize": -1, "limitTime": 1, "policy": "producer_exception"}
_ONCE = {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 1000}
_COPIES = {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1, "managedLedgerMaxMarkDeleteRate": 3.5}
_CAUGHT_UP = {
    "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
    "maxInactiveDurationSeconds": 1,
    "deleteWhileInactive": True,
}
_DELAYED = {"active": False, "tickTime": 1000}

ENFORCED: tuple[Enforced, ...] = (
    Enforced(holds_publishers, "publishRate", "publishRate", {"publishThrottlingRateInMsg": 1}),
    Enforced(holds_deliveries, "dispatchRate", "dispatchRate", _RATE),
    Enforced(holds_deliveries, "subscriptionDispatchRate", "subscriptionDispatchRate", _RATE),
    Enforced(holds_deliveries, "", "s/dispatchRate", _RATE),
    Enforced(counts_subscribers, "subscribeRate", "subscribeRate", _ONCE),
    Enforced(is_full_of_producers, "maxProducersPerTopic", "maxProducers", 1),
    Enforced(is_full_of_consumers("s", "s"), "maxConsumersPerTopic", "maxConsumers", 1),
    Enforced(is_full_of_consumers("s", "s"), "maxConsumersPerSubscription", "maxConsumersPerSubscription", 1),
    Enforced(is_full_of_subscriptions, "maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic", 1),
    Enforced(holds_deliveries, "maxUnackedMessagesPerConsumer", "maxUnackedMessagesOnConsumer", 2),
    Enforced(holds_deliveries, "maxUnackedMessagesPerSubscription", "maxUnackedMessagesOnSubscription", 2),
    Enforced(makes_no_topics, "maxTopicsPerNamespace", "", 1),
    Enforced(makes_no_topics, "autoTopicCreation", "", {"allowAutoTopicCreation": False}),
    Enforced(makes_no_subscriptions, "autoSubscriptionCreation", "autoSubscriptionCreation",
             {"allowAutoSubscriptionCreation": False}),
    Enforced(wants_encryption, "encryptionRequired", "", True, neutral=False),
    Enforced(takes_failover_alone, "subscriptionTypesEnabled", "subscriptionTypesEnabled", ["Failover"]),
    Enforced(takes_seven_bytes, "", "maxMessageSize", 7),
    Enforced(lets_expire, "messageTTL", "messageTTL?messageTTL=1", 1),
    Enforced(keeps_an_hour, "retention", "retention", {"retentionTimeInMinutes": 60, "retentionSizeInMB": 20_000}),
    Enforced(keeps_one_copy, "persistence", "persistence", _COPIES),
    Enforced(sends_producers_away, "backlogQuota", "backlogQuota", _QUOTA),
    Enforced(sends_producers_away_from_what_is_old, f"backlogQuota{_OF_AGE}", f"backlogQuota{_OF_AGE}", _AGE),
    Enforced(stores_once, "deduplication", "deduplicationEnabled", True),
    Enforced(goes_when_caught_up, "inactiveTopicPolicies", "inactiveTopicPolicies", _CAUGHT_UP),
    Enforced(delivers_at_once, "delayedDelivery", "delayedDelivery", _DELAYED),
    Enforced(compacts, "compactionThreshold", "compactionThreshold", 5, set_by="PUT"),
    Enforced(lets_no_schema_follow, "schemaCompatibilityStrategy", "schemaCompatibilityStrategy", "ALWAYS_INCOMPATIBLE",
             set_by="PUT", neutral="UNDEFINED"),
    Enforced(wants_a_schema, "schemaValidationEnforced", "schemaValidationEnforced", True, neutral=False),
    Enforced(lets_no_schema_follow, "isAllowAutoUpdateSchema", "", False, neutral=True),
)  # fmt: skip
