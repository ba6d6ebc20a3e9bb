"""The metrics of topics, subscriptions, consumers and producers as columns: a name, and its value for each series.

Names, and what they mean, are those of Apache's broker (TopicStats.printTopicStats of its prometheus package); metrics of
absent features are left out. Buckets of latencies and sizes are not cumulative, as Apache's are not.
"""

from collections.abc import Iterable, Sequence
from operator import add

from managed_ledger.meters import LedgerMeters
from ports.loop.slices import in_slices
from ports.loop.taking_apart import items_taken_apart, taken_apart

from ...metrics_settings import MetricsSettings
from ...service.topic_name import TopicName
from ...topic.limits.dispatch_throttle import LEVELS
from ...topic.statistics.delayed_stats import IndexMetric, summed
from ...topic.statistics.topic_stats import PublisherStats, SubscriberStats, SubscriptionStats, TopicStats
from ...topic.statistics.transaction_facts import PendingAckCounts
from ..stats.compactions import COMPACTION, compaction_row
from .cursors import CURSOR
from .delayed import IndexTables
from .text import LATENCY_ENDS, Table, escaped
from .transactions import (
    ACKNOWLEDGED,
    BUFFER,
    COMMIT_LATENCY,
    STATUSES,
    acknowledged_rows,
    buffer_row,
    commit_latency_row,
)

GAUGE, COUNTER = "gauge", "counter"
_SIZE_ENDS = ("le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb", "le_overflow")

_TOPIC = (
    ("pulsar_subscriptions_count", GAUGE),
    ("pulsar_producers_count", GAUGE),
    ("pulsar_consumers_count", GAUGE),
    ("pulsar_rate_in", GAUGE),
    ("pulsar_rate_out", GAUGE),
    ("pulsar_throughput_in", GAUGE),
    ("pulsar_throughput_out", GAUGE),
    ("pulsar_average_msg_size", GAUGE),
    ("pulsar_in_bytes_total", COUNTER),
    ("pulsar_in_messages_total", COUNTER),
    ("pulsar_msg_backlog", GAUGE),
    ("pulsar_storage_size", GAUGE),
    ("pulsar_storage_logical_size", GAUGE),
    ("pulsar_storage_backlog_size", GAUGE),
    ("pulsar_publish_rate_limit_times", GAUGE),
    ("pulsar_storage_offloaded_size", GAUGE),
    ("pulsar_storage_backlog_quota_limit", GAUGE),
    ("pulsar_storage_backlog_quota_limit_time", GAUGE),
    ("pulsar_delayed_message_index_size_bytes", GAUGE),
    ("pulsar_storage_backlog_age_seconds", GAUGE),
    ("pulsar_storage_write_rate", GAUGE),
    ("pulsar_storage_read_rate", GAUGE),
    ("pulsar_storage_read_cache_misses_rate", GAUGE),
)
_WRITTEN = tuple(
    [(f"pulsar_storage_write_latency_{end}", GAUGE) for end in (*LATENCY_ENDS, "sum", "count")]
    + [(f"pulsar_entry_size_{end}", GAUGE) for end in (*_SIZE_ENDS, "overflow", "sum", "count")]
)
"""Series of topics to which something was written since they were loaded: for the others all would be 0."""
_SUBSCRIPTION = (
    ("pulsar_subscription_back_log", GAUGE),
    ("pulsar_subscription_back_log_no_delayed", GAUGE),
    ("pulsar_subscription_delayed", GAUGE),
    ("pulsar_subscription_delayed_message_index_size_bytes", GAUGE),
    ("pulsar_subscription_in_replay", GAUGE),
    ("pulsar_subscription_msg_rate_redeliver", GAUGE),
    ("pulsar_subscription_unacked_messages", GAUGE),
    ("pulsar_subscription_blocked_on_unacked_messages", GAUGE),
    ("pulsar_subscription_msg_rate_out", GAUGE),
    ("pulsar_subscription_msg_ack_rate", GAUGE),
    ("pulsar_subscription_msg_throughput_out", GAUGE),
    ("pulsar_subscription_msg_rate_expired", GAUGE),
    ("pulsar_subscription_total_msg_expired", COUNTER),
    ("pulsar_subscription_msg_drop_rate", GAUGE),
    ("pulsar_subscription_last_expire_timestamp", GAUGE),
    ("pulsar_subscription_last_acked_timestamp", GAUGE),
    ("pulsar_subscription_last_consumed_flow_timestamp", GAUGE),
    ("pulsar_subscription_last_consumed_timestamp", GAUGE),
    ("pulsar_subscription_last_mark_delete_advanced_timestamp", GAUGE),
    ("pulsar_subscription_consumers_count", GAUGE),
    ("pulsar_out_bytes_total", COUNTER),
    ("pulsar_out_messages_total", COUNTER),
)
_BACKLOG_SIZE = (("pulsar_subscription_backlog_size", GAUGE),)
_THROTTLED = (
    ("pulsar_subscription_dispatch_throttled_msg_events", GAUGE),
    ("pulsar_subscription_dispatch_throttled_bytes_events", GAUGE),
)
"""Series of subscriptions that had to wait for a rate since they were loaded: one for each of LEVELS (PIP-406)."""
_CONSUMER = (
    ("pulsar_consumer_msg_rate_redeliver", GAUGE),
    ("pulsar_consumer_unacked_messages", GAUGE),
    ("pulsar_consumer_blocked_on_unacked_messages", GAUGE),
    ("pulsar_consumer_msg_rate_out", GAUGE),
    ("pulsar_consumer_msg_ack_rate", GAUGE),
    ("pulsar_consumer_msg_throughput_out", GAUGE),
    ("pulsar_consumer_available_permits", GAUGE),
)
_PRODUCER = (
    ("pulsar_producer_msg_rate_in", GAUGE),
    ("pulsar_producer_msg_throughput_in", GAUGE),
    ("pulsar_producer_msg_average_Size", GAUGE),
)
_EVICTIONS = (("pulsar_storage_backlog_quota_exceeded_evictions_total", GAUGE),)
"""Series of topics with evictions since they were loaded: one for each of QUOTAS."""
QUOTAS = ("size", "time")
NOT_SUMMED = {
    "pulsar_average_msg_size",
    "pulsar_storage_backlog_quota_limit",
    "pulsar_storage_backlog_quota_limit_time",
    "pulsar_storage_backlog_age_seconds",
}
"""Metrics whose value for a namespace or a broker is the largest of its topics'."""

