"""Non-persistent topics: a name is that of a topic or of a partitioned one, never of both, whoever makes it when.

Of a topic nothing is stored, so no commit can demand that it is not there. Its partitions are made on the broker that serves
it, in two steps. First they are stored marked as if they were being deleted: from then on nothing of that name is opened
(`PartitionedTopics.check_consistent`, which each load asks once more at its end). Then whoever was loading it meanwhile is
waited for; if nobody has it the mark goes, else all of it. Owns nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ...topic.contract import Topic
from ..errors import PartitionsChanged, TopicConflict, TopicNotFound
from ..topic_name import TopicName
from .partitions import PartitionedTopics


@dataclass(frozen=True, slots=True)
class PassingTopics:
    """Of one broker. `settled`: the topic if it is loaded, once no load of it is under way; `require_owned` raises
    TopicElsewhere."""

    partitioned_topics: PartitionedTopics
    settled: Callable[[str], Awaitable[Topic | None]]
    require_owned: Callable[[TopicName], None]

    async def create_partitioned(self, topic: TopicName, partitions: int, properties: Mapping[str, str]) -> None:
        """TopicConflict when there is one, partitioned or not; TopicElsewhere, BadPartitionCount."""
        self.require_owned(topic)
        marked = await self.partitioned_topics.create(topic, partitions, properties, is_marked=True)
        try:
            if await self.settled(str(topic)) is not None:
                raise TopicConflict(str(topic))
            self.require_owned(topic)  # or it is loaded by whoever has it now
        except BaseException:
            with suppress(PartitionsChanged, TopicNotFound):  # whoever deletes it meanwhile does that
                await self.partitioned_topics.delete(topic, marked.version)
            raise
        await self.partitioned_topics.unmark_deleted(topic, marked)

    async def check_alone(self, topic: TopicName) -> None:
        """At the end of a load: that the topic has not become a partitioned one. BrokerError."""
        if not topic.is_persistent and not topic.is_partition:
            await self.partitioned_topics.check_consistent(topic)
