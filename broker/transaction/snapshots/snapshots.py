"""Snapshots: of all topics of a broker. Owns each namespace's topics of snapshots, and that these have their schemas."""

from broker.policies.topic_settings import TopicSettings
from broker.service.broker_service import BrokerService
from broker.service.system_topics.event_log import EventLog
from broker.service.topic_name import NamespaceName, TopicName
from broker.topic.transactions.snapshot_store import SnapshotStore
from ports.clock import Clock

from .schemas import Kind, schema_of
from .snapshot_topic import OpenLog, SnapshotTopic
from .topic_snapshots import TopicSnapshots

_SEGMENT_OVERHEAD, _ID_BYTES = 8, 3
"""Number of ids in a segment of so many bytes, as Apache calculates it (SnapshotSegmentAbortedTxnProcessorImpl)."""


class Snapshots:
    """`close` before the service."""

    def __init__(self, service: BrokerService, settings: TopicSettings, clock: Clock) -> None:
        self._service, self._settings, self._clock = service, settings, clock
        self._topics: dict[tuple[NamespaceName, Kind], SnapshotTopic] = {}
        self._with_schema: dict[TopicName, None] = {}
        service.gone_namespaces.listeners.append(self._forget)

    def _forget(self, namespace: NamespaceName) -> None:
        """Forgets a deleted namespace; readings under way end by themselves."""
        for kind in Kind:
            self._topics.pop((namespace, kind), None)
            self._with_schema.pop(TopicName("persistent", namespace, kind.value, -1), None)

    def of(self, topic: str) -> SnapshotStore | None:
        """None of a system's own: it has no transactions."""
        name = TopicName.parse(topic)
        if name.is_system:
            return None
        return TopicSnapshots(
            topic,
            lambda kind: self._topic(name.namespace, kind),
            self._clock,
            is_segmented=self._settings.transaction_buffer_segmented_snapshot_enabled,
            segment_capacity=segment_capacity(topic, self._settings.transaction_buffer_snapshot_segment_size),
        )

    def _topic(self, namespace: NamespaceName, kind: Kind) -> SnapshotTopic:
        found = self._topics.get((namespace, kind))
        if found is None:
            opened: OpenLog = lambda topic, is_made: self._open(topic, kind, is_made)  # noqa: E731
            name = TopicName("persistent", namespace, kind.value, -1)
            found = self._topics[namespace, kind] = SnapshotTopic(name, opened, self._clock)
        return found

    async def _open(self, topic: TopicName, kind: Kind, is_made: bool) -> EventLog | None:
        if is_made and (topic not in self._with_schema or not await self._service.catalogue.topic_exists(topic)):
            await self._service.schemas.put(topic, schema_of(kind))
            self._with_schema[topic] = None
        return await self._service.system_logs.open(topic, is_made)

    async def close(self) -> None:
        for topic in self._topics.values():
            await topic.close()


def segment_capacity(topic: str, size_bytes: int) -> int:
    """Number of transactions in a segment of about that size: at least one."""
    return max(1, (size_bytes - _SEGMENT_OVERHEAD - len(topic)) // _ID_BYTES)