Row = Sequence[float]


class Totals:
    """Totals of a namespace or of the broker, over its topics."""

    __slots__ = (
        "delayed_index",
        "evictions",
        "pending_acks",
        "subscriptions",
        "topic_count",
        "topics",
        "transactions",
        "written",
    )

    def __init__(self) -> None:
        self.topic_count = 0
        self.topics: list[float] = list(_NO_TOPICS)
        self.written: list[float] = [0] * len(_WRITTEN)
        self.subscriptions: list[float] = [0] * len(_SUBSCRIPTION)
        self.evictions = [0, 0]
        self.transactions: list[float] = [0] * len(BUFFER)
        self.pending_acks: PendingAckCounts | None = None
        self.delayed_index: list[IndexMetric] = []

    def include(self, other: "Totals") -> None:
        self.topic_count += other.topic_count
        add_to(self.topics, other.topics, _LARGEST_OF_TOPICS)
        add_to(self.written, other.written, ())
        add_to(self.subscriptions, other.subscriptions, ())
        self.add_evictions(other.evictions)

    def add_evictions(self, counts: Sequence[int]) -> None:
        """Adds evictions, in the order of QUOTAS."""
        self.evictions = list(map(add, self.evictions, counts))

    def add_pending_acks(self, counts: PendingAckCounts) -> None:
        self.pending_acks = self.pending_acks or PendingAckCounts()
        self.pending_acks.include(counts)

    def topic_value(self, name: str) -> float:
        return self.topics[_TOPIC_PLACES[name]]

    def out_bytes(self) -> float:
        return self.subscriptions[_OUT_BYTES]


_TOPIC_PLACES = {name: index for index, (name, _) in enumerate(_TOPIC)}
_OUT_BYTES = [name for name, _ in _SUBSCRIPTION].index("pulsar_out_bytes_total")
_NO_TOPICS = [-1 if name == "pulsar_storage_backlog_age_seconds" else 0 for name, _ in _TOPIC]
_LARGEST_OF_TOPICS = [index for index, (name, _) in enumerate(_TOPIC) if name in NOT_SUMMED]


