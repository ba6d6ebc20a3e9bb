"""Opens partitions. One that is missing is made only while its topic is as it was found, and none outlives it. Owns nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ...errors import BrokerError
from ...topic.contract import Topic
from ..catalogue.partitions import PartitionedTopicMetadata, PartitionedTopics
from ..errors import PartitionsChanged
from ..topic_name import TopicName


@dataclass(frozen=True, slots=True)
class PartitionOpening:
    """Of one broker. `load` has the flag whether a topic may be made, and raises TopicElsewhere; `close` unloads one."""

    partitioned_topics: PartitionedTopics
    exists: Callable[[TopicName], Awaitable[bool]]
    load: Callable[[TopicName, bool], Awaitable[Topic]]
    close: Callable[[TopicName], Awaitable[bool]]

    async def open(self, partition: TopicName, of: PartitionedTopicMetadata, *, may_create: bool) -> Topic:
        """`of`: what its topic was found to be. One that is stored nowhere is made only if `may_create`."""
        return await (self._stored(partition, of) if partition.is_persistent else self._passing(partition, may_create))

    async def _stored(self, partition: TopicName, of: PartitionedTopicMetadata) -> Topic:
        if not await self.exists(partition):
            try:
                await self.partitioned_topics.create_partition(partition, of)
            except PartitionsChanged:
                if not await self.exists(partition):
                    raise
        return await self.load(partition, False)

    async def _passing(self, partition: TopicName, may_create: bool) -> Topic:
        """Who deletes the topic finds it only once it is loaded: it is asked again then whether it may be there."""
        loaded = await self.load(partition, may_create)
        try:
            await self.partitioned_topics.check_consistent(partition)
        except BrokerError:
            await self.close(partition)
            raise
        return loaded
