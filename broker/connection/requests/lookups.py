"""PARTITIONED_METADATA and LOOKUP. Failures are inside their own responses, never in ERROR. SERVICE_NOT_READY in them makes C++
and Go clients close the connection with everything on it: no answer here has it while the broker serves.
"""

import asyncio

from wire.generated.pulsar_api_pb2 import BaseCommand

from ...errors import BrokerError
from ...meters import BrokerMeters
from ...service.addresses import Answer
from ...service.lifecycle.partitioned_creation import PartitionedCreation
from ...service.lookup import Lookup
from ...service.topic_name import TopicName
from .. import replies
from ..link import Link, Routes


class Lookups:
    """Lookups of one connection."""

    def __init__(self, link: Link, lookup: Lookup, creation: PartitionedCreation, meters: BrokerMeters) -> None:
        self._link = link
        self._lookup, self._creation, self._meters = lookup, creation, meters

    def on_partitioned_metadata(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.partition_metadata

        async def answer() -> None:
            with self._lookup.pending():
                name = TopicName.parse(asked.topic)
                found = await self._creation.partitions(name, may_create=asked.metadata_auto_creation_enabled)
                self._link.answer(replies.partitions(asked.request_id, found.partitions))

        def refuse(failure: BrokerError) -> None:
            self._link.answer(replies.partitions_failed(asked.request_id, failure))

        self._link.run(command, answer(), refuse, is_making=asked.metadata_auto_creation_enabled)

    def on_lookup(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.lookup_topic

        async def answer() -> None:
            topic = TopicName.parse(asked.topic)
            found = await self._measured(topic, asked.advertised_listener_name, asked.authoritative)
            self._link.answer(replies.lookup(asked.request_id, found))

        self._link.run(command, answer(), lambda failure: self._link.answer(replies.lookup_failed(asked.request_id, failure)))

    async def _measured(self, topic: TopicName, listener: str, authoritative: bool) -> Answer:
        meters, loop = self._meters, asyncio.get_running_loop()
        began, has_failed = loop.time(), True
        try:
            with self._lookup.pending():
                found = await self._lookup.find(topic, listener, authoritative=authoritative)
            meters.lookups_redirected += found.is_redirect
            has_failed = False
            return found
        finally:
            meters.lookups.record(loop.time() - began, has_failed=has_failed)


ROUTES: Routes[Lookups] = {
    BaseCommand.PARTITIONED_METADATA: Lookups.on_partitioned_metadata,
    BaseCommand.LOOKUP: Lookups.on_lookup,
}