class Tables:
    """Everything that hangs on topics, and the totals of each namespace and of the broker."""

    def __init__(self, cluster: str, settings: MetricsSettings, copies: int) -> None:
        self._cluster = escaped(cluster)
        self._settings = settings
        self._copies = copies
        self._with_topics = settings.expose_topic_level_metrics_in_prometheus
        self.topics, self.written = Table(_TOPIC), Table(_WRITTEN)
        self.subscriptions, self.backlog_sizes = Table(_SUBSCRIPTION), Table(_BACKLOG_SIZE)
        self.throttled, self.compactions = Table(_THROTTLED), Table(COMPACTION)
        self.evictions = Table(_EVICTIONS)
        self.consumers, self.producers = Table(_CONSUMER), Table(_PRODUCER)
        self.cursors = Table(CURSOR)
        self.delayed_index = IndexTables()
        self.transactions, self.acknowledged, self.commits = Table(BUFFER), Table(ACKNOWLEDGED), Table(COMMIT_LATENCY)
        self.by_namespace: dict[str, Totals] = {}
        self.broker = Totals()

    async def add(self, topic: TopicName, stats: TopicStats, meters: LedgerMeters | None) -> None:
        """One topic."""
        namespace = str(topic.namespace)
        label = self._label(namespace, topic)
        totals = self.by_namespace.get(namespace) or self.by_namespace.setdefault(namespace, Totals())
        row = topic_row(stats, meters, self._copies)
        totals.topic_count += 1
        add_to(totals.topics, row, _LARGEST_OF_TOPICS)
        if self._with_topics:
            self.topics.add(label + "} ", row)
            if stats.compaction is not None:
                self.compactions.add(label + "} ", compaction_row(stats.compaction))
        if meters is not None and meters.entries:
            self._add_written(label, written_row(meters), totals)
        if any(transactions := buffer_row(stats)):
            self._add_transactions(label, transactions, totals)
        if any(stats.quota_evictions):
            totals.add_evictions(stats.quota_evictions)
            if self._with_topics:
                self._add_evictions(label, stats.quota_evictions)
        delayed = [each.delayed_index for each in stats.subscriptions.values() if each.delayed_index]
        if delayed:
            self._add_delayed(label, delayed, totals)
        subscriptions, publishers = items_taken_apart(stats.subscriptions), taken_apart(stats.publishers)
        del stats  # those of a slice leave memory in its turn
        async for name, subscription in in_slices(subscriptions):
            self._add_subscription(f'{label},subscription="{escaped(name)}"', subscription, totals)
        if self._with_topics and self._settings.expose_producer_level_metrics_in_prometheus:
            await self._add_producers(label, publishers)

    async def _add_producers(self, label: str, publishers: Iterable[PublisherStats]) -> None:
        async for publisher in in_slices(publishers):
            who = f'{label},producer_name="{escaped(publisher.producer_name)}",producer_id="{publisher.producer_id}"}} '
            self.producers.add(who, producer_row(publisher))

    def finish(self) -> None:
        """All topics are in: the broker's totals follow, and without series of topics those of namespaces."""
        for totals in self.by_namespace.values():
            self.broker.include(totals)
        if not self._with_topics:
            for namespace, totals in self.by_namespace.items():
                label = f'{{cluster="{self._cluster}",namespace="{escaped(namespace)}"}} '
                self.topics.add(label, totals.topics)
                self.written.add(label, totals.written)
                self.subscriptions.add(label, totals.subscriptions)
                self._add_evictions(label[:-2], totals.evictions)
                self.delayed_index.add(label[:-2], totals.delayed_index)
                if any(totals.transactions):
                    self.transactions.add(label, totals.transactions)
                if totals.pending_acks is not None:
                    self._add_pending_acks(label[:-2], totals.pending_acks)

    def all(self) -> tuple[Table, ...]:
        per_subscription = (self.subscriptions, self.backlog_sizes, self.throttled, self.acknowledged, self.commits)
        per_topic = (self.topics, self.written, self.compactions, self.evictions, self.transactions)
        return (*per_topic, *per_subscription, self.consumers, self.producers, self.cursors, *self.delayed_index.all())

    def _label(self, namespace: str, topic: TopicName) -> str:
        """Returns the labels without the closing brace, so that more can follow."""
        start = f'{{cluster="{self._cluster}",namespace="{escaped(namespace)}",topic="'
        if not self._settings.split_topic_and_partition_label_in_prometheus:
            return f'{start}{escaped(str(topic))}"'
        partition = topic.partition_index if topic.is_partition else -1
        return f'{start}{escaped(str(topic.partitioned))}",partition="{partition}"'

    def _add_transactions(self, label: str, row: Row, totals: Totals) -> None:
        add_to(totals.transactions, row, ())
        if self._with_topics:
            self.transactions.add(label + "} ", row)

    def _add_delayed(self, label: str, delayed: Sequence[Sequence[IndexMetric]], totals: Totals) -> None:
        of_topic = summed(delayed)
        totals.delayed_index = summed((totals.delayed_index, of_topic))
        if self._with_topics:
            self.delayed_index.add(label, of_topic)

    def _add_written(self, label: str, row: Row, totals: Totals) -> None:
        add_to(totals.written, row, ())
        if self._with_topics:
            self.written.add(label + "} ", row)

    def _add_subscription(self, label: str, stats: SubscriptionStats, totals: Totals) -> None:
        row = subscription_row(stats)
        add_to(totals.subscriptions, row, ())
        if stats.pending_acks is not None:
            totals.add_pending_acks(stats.pending_acks)
        if not self._with_topics:
            return
        if stats.pending_acks is not None:
            self._add_pending_acks(label, stats.pending_acks)
        self.subscriptions.add(label + "} ", row)
        self.delayed_index.add(label, stats.delayed_index)
        if self._settings.expose_subscription_backlog_size_in_prometheus:
            self.backlog_sizes.add(label + "} ", (stats.backlog_size,))
        if any(stats.dispatch_throttled_events):
            self._add_throttled(label, stats.dispatch_throttled_events)
        if self._settings.expose_consumer_level_metrics_in_prometheus:
            for place, consumer in enumerate(stats.consumers):
                who = f'{label},consumer_name="{escaped(consumer.consumer_name)}",consumer_id="{place}"}} '
                self.consumers.add(who, consumer_row(consumer))

    def _add_evictions(self, label: str, counts: Sequence[int]) -> None:
        for quota, count in zip(QUOTAS, counts, strict=True):
            self.evictions.add(f'{label},quota_type="{quota}"}} ', (count,))

    def _add_pending_acks(self, label: str, counts: PendingAckCounts) -> None:
        for status, row in zip(STATUSES, acknowledged_rows(counts), strict=True):
            self.acknowledged.add(f'{label},status="{status}"}} ', row)
        self.commits.add(label + "} ", commit_latency_row(counts))

    def _add_throttled(self, label: str, events: Sequence[int]) -> None:
        count = len(LEVELS)
        for level, row in zip(LEVELS, zip(events[:count], events[count:], strict=True), strict=True):
            self.throttled.add(f'{label},reason="{level}"}} ', row)


