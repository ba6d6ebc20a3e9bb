"""Creation of partitioned topics: on request, and for a missing topic where topics are partitioned by default.

Owns nothing. A name is that of a topic or of a partitioned topic, never of both, also with creations at the same moment.
Persistent topics are kept apart by commits to metadata (`catalogue.partitions`). A non-persistent topic stores nothing that a
commit could test, so that only its owner knows whether it exists, and its partitions are created there in two steps. First
they are stored with the mark of a deletion: no topic of that name is opened from then on (`check_consistent`, which each load
asks once more at its end). Then loads under way are waited for. Without a loaded topic the mark is removed, else the metadata.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress

from ports.logs import line
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from ...errors import BrokerError, ServerError
from ..addresses import Answer
from ..catalogue.partitions import NOT_PARTITIONED, PartitionedTopicMetadata, check_not_deleted
from ..errors import BundleUnsettled, PartitionsChanged, TopicConflict, TopicElsewhere, TopicNotFound
from ..lookup import Lookup
from ..neighbours.neighbour_link import NeighbourLink, lookup
from ..neighbours.neighbours import Neighbours
from ..topic_name import TopicName
from .creation_rules import CreationRules

_FAILED = api.CommandPartitionedTopicMetadataResponse.Failed

log = logging.getLogger(__name__)


class PartitionedCreation:
    """Creation on one broker."""

    def __init__(self, lookup: Lookup, rules: CreationRules) -> None:
        self._lookup, self._rules = lookup, rules
        self._catalogue, self._partitioned = rules.catalogue, rules.catalogue.partitioned_topics

    async def partitions(self, topic: TopicName, *, may_create: bool) -> PartitionedTopicMetadata:
        """Returns the answer to PARTITIONED_METADATA: 0 partitions for a topic that is not partitioned, and for a partition.

        A missing topic is TopicNotFound, unless `may_create` and topics are created automatically. Then the metadata is created
        where such topics are partitioned.
        """
        await self._rules.require_served(topic)
        found = await self._partitioned.get(topic)
        check_not_deleted(topic, found)
        if found.partitions or await self._catalogue.is_promised(topic):
            return found
        creation = await self._rules.auto_creation(topic)
        if not may_create or not creation.is_allowed:
            if not topic.is_persistent and not self._lookup.serves(topic):
                return found  # it may exist: its owner decides
            raise TopicNotFound(str(topic))
        if creation.partitions and not topic.is_partition:
            return await self._create_by_default(topic, creation.partitions)
        return found

    async def create(self, topic: TopicName, partitions: int, properties: Mapping[str, str] | None = None) -> None:
        """Creates a partitioned topic. TopicConflict when the name exists, partitioned or not; BadPartitionCount;
        TopicElsewhere for a non-persistent topic of another broker."""
        await self._rules.require_served(topic)
        if topic.is_partition:
            raise BrokerError(ServerError.INVALID_TOPIC_NAME, f"{topic} has the name of a partition")
        if await self._catalogue.topic_exists(topic):
            raise TopicConflict(str(topic))
        await self._rules.require_room(topic, partitions)
        if topic.is_persistent:
            await self._partitioned.create(topic, partitions, properties or {})
        else:
            await self._create_non_persistent(topic, partitions, properties or {})

    async def _create_non_persistent(self, topic: TopicName, partitions: int, properties: Mapping[str, str]) -> None:
        self._lookup.require_owned(topic)
        marked = await self._partitioned.create(topic, partitions, properties, is_marked=True)
        try:
            if await self._catalogue.loaded.settled(str(topic)) is not None:
                raise TopicConflict(str(topic))
            self._lookup.require_owned(topic)  # or its new owner loads it
        except BaseException:
            with suppress(PartitionsChanged, TopicNotFound):  # a deletion meanwhile does that
                await self._partitioned.delete(topic, marked.version)
            raise
        await self._partitioned.unmark_deleted(topic, marked)

    async def _create_by_default(self, topic: TopicName, partitions: int) -> PartitionedTopicMetadata:
        """Returns the metadata created, 0 partitions where the topic exists without. BundleUnsettled: clients ask again.

        The owner of a non-persistent topic is asked (Apache: NamespaceService.checkNonPersistentNonPartitionedTopicExists).
        """
        if not topic.is_persistent:
            found = await self._lookup.find(topic)
            if found.address != self._lookup.advertised:
                is_partitioned = await partitions_at_owner(topic, found, self._lookup.neighbours) > 0
                return await self._partitioned.get(topic) if is_partitioned else NOT_PARTITIONED
        try:
            await self.create(topic, partitions)
        except TopicConflict:
            log.debug(line("another request created the partitions first", topic=topic))
        except TopicElsewhere as moved:
            raise BundleUnsettled(moved.message) from None
        return await self._partitioned.get(topic)


async def partitions_at_owner(topic: TopicName, found: Answer, neighbours: Neighbours) -> int:
    """Returns the number of partitions at the owner, which creates them if need be. The owner's refusals.

    BundleUnsettled when the owner is unreachable or not ready: a client would leave this broker at SERVICE_NOT_READY.
    """
    try:
        answer = await _answer_of_owner(topic, found, neighbours)
        if answer.response == _FAILED:
            raise BrokerError(ServerError(int(answer.error)), answer.message)
    except BrokerError as failure:
        if failure.code is ServerError.SERVICE_NOT_READY:
            raise BundleUnsettled(failure.message) from failure
        raise
    return answer.partitions


async def _answer_of_owner(
    topic: TopicName, found: Answer, neighbours: Neighbours
) -> api.CommandPartitionedTopicMetadataResponse:
    """Returns the owner's answer to the command that a client sends, over a connection for this one question."""
    link = NeighbourLink(found.address, neighbours, "partitions")
    try:
        await link.open()
        if found.is_redirect:
            await link.ask(lookup(str(topic)))
        return (await link.ask(_question(topic))).partition_metadata_response
    finally:
        link.end("answered")


def _question(topic: TopicName) -> BaseCommand:
    asked = api.CommandPartitionedTopicMetadata(topic=str(topic), request_id=5, metadata_auto_creation_enabled=True)
    return BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partition_metadata=asked)
