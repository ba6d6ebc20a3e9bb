"""Partitioned topics: the numbers of partitions in metadata (Apache's PartitionedTopicMetadata).

Owns /admin/partitioned-topics. Never loads a topic; making one marks its partitions as existing, in the same commit. That
commit and the one that makes a topic's log each demand that the other's node is not there, so that no topic becomes both, also
with creations at the same moment on several brokers (`passing_topics`: those that have no log). A topic that is being deleted
is marked as Apache marks it: no part of it is made or changed any more (`partitioned_deletion`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from metadata.store import MUST_NOT_EXIST, BadVersion, Delete, MetadataError, MetadataStore, NoNode, Operation, Put, absent
from ports.loop.slices import in_slices

from ...errors import BrokerError, ServerError
from ..errors import BadPartitionCount, PartitionsChanged, TopicConflict, TopicNotFound
from ..topic_name import NamespaceName, TopicName
from .namespaces import to_json
from .topic_lists import NAMES_PER_SLICE

MARKS_AT_ONCE = 500
"""Partitions that one commit marks as existing: some milliseconds. With more a topic is marked as not quite made, meanwhile."""
PARTITIONS_MAX = 100_000
"""Above Apache's practice by far; a bound on the writes of one request."""


@dataclass(frozen=True, slots=True)
class PartitionedTopicMetadata:
    """`partitions` is 0 for a topic that is not partitioned."""

    partitions: int
    properties: Mapping[str, str] = field(default_factory=dict)
    version: int = MUST_NOT_EXIST
    is_deleted: bool = False
    """The topic is being deleted."""


NOT_PARTITIONED = PartitionedTopicMetadata(0)


