"""Deletes partitioned topics so that each is wholly there or wholly gone, also with opens, creations and look-ups meanwhile.

The order is the promise. The topic's metadata are marked (`deleted`, as Apache's runWithMarkDeleteAsync does): from then on no
partition is opened, and none is made, since that is a compare-and-set on these metadata. Then the partitions go, each where it
is served; then policies and schemas; at the end the metadata: if another writer has changed them, all runs again. A refusal
takes the mark away and gives partitions that are gone their empty places back. The next deletion of the topic finishes the
work of a broker that died. Owns nothing.
"""

import logging
from collections.abc import Awaitable, Callable

from ports.logs import line
from ports.loop.slices import in_slices

from ...errors import BrokerError, ServerError
from ..catalogue.catalogue import Catalogue
from ..catalogue.partitions import PartitionedTopicMetadata
from ..errors import PartitionsChanged, TopicElsewhere, TopicNotFound
from ..topic_name import TopicName
from .housekeeping import CheckUnused
from .topic_lifecycle import TopicLifecycle

_log = logging.getLogger(__name__)

_ATTEMPTS_MAX = 10

DeleteElsewhere = Callable[[TopicName, bool], Awaitable[None]]
"""Asks the broker that serves a partition to delete it; the flag is `force`."""


class PartitionedDeletion:
    """Deletion of the partitioned topics of one broker."""

    def __init__(self, catalogue: Catalogue, lifecycle: TopicLifecycle) -> None:
        self._catalogue, self._lifecycle = catalogue, lifecycle
        self._partitioned = catalogue.partitioned_topics

    async def delete(self, topic: TopicName, *, force: bool = False, elsewhere: DeleteElsewhere | None = None) -> None:
        """TopicNotFound; BrokerError when a partition is in use and not `force`, TopicElsewhere without `elsewhere`."""
        for _ in range(_ATTEMPTS_MAX):
            marked = await self._partitioned.mark_deleted(topic)
            try:
                await self._sweep(topic, marked, force=force, elsewhere=elsewhere)
            except TopicElsewhere:
                raise  # the caller goes there, and it goes on there
            except Exception as failure:
                await self._take_back(topic, marked, failure)
                raise
            try:
                await self._partitioned.delete(topic, marked.version)
            except PartitionsChanged:
                _log.info(line("partitions changed while they were deleted: deletion starts again", topic=topic))
                continue
            return
        raise PartitionsChanged(str(topic))

    async def delete_if_empty(self, topic: TopicName) -> bool:
        """Deletes the topic if none of its partitions is there (brokerDeleteInactivePartitionedTopicMetadataEnabled).

        A partition that is made between the look and the mark keeps it. PartitionsChanged, TopicNotFound: another caller
        decides.
        """
        found = await self._partitioned.get(topic)
        if not found.partitions or found.is_deleted or await self._is_any_there(topic, found):
            return False
        marked = await self._partitioned.mark_deleted(topic)
        if await self._is_any_there(topic, marked):
            await self._partitioned.unmark_deleted(topic, marked)
            return False
        await self._lifecycle.forget(topic)
        await self._partitioned.delete(topic, marked.version)
        return True

    async def delete_unused(self, topic: TopicName, check: CheckUnused, *, with_metadata: bool) -> None:
        """Deletes an unused topic unless `check` refuses; `with_metadata` also the partitioned topic that is empty
        then."""
        await self._lifecycle.delete_unused(topic, check)
        if topic.is_partition and with_metadata:
            await self.delete_if_empty(topic.partitioned)

    async def _is_any_there(self, topic: TopicName, found: PartitionedTopicMetadata) -> bool:
        async for index in in_slices(range(found.partitions)):
            if await self._catalogue.topic_exists(topic.partition(index)):
                return True
        return False

    async def _sweep(
        self, topic: TopicName, marked: PartitionedTopicMetadata, *, force: bool, elsewhere: DeleteElsewhere | None
    ) -> None:
        partitions = [topic.partition(index) for index in range(marked.partitions)]
        if not force:
            async for partition in in_slices(partitions):
                self._check_unused(partition)  # before anything is gone
        async for partition in in_slices(partitions):
            try:
                await self._lifecycle.delete_topic(partition, force=force)
            except TopicNotFound:
                continue  # deleted by itself, or by an attempt that did not come to its end
            except TopicElsewhere:
                if elsewhere is None:
                    raise
                await elsewhere(partition, force)
        await self._lifecycle.forget(topic)

    async def _take_back(self, topic: TopicName, marked: PartitionedTopicMetadata, failure: Exception) -> None:
        try:
            await self._partitioned.unmark_deleted(topic, marked)
        except (PartitionsChanged, TopicNotFound):
            _log.info(line("another deletion of the topic is under way", topic=topic, failure=failure))

    def _check_unused(self, partition: TopicName) -> None:
        """Raises BrokerError for a partition that is loaded here and in use."""
        loaded = self._catalogue.loaded_topic(partition)
        if loaded is None:
            return
        activity = loaded.activity()
        if activity.producers or activity.consumers:
            code = ServerError.PRODUCER_BUSY if activity.producers else ServerError.CONSUMER_BUSY
            raise BrokerError(code, f"{partition} has {activity.producers + activity.consumers} connected producers/consumers")

    async def require_still(self, topic: TopicName) -> None:
        """Removes data that a caller has stored beside a topic if the topic was deleted meanwhile. TopicNotFound."""
        if self._catalogue.loaded_topic(topic) is not None:
            return
        whole = topic.partitioned
        found = await self._partitioned.get(whole)
        async for index in in_slices(range(found.partitions)):
            if not found.is_deleted or await self._catalogue.topic_exists(whole.partition(index)):
                return  # its deletion has still to do that
        if found.partitions or not await self._catalogue.topic_exists(whole):
            await self._lifecycle.forget(whole)
            raise TopicNotFound(str(topic))
