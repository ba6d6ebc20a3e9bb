"""TopicSchemas: a topic's verdict on a schema that a producer, a consumer or an operator brings, as Apache's
AbstractTopic.addSchema and PersistentTopic.addSchemaIfIdleOrCheckCompatible.

Owns the choice of the strategy (topic before namespace before broker), and the rules for clients without a schema. The schemas
are the registry's. Refusals are BrokerError(INCOMPATIBLE_SCHEMA), which clients take as final.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bookkeeper.ledgers import LedgerError

from ..errors import BrokerError, ServerError
from ..policies.policies import TopicPolicies
from ..schema.registry import SchemaRegistry
from ..schema.storage import SchemaLost
from ..schema.values import (
    EMPTY_VERSION,
    SchemaData,
    SchemaRefused,
    SchemaType,
    Strategy,
    VersionedSchema,
    version_bytes,
    version_of,
)
from .settings import BrokerSettings
from .topic_name import TopicName

SCHEMA_NEEDED = (
    "Producers cannot connect or send message without a schema to topics with a schema when SchemaValidationEnforced is enabled"
)
NO_SCHEMA_TO_CHECK = "Failed to add schema to an active topic with empty(BYTES) schema: new schema type {}"
PoliciesSaid = Callable[[TopicName], Awaitable[tuple[TopicPolicies, TopicPolicies]]]


def schema_id(topic: TopicName) -> str:
    """TopicName.getSchemaName: the same of all partitions."""
    return topic.partitioned.managed_ledger_name.replace(f"/{topic.domain}/", "/", 1)


class TopicSchemas:
    """Schemas of the topics of one broker. `said_of` gives a topic's own policies and its namespace's."""

    def __init__(self, registry: SchemaRegistry, settings: BrokerSettings, said_of: PoliciesSaid) -> None:
        self.registry = registry
        self._settings, self._said_of = settings, said_of

    async def strategy(self, topic: TopicName) -> Strategy:
        """Returns the strategy that holds for the topic."""
        if topic.is_system:
            return Strategy(self._settings.system_topic_schema_compatibility_strategy)
        own, namespace = await self._said_of(topic)
        said = own.schema_compatibility or namespace.schema_compatibility
        found = Strategy(said or self._settings.schema_compatibility_strategy)
        return Strategy.FULL if found is Strategy.UNDEFINED else found

    async def for_producer(self, topic: TopicName, schema: SchemaData | None) -> bytes:
        """The version that its messages carry; empty without a schema. The topic's schema becomes this one where it may."""
        if schema is None:
            await self._check_none_needed(topic)
            return EMPTY_VERSION
        async with _told():
            may_update = await self._may_update(topic)
            found = await self.registry.put(schema_id(topic), schema, await self.strategy(topic), may_update=may_update)
            return version_bytes(found)

    async def put(self, topic: TopicName, schema: SchemaData) -> int:
        """An operator's: may make a new version also where producers may not."""
        async with _told():
            return await self.registry.put(schema_id(topic), schema, await self.strategy(topic))

    async def delete(self, topic: TopicName, user: str, *, force: bool) -> int | None:
        """See `SchemaRegistry.delete`."""
        async with _told():
            return await self.registry.delete(schema_id(topic), user, force=force)

    async def places(self, topic: TopicName) -> list[tuple[int, int, int]]:
        """Version, ledger and entry of all that is stored, deletions too."""
        async with _told():
            return await self.registry.places(schema_id(topic))

    async def ledgers(self, topic: TopicName) -> list[tuple[int, int, int]]:
        """Ledger, entries and bytes, of those in which its schemas are."""
        async with _told():
            return await self.registry.ledgers(schema_id(topic))

    async def for_consumer(self, topic: TopicName, schema: SchemaData | None, *, is_in_use: bool) -> None:
        """`is_in_use`: it has messages, producers or consumers. Otherwise the first client decides the schema."""
        if schema is None or schema.type is SchemaType.AUTO_CONSUME or topic.is_system:
            return
        strategy = await self.strategy(topic)
        if is_in_use and strategy == Strategy.ALWAYS_COMPATIBLE:
            return
        has_none = await self.latest(topic) is None
        if has_none and not is_in_use:
            await self.for_producer(topic, schema)
            return
        if strategy == Strategy.ALWAYS_COMPATIBLE:
            return
        if has_none:
            raise BrokerError(ServerError.INCOMPATIBLE_SCHEMA, NO_SCHEMA_TO_CHECK.format(schema.type.name))
        async with _told():
            await self.registry.check_readable(schema_id(topic), schema, strategy)

    async def latest(self, topic: TopicName) -> VersionedSchema | None:
        """None when it has none."""
        async with _told():
            return await self.registry.latest(schema_id(topic))

    async def of_version(self, topic: TopicName, raw: bytes | None) -> VersionedSchema | None:
        """Returns the schema of a version as clients name it; None is the newest. None when there is no such."""
        if raw is None:
            return await self.latest(topic)
        async with _told():
            return await self.registry.version(schema_id(topic), version_of(raw))

    async def _may_update(self, topic: TopicName) -> bool:
        if topic.is_system:
            return True
        _, namespace = await self._said_of(topic)
        said = namespace.auto_update_schema
        return self._settings.is_allow_auto_update_schema_enabled if said is None else said

    async def _check_none_needed(self, topic: TopicName) -> None:
        if topic.is_system or not await self.is_enforced(topic):
            return
        if await self.latest(topic) is not None:
            raise BrokerError(ServerError.INCOMPATIBLE_SCHEMA, SCHEMA_NEEDED)

    async def is_enforced(self, topic: TopicName) -> bool:
        """Whether producers have to bring a schema to a topic that has one (schemaValidationEnforced), at any level."""
        if self._settings.is_schema_validation_enforced:
            return True
        return any(each.schema_validation_enforced for each in await self._said_of(topic))


@asynccontextmanager
async def _told() -> AsyncIterator[None]:
    try:
        yield
    except SchemaRefused as refusal:
        raise BrokerError(ServerError.INCOMPATIBLE_SCHEMA, str(refusal)) from refusal
    except (SchemaLost, LedgerError) as failure:
        raise BrokerError(ServerError.PERSISTENCE, str(failure)) from failure
