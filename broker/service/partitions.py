"""Partitioned topics: how many partitions a topic has, as it stands in metadata (Apache's PartitionedTopicMetadata).

Owns /admin/partitioned-topics. Never loads a topic; making one marks its partitions as existing, in the same commit.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metadata.store import MUST_NOT_EXIST, BadVersion, Delete, MetadataError, MetadataStore, NoNode, Put

from ..errors import BrokerError, ServerError
from .errors import BadPartitionCount, TopicConflict, TopicNotFound
from .namespaces import to_json
from .topic_name import NamespaceName, TopicName

PARTITIONS_MAX = 100_000
"""Above Apache's practice by far; a bound on what one request can make us write."""


@dataclass(frozen=True, slots=True)
class PartitionedTopicMetadata:
    """`partitions` is 0 for a topic that is not partitioned."""

    partitions: int
    properties: Mapping[str, str] = field(default_factory=dict)
    version: int = MUST_NOT_EXIST


NOT_PARTITIONED = PartitionedTopicMetadata(0)


class PartitionedTopics:
    """The partitioned topics in one metadata store."""

    def __init__(self, store: MetadataStore, partitions_max: int) -> None:
        self.store = store
        self._partitions_max = min(partitions_max or PARTITIONS_MAX, PARTITIONS_MAX)

    async def get(self, topic: TopicName) -> PartitionedTopicMetadata:
        """Of the topic itself, not of the one that it is a partition of."""
        found = await self.store.get(topic.partitions_path)
        if found is None or not found.value:
            return NOT_PARTITIONED
        return _decode(topic, found.value, found.stat.version)

    async def list_in(self, namespace: NamespaceName, domain: str = "persistent") -> list[TopicName]:
        names = await self.store.children(f"/admin/partitioned-topics/{namespace}/{domain}")
        return [TopicName.of_metadata(domain, namespace, name) for name in names]

    async def create(self, topic: TopicName, partitions: int, properties: Mapping[str, str]) -> None:
        """TopicConflict when there is one; BadPartitionCount."""
        self._check(partitions)
        value = _encode(partitions, properties)
        marks = await self._missing_partitions(topic, range(partitions))
        try:
            await self.store.commit([Put(topic.partitions_path, value, MUST_NOT_EXIST), *marks])
        except BadVersion:
            raise TopicConflict(str(topic)) from None

    async def update(self, topic: TopicName, partitions: int) -> None:
        """To a larger number. TopicNotFound, BadPartitionCount."""
        self._check(partitions)
        now = await self.get(topic)
        if not now.partitions:
            raise TopicNotFound(str(topic))
        if partitions <= now.partitions:
            raise BadPartitionCount(f"Expected more than the {now.partitions} partitions of {topic}, not {partitions}")
        marks = await self._missing_partitions(topic, range(now.partitions, partitions))
        value = _encode(partitions, now.properties)
        try:
            await self.store.commit([Put(topic.partitions_path, value, now.version), *marks])
        except BadVersion:
            raise BrokerError(ServerError.METADATA, f"The partitions of {topic} were changed at the same time") from None

    async def create_missed(self, topic: TopicName) -> None:
        """Mark the partitions that are missing as existing. TopicNotFound."""
        now = await self.get(topic)
        if not now.partitions:
            raise TopicNotFound(str(topic))
        marks = await self._missing_partitions(topic, range(now.partitions))
        try:
            await self.store.commit([*marks])
        except BadVersion:
            raise BrokerError(ServerError.METADATA, f"The partitions of {topic} were changed at the same time") from None

    async def set_properties(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """In place of those before. TopicNotFound."""
        now = await self.get(topic)
        if not now.partitions:
            raise TopicNotFound(str(topic))
        try:
            await self.store.put(topic.partitions_path, _encode(now.partitions, properties), now.version)
        except BadVersion:
            raise BrokerError(ServerError.METADATA, f"The metadata of {topic} was changed at the same time") from None

    async def delete(self, topic: TopicName) -> None:
        try:
            await self.store.commit([Delete(topic.partitions_path)])
        except NoNode:
            raise TopicNotFound(str(topic)) from None

    def _check(self, partitions: int) -> None:
        if not 1 <= partitions <= self._partitions_max:
            raise BadPartitionCount(f"Number of partitions should be between 1 and {self._partitions_max}, not {partitions}")

    async def _missing_partitions(self, topic: TopicName, indexes: range) -> list[Put]:
        """An empty managed-ledger node is what Apache leaves of a partition that nobody has opened yet; none, of one that
        stores nothing."""
        if not topic.is_persistent:
            return []
        paths = [topic.partition(index).managed_ledger_path for index in indexes]
        return [Put(path, b"", MUST_NOT_EXIST) for path in paths if not await self.store.exists(path)]


def _encode(partitions: int, properties: Mapping[str, str]) -> bytes:
    value: dict[str, Any] = {"partitions": partitions, "deleted": False}
    if properties:
        value["properties"] = dict(properties)
    return to_json(value)


def _decode(topic: TopicName, value: bytes, version: int) -> PartitionedTopicMetadata:
    try:
        fields = json.loads(value)
        return PartitionedTopicMetadata(int(fields["partitions"]), fields.get("properties") or {}, version)
    except (ValueError, KeyError, TypeError) as error:
        raise MetadataError(f"unreadable value at {topic.partitions_path}: {error}") from error
