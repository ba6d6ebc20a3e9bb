"""Topics of all kinds, with all that there is to a topic, used as clients and operators use them, and deleted again."""

import asyncio
import time
from dataclasses import dataclass

from tests.fuzz.admin import Admin, path_of
from tests.fuzz.plain_client import PlainClient
from tests.wire.frame_samples import metadata, send
from tests.wire.frame_samples import section as payload_section
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata

MESSAGES = 12
FAR_MS = 3_600_000
TYPES = (
    api.CommandSubscribe.Shared,
    api.CommandSubscribe.Key_Shared,
    api.CommandSubscribe.Exclusive,
    api.CommandSubscribe.Failover,
)
SCHEMA = api.Schema(
    name="R", type=api.Schema.Avro, schema_data=b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
)
_RATE = {"dispatchThrottlingRateInMsg": 100_000, "dispatchThrottlingRateInByte": 1 << 30, "ratePeriodInSecond": 1}
POLICIES = (
    ("retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": 10}),
    ("messageTTL", 3600),
    ("maxProducers", 10),
    ("maxConsumers", 10),
    ("dispatchRate", _RATE),
    ("subscriptionDispatchRate", _RATE),
    ("publishRate", {"publishThrottlingRateInMsg": 100_000, "publishThrottlingRateInByte": 1 << 30}),
    ("subscribeRate", {"subscribeThrottlingRatePerConsumer": 1000, "ratePeriodInSecond": 30}),
    ("deduplicationEnabled", True),
    ("compactionThreshold", 1 << 30),
    ("delayedDelivery", {"active": True, "tickTime": 1000}),
    ("backlogQuota", {"limitSize": 1 << 30, "limitTime": -1, "policy": "producer_exception"}),
    ("maxUnackedMessagesOnConsumer", 1000),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Addresses of the server."""

    port: int
    admin: Admin

    async def call(self, method: str, path: str, body: object = None) -> bytes:
        status, told = await self.admin.call(method, path, body)
        assert status in (200, 204), (method, path, status, told)
        return told


class UsedTopic:
    """`number` says what kind of a topic it is and what is done with it."""

    def __init__(self, place: Place, number: int, tag: str) -> None:
        self._place, self._number = place, number
        self.namespace = f"public/{tag}-{number}" if number % 5 == 4 else f"public/{tag}"
        self._is_partitioned = number % 4 == 1
        self._is_persistent = number % 7 != 6
        domain = "persistent" if self._is_persistent else "non-persistent"
        self.name = f"{domain}://{self.namespace}/t-{number}"
        self.served = f"{self.name}-partition-0" if self._is_partitioned else self.name
        self._sequence = 0

    async def make(self) -> None:
        if self.namespace.endswith(f"-{self._number}"):
            await self._place.call("PUT", f"namespaces/{self.namespace}")
        if self._is_partitioned:
            await self._place.call("PUT", f"{path_of(self.name)}/partitions", 2)
        elif self._is_persistent:
            await self._place.call("PUT", path_of(self.name))

    async def use(self) -> None:
        await self.make()
        if self._is_persistent:
            path, body = POLICIES[self._number % len(POLICIES)]
            await self._place.call("POST", f"{path_of(self.name)}/{path}", body)
        client = await PlainClient.connected("127.0.0.1", self._place.port)
        try:
            await self._publish_and_consume(client)
        finally:
            await client.close()
        await self._operate()

    async def _publish_and_consume(self, client: PlainClient) -> None:
        topic, subscription = self.served, f"s-{self._number}"
        kind = TYPES[self._number % len(TYPES)]
        await client.request(BaseCommand.LOOKUP, topic=topic)
        await client.request(BaseCommand.PARTITIONED_METADATA, topic=self.name)
        await client.request(BaseCommand.WATCH_TOPIC_LIST, namespace=self.namespace, watcher_id=1, topics_pattern=".*")
        await client.request(BaseCommand.SUBSCRIBE, topic=topic, subscription=subscription, sub_type=kind, consumer_id=0)
        await self._begin_producer(client, topic)
        client.flow(1000)
        ids = [await self._publish(client, self._message(number)) for number in range(MESSAGES)]
        got = [(await client.deliveries.get())[0].message.message_id for _ in range(MESSAGES // 2)]
        await self._acknowledge(client, kind, got)
        if self._is_persistent:
            await self._transact(client, topic, subscription, got)
            await client.request(BaseCommand.GET_LAST_MESSAGE_ID, consumer_id=0)
            await self._read_and_seek(client, topic, ids[0].send_receipt.message_id)
        await client.request(BaseCommand.CONSUMER_STATS, consumer_id=0)

    async def _begin_producer(self, client: PlainClient, topic: str) -> None:
        asked = api.CommandProducer(topic=topic, producer_id=0, request_id=1 << 40, producer_name=f"p-{self._number}")
        if self._number % 3 == 0:
            asked.schema.CopyFrom(SCHEMA)
        await client.asked(BaseCommand(type=BaseCommand.PRODUCER, producer=asked))

    def _message(self, number: int) -> MessageMetadata:
        """The second half is not due for a long time, where that holds it back."""
        told = metadata(f"p-{self._number}", self._sequence, int(time.time() * 1000))
        told.partition_key = f"k{number % 3}"
        told.properties.add(key="k", value="v")
        if number >= MESSAGES // 2 and self._number % 4 < 2:
            told.deliver_at_time = told.publish_time + FAR_MS
        return told

    async def _publish(self, client: PlainClient, told: MessageMetadata, **fields: int) -> BaseCommand:
        """Receipt of a publish."""
        client.send_raw(send(0, self._sequence, payload_section(told.SerializeToString(), b"x" * 100), **fields))
        self._sequence += 1
        receipt = await client.receipts.get()
        assert receipt.type == BaseCommand.SEND_RECEIPT, receipt
        return receipt

    async def _acknowledge(self, client: PlainClient, kind: int, got: list[api.MessageIdData]) -> None:
        """The second one, which leaves a hole; or all up to it."""
        is_one = kind in (api.CommandSubscribe.Shared, api.CommandSubscribe.Key_Shared)
        how = api.CommandAck.Individual if is_one else api.CommandAck.Cumulative
        ack = api.CommandAck(consumer_id=0, ack_type=how, message_id=[got[1]])
        client.send(BaseCommand(type=BaseCommand.ACK, ack=ack))
        redelivered = api.CommandRedeliverUnacknowledgedMessages(consumer_id=0, message_ids=got[3:4])
        client.send(
            BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliver_unacknowledged_messages=redelivered)
        )

    async def _transact(self, client: PlainClient, topic: str, subscription: str, got: list[api.MessageIdData]) -> None:
        coordinator = self._number % 2
        await client.request(BaseCommand.TC_CLIENT_CONNECT_REQUEST, tc_id=coordinator)
        opened = (await client.request(BaseCommand.NEW_TXN, tc_id=coordinator, txn_ttl_seconds=60_000)).new_txn_response
        ids = {"txnid_most_bits": opened.txnid_most_bits, "txnid_least_bits": opened.txnid_least_bits}
        add = api.CommandAddPartitionToTxn(request_id=1 << 40, partitions=[topic], **ids)
        await client.asked(BaseCommand(type=BaseCommand.ADD_PARTITION_TO_TXN, add_partition_to_txn=add))
        named = api.CommandAddSubscriptionToTxn(request_id=1 << 40)
        named.txnid_most_bits, named.txnid_least_bits = opened.txnid_most_bits, opened.txnid_least_bits
        named.subscription.add(topic=topic, subscription=subscription)
        await client.asked(BaseCommand(type=BaseCommand.ADD_SUBSCRIPTION_TO_TXN, add_subscription_to_txn=named))
        told = self._message(0)
        told.txnid_most_bits, told.txnid_least_bits = opened.txnid_most_bits, opened.txnid_least_bits
        await self._publish(client, told, **ids)
        ack = api.CommandAck(consumer_id=0, ack_type=api.CommandAck.Individual, message_id=[got[4]], request_id=7)
        ack.txnid_most_bits, ack.txnid_least_bits = opened.txnid_most_bits, opened.txnid_least_bits
        await client.asked(BaseCommand(type=BaseCommand.ACK, ack=ack))
        action = api.COMMIT if self._number % 3 else api.ABORT
        await client.request(BaseCommand.END_TXN, txn_action=action, **ids)

    async def _read_and_seek(self, client: PlainClient, topic: str, first: api.MessageIdData) -> None:
        """A reader that does not come back."""
        reader = {"topic": topic, "sub_type": api.CommandSubscribe.Exclusive, "consumer_id": 1, "durable": False}
        await client.request(BaseCommand.SUBSCRIBE, subscription=f"reader-{self._number}", **reader)
        seek = api.CommandSeek(consumer_id=1, request_id=1 << 40, message_id=first)
        await client.asked(BaseCommand(type=BaseCommand.SEEK, seek=seek))

    async def _operate(self) -> None:
        """Asks an operator's questions; the topic is unloaded, and loaded again by the next question."""
        path, call = path_of(self.served), self._place.call
        for route in ("stats", "internalStats", "subscriptions"):
            await call("GET", f"{path}/{route}")
        await call("GET", f"{path_of(self.name)}/permissions")
        if not self._is_persistent:
            return
        if self._number % 3 == 0:
            await call("PUT", f"{path}/compaction")
        await call("PUT", f"{path}/subscription/more-{self._number}")
        await call("PUT", f"{path}/unload")
        await call("GET", f"{path}/stats")
        if self._number % 6 == 0:
            await call("POST", f"{path}/terminate")

    async def delete(self) -> None:
        how = f"{path_of(self.name)}/partitions" if self._is_partitioned else path_of(self.name)
        await self._place.call("DELETE", f"{how}?force=true")
        if self.namespace.endswith(f"-{self._number}"):
            await self._place.call("DELETE", f"namespaces/{self.namespace}?force=true")


async def use_and_delete(place: Place, count: int, tag: str) -> None:
    """Uses and deletes `count` topics, some at a time, in a namespace that goes with them."""
    await place.call("PUT", f"namespaces/public/{tag}")
    topics = [UsedTopic(place, number, tag) for number in range(count)]
    turns = asyncio.Semaphore(8)

    async def used(topic: UsedTopic) -> None:
        async with turns:
            await topic.use()

    async with asyncio.TaskGroup() as group:
        for topic in topics:
            group.create_task(used(topic))
    for topic in topics:
        await topic.delete()
    await place.call("DELETE", f"namespaces/public/{tag}?force=true")
