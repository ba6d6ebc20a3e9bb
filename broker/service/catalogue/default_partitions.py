"""Makes the partitions of a topic that is asked for and not there, where such topics are partitioned.

Owns nothing. Of a topic that stores nothing only the broker that serves it knows whether it is there: that one is asked, with
the command that the client sent, over a connection that is there for the one question (Apache: NamespaceService's
checkNonPersistentNonPartitionedTopicExists).
"""

import logging
from typing import TYPE_CHECKING

from ports.logs import line
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from ...errors import BrokerError, ServerError
from ..errors import BundleUnsettled, TopicConflict, TopicElsewhere
from ..lookup.addresses import Answer
from ..neighbours.neighbour_link import NeighbourLink, lookup
from ..neighbours.neighbours import Neighbours
from ..topic_name import TopicName
from .partitions import NOT_PARTITIONED, PartitionedTopicMetadata

if TYPE_CHECKING:
    from ..broker_service import BrokerService

_FAILED = api.CommandPartitionedTopicMetadataResponse.Failed

log = logging.getLogger(__name__)


class DefaultPartitions:
    """Of one broker."""

    def __init__(self, service: "BrokerService") -> None:
        self._service = service

    async def make(self, topic: TopicName, partitions: int) -> PartitionedTopicMetadata:
        """What there is then; nothing where the topic is there without partitions. BundleUnsettled: clients ask again."""
        if topic.is_persistent:
            return await self._make(topic, partitions)
        found = await self._service.lookup(topic)
        if found.address == self._service.advertised:
            return await self._make(topic, partitions)
        if not await ask_owner(topic, found, self._service.neighbours):
            return NOT_PARTITIONED
        return await self._service.partitioned_topics.get(topic)

    async def _make(self, topic: TopicName, partitions: int) -> PartitionedTopicMetadata:
        try:
            await self._service.create_partitioned_topic(topic, partitions)
        except TopicConflict:
            log.debug(line("somebody else made the partitions first", topic=topic))
        except TopicElsewhere as moved:
            raise BundleUnsettled(moved.message) from None
        return await self._service.partitioned_topics.get(topic)


async def ask_owner(topic: TopicName, found: Answer, neighbours: Neighbours) -> int:
    """How many partitions it has, made there if need be. Whatever that broker refuses with; BundleUnsettled when it cannot be
    reached or is not ready, as clients would leave this one if it said SERVICE_NOT_READY."""
    try:
        told = await _told(topic, found, neighbours)
        if told.response == _FAILED:
            raise BrokerError(ServerError(int(told.error)), told.message)
    except BrokerError as failure:
        if failure.code is ServerError.SERVICE_NOT_READY:
            raise BundleUnsettled(failure.message) from failure
        raise
    return told.partitions


async def _told(topic: TopicName, found: Answer, neighbours: Neighbours) -> api.CommandPartitionedTopicMetadataResponse:
    link = NeighbourLink(found.address, neighbours, "partitions")
    try:
        await link.open()
        if found.is_redirect:
            await link.ask(lookup(str(topic)))
        return (await link.ask(_partitions_of(topic))).partition_metadata_response
    finally:
        link.end("answered")


def _partitions_of(topic: TopicName) -> BaseCommand:
    asked = api.CommandPartitionedTopicMetadata(topic=str(topic), request_id=5, metadata_auto_creation_enabled=True)
    return BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partition_metadata=asked)