def topic_row(stats: TopicStats, meters: LedgerMeters | None, copies: int) -> Row:
    subscriptions = stats.subscriptions.values()
    rates = (0.0, 0.0, 0.0) if meters is None else (meters.write_rate, meters.read_rate, meters.missed_rate)
    return (
        len(stats.subscriptions),
        len(stats.publishers),
        sum([len(each.consumers) for each in subscriptions]),
        stats.msg_rate_in,
        stats.msg_rate_out,
        stats.msg_throughput_in,
        stats.msg_throughput_out,
        stats.average_msg_size,
        stats.bytes_in_counter,
        stats.msg_in_counter,
        sum([each.msg_backlog for each in subscriptions]),
        stats.storage_size * copies,
        stats.storage_size,
        stats.backlog_size,
        stats.publish_rate_limited_times,
        0,
        stats.backlog_quota_limit_size,
        stats.backlog_quota_limit_time,
        stats.delayed_message_index_size_in_bytes,
        stats.oldest_backlog_message_age_seconds,
        *rates,
    )


def written_row(meters: LedgerMeters) -> Row:
    sizes = meters.entry_sizes
    latencies = (*meters.append_latencies, meters.append_seconds * 1000, meters.entries)
    return (*latencies, *sizes, sizes[-1], meters.payload_bytes, meters.entries)


def subscription_row(stats: SubscriptionStats) -> Row:
    return (
        stats.msg_backlog,
        stats.msg_backlog - stats.msg_delayed,
        stats.msg_delayed,
        stats.delayed_message_index_size_in_bytes,
        stats.msg_in_replay,
        stats.msg_rate_redeliver,
        stats.unacked_messages,
        int(stats.blocked_subscription_on_unacked_msgs),
        stats.msg_rate_out,
        stats.message_ack_rate,
        stats.msg_throughput_out,
        stats.msg_rate_expired,
        stats.total_msg_expired,
        stats.msg_drop_rate or 0.0,
        stats.last_expire_timestamp,
        stats.last_acked_timestamp,
        stats.last_consumed_flow_timestamp,
        stats.last_consumed_timestamp,
        stats.last_mark_delete_advanced_timestamp,
        len(stats.consumers),
        stats.bytes_out_counter,
        stats.msg_out_counter,
    )


def consumer_row(stats: SubscriberStats) -> Row:
    return (
        stats.msg_rate_redeliver,
        stats.unacked_messages,
        int(stats.blocked_consumer_on_unacked_msgs),
        stats.msg_rate_out,
        stats.message_ack_rate,
        stats.msg_throughput_out,
        stats.available_permits,
    )


def producer_row(stats: PublisherStats) -> Row:
    return (stats.msg_rate_in, stats.msg_throughput_in, stats.average_msg_size)


def add_to(totals: list[float], row: Row, largest: Sequence[int]) -> None:
    """Adds a row in place: sums, and maxima of the columns that `largest` names."""
    kept = [max(totals[index], row[index]) for index in largest]
    totals[:] = map(add, totals, row)
    for index, value in zip(largest, kept, strict=True):
        totals[index] = value
