"""Subscriptions of new partitions: those of the first partition, from the earliest message on, as in Apache
(PersistentTopicsBase.internalUpdatePartitionedTopicAsync).

Without them a message in a new partition is in no backlog until the consumers have noticed that there are more partitions.
"""

import json
from collections.abc import Mapping

from broker.compaction.compacted_topic import COMPACTION_CURSOR
from managed_ledger.contract import EARLIEST
from metadata.paths import encode_name
from ports.loop.slices import in_slices

from ....service.topic_name import TopicName
from ....topic.contract import Topic
from ...rest.each_partition import EachPartition
from ...stats.topic_stats import topic_stats_json


async def copy_subscriptions(parts: EachPartition, topic: TopicName, partitions: int) -> None:
    """Makes the durable subscriptions of the first partition on each partition that lacks them."""
    told = await parts.ask(topic, 1, "stats", topic_stats_json)
    found = told.get(str(topic.partition(0)), {}).get("subscriptions", {})
    durable = {
        name: each.get("subscriptionProperties") or {}
        for name, each in found.items()
        if each.get("isDurable", True) and name != COMPACTION_CURSOR
    }
    async for index in in_slices(range(1, partitions if durable else 0)):
        for name, properties in durable.items():
            await _make(parts, topic.partition(index), name, properties)


async def _make(parts: EachPartition, partition: TopicName, name: str, properties: Mapping[str, str]) -> None:
    async def make(topic: Topic) -> None:
        if not topic.operations.has_subscription(name):
            await topic.create_subscription(name, from_earliest=True, properties=properties)

    at_earliest = {"ledgerId": EARLIEST.ledger_id, "entryId": EARLIEST.entry_id, "properties": properties}
    path, body = f"subscription/{encode_name(name)}", json.dumps(at_earliest).encode()
    await parts.do_on(partition, "PUT", path, make, body)
