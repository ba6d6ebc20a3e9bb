"""Lifecycle of topics on this broker: loading, creation, deletion, unloading. Never sees bytes, sockets or messages.

Owns no list: loaded topics are the catalogue's. A missing partition is created only within the number of its topic: the
creation is a compare-and-set on the metadata of the topic.
"""

import logging
from collections.abc import Awaitable, Callable

from ports.logs import line
from ports.loop.side_by_side import side_by_side
from ports.loop.slices import in_slices

from ...errors import BrokerError
from ...topic.contract import Topic
from ..catalogue.partitions import PartitionedTopicMetadata
from ..catalogue.topic_lists import NAMES_PER_SLICE
from ..errors import PartitionsChanged, TopicConflict, TopicNotFound
from ..lookup import Lookup
from ..policies.policy_enforcement import PolicyEnforcement
from ..topic_name import TopicName
from ..topic_schemas import TopicSchemas
from .creation_rules import CreationRules
from .housekeeping import CheckUnused
from .topic_loading import TopicLoading

log = logging.getLogger(__name__)

Covers = Callable[[TopicName], bool]
"""Whether a topic belongs to a bundle."""


class TopicLifecycle:
    """Lifecycle of the topics of one broker. `close` unloads all."""

    def __init__(
        self, lookup: Lookup, rules: CreationRules, loading: TopicLoading, policies: PolicyEnforcement, schemas: TopicSchemas
    ) -> None:
        self._lookup, self._rules, self._loading, self._policies, self._schemas = lookup, rules, loading, policies, schemas
        self._catalogue = rules.catalogue
        self._closers: list[Callable[[Covers], Awaitable[None]]] = []

    def close_with(self, closer: Callable[[Covers], Awaitable[None]]) -> None:
        """Adds a call for `close_topics`, which closes parts of the covered topics that are no topics. It does not fail."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Unloads all topics."""
        for failure in await self._catalogue.loaded.close():
            log.error(line("a topic was not unloaded cleanly"), exc_info=failure)

    async def topic(self, topic: TopicName, *, may_create: bool) -> Topic:
        """Returns the topic, loaded. A missing topic is created if the caller and the rules allow, a partition always."""
        loaded = self._catalogue.loaded_topic(topic)
        if loaded is not None and self._lookup.owners.serves(topic):
            return loaded
        await self._rules.require_served(topic)
        found = await self._catalogue.partitioned_topics.check_consistent(topic)
        if not self._lookup.owners.serves(topic):
            await self._lookup.owners.take_over(topic)
        if not topic.is_partition:
            return await self._load(topic, may_create and (await self._rules.auto_creation(topic)).is_allowed)
        return await (self._stored_partition(topic, found) if topic.is_persistent else self._passing(topic, may_create))

    async def create_topic(self, topic: TopicName) -> Topic:
        """Creates a topic, independently of the rules of automatic creation. TopicConflict when it exists, partitioned or
        not.
        """
        await self._rules.require_served(topic)
        partitioned = self._catalogue.partitioned_topics
        await partitioned.check_consistent(topic)
        if await self._catalogue.topic_exists(topic) or (await partitioned.get(topic)).partitions:
            raise TopicConflict(str(topic))
        try:
            return await self._load(topic, True)
        except BrokerError:
            if (await partitioned.get(topic)).partitions:  # created meanwhile by another caller
                raise TopicConflict(str(topic)) from None
            raise

    async def delete_topic(self, topic: TopicName, *, force: bool = False) -> None:
        """Deletes a topic, its policies and schemas. TopicNotFound; BrokerError when it is in use and not `force`."""
        if not await self._catalogue.topic_exists(topic):
            if not topic.is_persistent:
                self._lookup.require_owned(topic)  # it may be loaded elsewhere
            raise TopicNotFound(str(topic))
        await self._load(topic, False)
        await self._catalogue.loaded.remove(str(topic), lambda loaded: self._delete(topic, loaded, force=force))

    async def delete_unused(self, topic: TopicName, check: CheckUnused) -> None:
        """Deletes a loaded topic unless `check`, called right before, refuses."""

        async def end(loaded: Topic) -> None:
            check(loaded)
            await self._delete(topic, loaded, force=False)

        await self._catalogue.loaded.remove(str(topic), end)

    async def unload_topic(self, topic: TopicName) -> None:
        """Closes a topic; the next request for it loads it again. TopicNotFound when it is not loaded."""
        if not await self._close(topic):
            raise TopicNotFound(str(topic))

    async def close_topics(self, covers: Covers) -> None:
        """Closes the topics of a bundle. When it returns none is served or being loaded."""
        loaded = self._catalogue.loaded
        names = [name async for name in in_slices(loaded.names(), NAMES_PER_SLICE) if covers(TopicName.parse(name))]
        ends = (loaded.remove(name, lambda topic: topic.close()) for name in names)
        for name, failure in zip(names, await side_by_side(ends), strict=True):
            if isinstance(failure, BaseException):
                unforeseen = None if isinstance(failure, BrokerError) else failure
                log.error(line("a topic was not unloaded cleanly", topic=name, reason=failure), exc_info=unforeseen)
        for closer in self._closers:
            await closer(covers)

    async def forget(self, topic: TopicName) -> None:
        """Removes the policies and schemas of a deleted topic, so that the next topic of this name starts without them. A
        partition has none: unlike in Apache the others keep their schema when one of them is deleted."""
        if topic.is_partition or topic.is_system:
            return
        await self._policies.documents.remove(topic)
        twin = topic.of_other_kind  # which has the same schemas (TopicName.getSchemaName)
        if not (await self._catalogue.topic_exists(twin) or (await self._catalogue.partitioned_topics.get(twin)).partitions):
            await self._schemas.delete(topic, "", force=True)

    async def _load(self, topic: TopicName, may_create: bool) -> Topic:
        self._lookup.require_owned(topic)
        if not topic.is_system:
            await self._policies.documents.load(topic.namespace)
        return await self._loading.load(topic, may_create, self._policies.put_in_force)

    async def _close(self, topic: TopicName) -> bool:
        return await self._catalogue.loaded.remove(str(topic), lambda loaded: loaded.close())

    async def _delete(self, topic: TopicName, loaded: Topic, *, force: bool) -> None:
        await loaded.delete(force=force)
        await self.forget(topic)

    async def _stored_partition(self, partition: TopicName, of: PartitionedTopicMetadata) -> Topic:
        """Returns a persistent partition, created while its topic still is as it was found."""
        if not await self._catalogue.topic_exists(partition):
            try:
                await self._catalogue.partitioned_topics.create_partition(partition, of)
            except PartitionsChanged:
                if not await self._catalogue.topic_exists(partition):
                    raise
        return await self._load(partition, False)

    async def _passing(self, partition: TopicName, may_create: bool) -> Topic:
        """Returns a non-persistent partition. A deletion of its topic finds it only once it is loaded: so check again then."""
        loaded = await self._load(partition, may_create)
        try:
            await self._catalogue.partitioned_topics.check_consistent(partition)
        except BrokerError:
            await self._close(partition)
            raise
        return loaded