class PartitionedTopics:
    """The partitioned topics in one metadata store."""

    def __init__(self, store: MetadataStore, partitions_max: int) -> None:
        self.store = store
        self.partitions_max = min(partitions_max or PARTITIONS_MAX, PARTITIONS_MAX)

    async def get(self, topic: TopicName) -> PartitionedTopicMetadata:
        """Returns the metadata of the topic itself, not of the topic that it is a partition of."""
        found = await self.store.get(topic.partitions_path)
        if found is None or not found.value:
            return NOT_PARTITIONED
        return _decode(topic, found.value, found.stat.version)

    async def check_consistent(self, topic: TopicName) -> PartitionedTopicMetadata:
        """PIP-414: a partition needs the metadata of its topic, and a partitioned topic is not opened as a whole. Returns them;
        PartitionsChanged while it is being deleted.
        """
        found = await self.get(topic.partitioned)
        check_not_deleted(topic, found)
        partitions = found.partitions
        if not topic.is_partition and partitions:
            raise BrokerError(ServerError.NOT_ALLOWED, f"Found partitioned metadata for non-partitioned topic: {topic}")
        if topic.is_partition and not partitions:
            raise BrokerError(ServerError.NOT_ALLOWED, f"Partition metadata not found for the partitioned topic: {topic}")
        if topic.is_partition and topic.partition_index >= partitions:
            message = f"Illegal topic partition name {topic} with max allowed {partitions} partitions"
            raise BrokerError(ServerError.NOT_ALLOWED, message)
        return found

    async def list_in(self, namespace: NamespaceName, domain: str = "persistent") -> list[TopicName]:
        names = await self.store.children(f"/admin/partitioned-topics/{namespace}/{domain}")
        return [TopicName.of_metadata(domain, namespace, name) async for name in in_slices(names, NAMES_PER_SLICE)]

    async def create(
        self, topic: TopicName, partitions: int, properties: Mapping[str, str], *, is_marked: bool = False
    ) -> PartitionedTopicMetadata:
        """Creates a partitioned topic and returns its metadata. TopicConflict when there is one, partitioned or not;
        BadPartitionCount. `is_marked`: as one that is being deleted (`passing_topics`). Very many partitions are marked as
        existing some at a time: a topic that is half made at the broker's end is to be deleted again."""
        self._check(topic, partitions)
        marks = await self._missing_partitions(topic, range(partitions))
        alone = absent(topic.managed_ledger_path) if topic.is_persistent else ()
        is_large = len(marks) > MARKS_AT_ONCE
        try:
            made = PartitionedTopicMetadata(partitions, properties, is_deleted=is_marked or is_large)
            now = await self._put(topic, made, (*alone, *marks[:MARKS_AT_ONCE]))
        except PartitionsChanged:
            raise TopicConflict(str(topic)) from None
        async for at in in_slices(range(MARKS_AT_ONCE, len(marks), MARKS_AT_ONCE), 1):
            now = await self._put(topic, now, marks[at : at + MARKS_AT_ONCE])
        return await self._put(topic, replace(now, is_deleted=is_marked)) if is_large else now

    async def update(self, topic: TopicName, partitions: int) -> None:
        """Raises the number of partitions. TopicNotFound, BadPartitionCount."""
        self._check(topic, partitions)
        now = await self._changeable(topic)
        if partitions <= now.partitions:
            raise BadPartitionCount(f"Expected more than the {now.partitions} partitions of {topic}, not {partitions}")
        marks = await self._missing_partitions(topic, range(now.partitions, partitions))
        await self._put(topic, replace(now, partitions=partitions), marks)

    async def create_missed(self, topic: TopicName) -> None:
        """Mark the partitions that are missing as existing. TopicNotFound."""
        now = await self._changeable(topic)
        await self._put(topic, now, await self._missing_partitions(topic, range(now.partitions)))

    async def create_partition(self, topic: TopicName, now: PartitionedTopicMetadata) -> None:
        """Marks one as existing, if the metadata of its topic has not changed since `now`. PartitionsChanged."""
        await self._put(topic.partitioned, now, [Put(topic.managed_ledger_path, b"", MUST_NOT_EXIST)])

    async def set_properties(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """Replaces the properties. TopicNotFound."""
        await self._put(topic, replace(await self._changeable(topic), properties=properties))

    async def mark_deleted(self, topic: TopicName) -> PartitionedTopicMetadata:
        """Marks a topic as being deleted and returns its metadata: nothing of it is created from then on. TopicNotFound,
        PartitionsChanged."""
        now = await self.get(topic)
        if not now.partitions:
            raise TopicNotFound(str(topic))
        return await self._put(topic, replace(now, is_deleted=True))

    async def unmark_deleted(self, topic: TopicName, marked: PartitionedTopicMetadata) -> None:
        """Removes the mark: the topic stays, with all its partitions. PartitionsChanged: another deletion decides that."""
        missing = await self._missing_partitions(topic, range(marked.partitions))
        await self._put(topic, replace(marked, is_deleted=False), missing)

    async def delete(self, topic: TopicName, version: int) -> None:
        """PartitionsChanged when it is of another version; TopicNotFound."""
        try:
            await self.store.commit([Delete(topic.partitions_path, version)])
        except NoNode:
            raise TopicNotFound(str(topic)) from None
        except BadVersion:
            raise PartitionsChanged(str(topic)) from None

    async def _changeable(self, topic: TopicName) -> PartitionedTopicMetadata:
        now = await self.get(topic)
        if not now.partitions:
            raise TopicNotFound(str(topic))
        check_not_deleted(topic, now)
        return now

    async def _put(
        self, topic: TopicName, now: PartitionedTopicMetadata, beside: Sequence[Operation] = ()
    ) -> PartitionedTopicMetadata:
        """Replaces the version of `now` and returns the new metadata."""
        try:
            stats = await self.store.commit([Put(topic.partitions_path, _encode(now), now.version), *beside])
        except BadVersion:
            raise PartitionsChanged(str(topic)) from None
        assert stats[0] is not None
        return replace(now, version=stats[0].version)

    def _check(self, topic: TopicName, partitions: int) -> None:
        """Checks the number; what an operator allows to clients does not concern the coordinators of transactions."""
        allowed = PARTITIONS_MAX if topic.is_of_transactions else self.partitions_max
        if not 1 <= partitions <= allowed:
            raise BadPartitionCount(f"Number of partitions should be between 1 and {allowed}, not {partitions}")

    async def _missing_partitions(self, topic: TopicName, indexes: range) -> list[Put]:
        """Apache leaves an empty managed-ledger node of a partition that was never opened; no node of one that stores
        nothing.
        """
        if not topic.is_persistent:
            return []
        paths = (topic.partition(index).managed_ledger_path for index in indexes)
        return [Put(path, b"", MUST_NOT_EXIST) async for path in in_slices(paths) if not await self.store.exists(path)]


_MARKED = "is being deleted, or is half created; if that broker is gone, delete it again"


def check_not_deleted(topic: TopicName, found: PartitionedTopicMetadata) -> None:
    """PartitionsChanged for a topic that is being deleted, or a partition of it."""
    if found.is_deleted:
        raise PartitionsChanged(str(topic.partitioned), _MARKED)


def _encode(metadata: PartitionedTopicMetadata) -> bytes:
    value: dict[str, Any] = {"partitions": metadata.partitions, "deleted": metadata.is_deleted}
    if metadata.properties:
        value["properties"] = dict(metadata.properties)
    return to_json(value)


def _decode(topic: TopicName, value: bytes, version: int) -> PartitionedTopicMetadata:
    try:
        fields = json.loads(value)
        properties, is_deleted = fields.get("properties") or {}, bool(fields.get("deleted"))
        return PartitionedTopicMetadata(int(fields["partitions"]), properties, version, is_deleted)
    except (ValueError, KeyError, TypeError) as error:
        raise MetadataError(f"unreadable value at {topic.partitions_path}: {error}") from error
