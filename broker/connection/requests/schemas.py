"""GET_SCHEMA and GET_OR_CREATE_SCHEMA, and the schemas that come with PRODUCER and SUBSCRIBE.

The registry is asked when the topic is loaded, so that a broker that does not own a topic never writes its schema.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from ...errors import BrokerError, ServerError
from ...schema.values import SchemaData, SchemaType
from ...service.lifecycle.partitioned_deletion import PartitionedDeletion
from ...service.lifecycle.topic_lifecycle import TopicLifecycle
from ...service.topic_name import TopicName
from ...service.topic_schemas import TopicSchemas, schema_id
from ...topic.contract import Topic
from .. import replies
from ..link import Link, Routes
from .checks import metadata_of

NO_SCHEMA = "Topic not found or no-schema"


@dataclass(frozen=True, slots=True)
class SchemasOfTopics:
    """Schemas of all topics. `deletion` removes a schema that was stored while its topic was deleted."""

    topics: TopicSchemas
    deletion: PartitionedDeletion


class Schemas:
    """Requests for schemas on one connection."""

    def __init__(self, link: Link, schemas: SchemasOfTopics, lifecycle: TopicLifecycle) -> None:
        self._link, self._schemas, self._lifecycle = link, schemas, lifecycle

    def on_get(self, command: BaseCommand, _: memoryview) -> None:
        """TopicNotFound means for clients that a topic has no schema."""
        asked = command.get_schema
        self._link.run(None, self._get(asked), lambda failed: self._link.answer(replies.no_schema(asked.request_id, failed)))

    async def _get(self, asked: api.CommandGetSchema) -> None:
        raw = asked.schema_version if asked.HasField("schema_version") else None
        name = TopicName.parse(asked.topic)
        found = await self._schemas.topics.of_version(name, raw)
        if found is None:
            raise BrokerError(ServerError.TOPIC_NOT_FOUND, f"{NO_SCHEMA} {name}")
        self._link.answer(replies.schema_found(asked.request_id, found, schema_id(name)))

    def on_get_or_create(self, command: BaseCommand, _: memoryview) -> None:
        """TopicNotFound without the topic. IncompatibleSchema fails the message that brought it; others are tried again."""
        asked, answer = command.get_or_create_schema, self._link.answer

        def refuse(failed: BrokerError) -> None:
            answer(replies.schema_refused(asked.request_id, failed))

        self._link.run(None, self._get_or_create(asked), refuse, is_making=True)

    async def _get_or_create(self, asked: api.CommandGetOrCreateSchema) -> None:
        name = TopicName.parse(asked.topic)
        await self._lifecycle.topic(name, may_create=False)
        said = schema_data(asked.schema)
        version = await self._schemas.topics.for_producer(name, None if said.type == SchemaType.NONE else said)
        await self._schemas.deletion.require_still(name)
        self._link.answer(replies.schema_made(asked.request_id, version))


def schema_data(schema: api.Schema) -> SchemaData:
    """Returns the schema that a client sent. Bare bytes are a schema too, as with Apache (Go's client sends it)."""
    pairs = cast("Iterable[api.KeyValue]", schema.properties)  # in the stubs a type of schema hides the message of this name
    return SchemaData(SchemaType(schema.type), schema.schema_data, metadata_of(pairs))


async def producer_schema(schemas: SchemasOfTopics, name: TopicName, command: api.CommandProducer) -> bytes:
    """The version that its messages carry."""
    version = await schemas.topics.for_producer(name, schema_data(command.schema) if command.HasField("schema") else None)
    await schemas.deletion.require_still(name)
    return version


async def check_consumer_schema(schemas: SchemasOfTopics, name: TopicName, topic: Topic, command: api.CommandSubscribe) -> None:
    """BrokerError(INCOMPATIBLE_SCHEMA)."""
    if not command.HasField("schema"):
        return
    is_in_use = not topic.is_schema_open
    await schemas.topics.for_consumer(name, schema_data(command.schema), is_in_use=is_in_use)
    await schemas.deletion.require_still(name)


ROUTES: Routes[Schemas] = {
    BaseCommand.GET_SCHEMA: Schemas.on_get,
    BaseCommand.GET_OR_CREATE_SCHEMA: Schemas.on_get_or_create,
}
