"""Stats of a topic for administrators, as values. Pure data.

Fields have the names of Apache's TopicStats, SubscriptionStats, ConsumerStats and PublisherStats in snake case, so that each is
mapped to JSON by its name. Rates are per second over the last sampling period (statsUpdateFrequencyInSecs), throughput is in
bytes per second, counters count since the topic was loaded, times are in milliseconds since the epoch and 0 for never.
As in Apache `msg_backlog` counts entries (batches).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .compaction_stats import CompactionStats
from .delayed_stats import IndexMetric
from .transaction_facts import PendingAckCounts


@dataclass(frozen=True, slots=True)
class PublisherStats:
    """A producer."""

    access_mode: str
    msg_rate_in: float
    msg_throughput_in: float
    average_msg_size: float
    chunked_message_rate: float
    producer_id: int
    producer_name: str
    address: str
    connected_since_ms: int
    client_version: str
    metadata: Mapping[str, str]
    msg_drop_rate: float | None = None
    """Only non-persistent topics have it, here and below."""


@dataclass(frozen=True, slots=True)
class SubscriberStats:
    """A consumer (Apache: ConsumerStats)."""

    consumer_name: str
    msg_rate_out: float
    msg_throughput_out: float
    bytes_out_counter: int
    msg_out_counter: int
    msg_rate_redeliver: float
    message_ack_rate: float
    available_permits: int
    unacked_messages: int
    avg_messages_per_entry: int
    blocked_consumer_on_unacked_msgs: bool
    address: str
    connected_since_ms: int
    client_version: str
    last_acked_timestamp: int
    last_consumed_timestamp: int
    last_consumed_flow_timestamp: int
    key_hash_ranges: tuple[tuple[int, int], ...]
    """Inclusive; Key_Shared only."""
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SubscriptionStats:
    """A subscription; `type` is "Exclusive", "Shared", "Failover", "Key_Shared", or "None" before its first consumer."""

    type: str
    msg_rate_out: float
    msg_throughput_out: float
    bytes_out_counter: int
    msg_out_counter: int
    msg_rate_redeliver: float
    message_ack_rate: float
    msg_backlog: int
    backlog_size: int
    """Whole ledgers, and the mean size of an entry in the one that mark-delete is in; holes are not subtracted."""
    msg_rate_expired: float
    total_msg_expired: int
    """Entries, by their time to live or on an operator's wish."""
    last_expire_timestamp: int
    blocked_subscription_on_unacked_msgs: bool
    msg_in_replay: int
    unacked_messages: int
    active_consumer_name: str
    """Empty where there is none, or all are active."""
    last_consumed_flow_timestamp: int
    last_consumed_timestamp: int
    last_acked_timestamp: int
    last_mark_delete_advanced_timestamp: int
    is_durable: bool
    allow_out_of_order_delivery: bool
    key_shared_mode: str
    """"AUTO_SPLIT" or "STICKY"; empty for the other types."""
    draining_hashes_count: int
    dispatch_throttled_events: tuple[int, ...]
    """Reads that had to wait for a rate: of messages by the subscription's, its topic's, its broker's; the same of bytes."""
    subscription_properties: Mapping[str, str]
    mark_delete_position: str
    consumers: tuple[SubscriberStats, ...]
    msg_delayed: int = 0
    """Entries that wait for their delivery time; part of `msg_backlog`."""
    delayed_message_index_size_in_bytes: int = 0
    """Bytes of memory for these; of a topic, for all its subscriptions."""
    delayed_index: Sequence[IndexMetric] = ()
    """Stored part of them; empty where none was stored since it was loaded."""
    read_position: str = ""
    """Position where its dispatcher reads on; empty: at the first unacknowledged entry."""
    is_waiting: bool = False
    """Whether its dispatcher has read all there is."""
    msg_drop_rate: float | None = None
    pending_acks: PendingAckCounts | None = None
    """Counts that go on counting; None: no transaction has ended on it since it was loaded."""


@dataclass(frozen=True, slots=True)
class TopicTraffic:
    """Traffic of a topic for the load manager: the same values as in `TopicStats`, for a fraction of the work."""

    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    producers: int = 0
    consumers: int = 0


@dataclass(frozen=True, slots=True)
class TopicStats:
    """A topic. Out rates are the sums over its subscriptions; out counters include consumers and subscriptions
    that are gone."""

    msg_rate_in: float
    msg_throughput_in: float
    msg_rate_out: float
    msg_throughput_out: float
    bytes_in_counter: int
    msg_in_counter: int
    bytes_out_counter: int
    msg_out_counter: int
    average_msg_size: float
    msg_chunk_published: bool
    storage_size: int
    backlog_size: int
    """The largest of a durable subscription."""
    backlog_quota_limit_size: int
    backlog_quota_limit_time: int
    publish_rate_limited_times: int
    waiting_publishers: int
    topic_epoch: int | None
    topic_creation_time_stamp: int
    last_publish_time_stamp: int
    last_confirmed_position: str
    is_terminated: bool
    deduplication_status: str
    """Status as Apache's MessageDeduplication.Status is written."""
    publishers: tuple[PublisherStats, ...]
    subscriptions: Mapping[str, SubscriptionStats]
    ongoing_txn_count: int = 0
    aborted_txn_count: int = 0
    """Since it was loaded, as is the next."""
    committed_txn_count: int = 0
    delayed_message_index_size_in_bytes: int = 0
    oldest_backlog_message_age_seconds: int = -1
    """Age at the last check of quotas; -1: not known, or no backlog."""
    quota_evictions: tuple[int, int] = (0, 0)
    """Checks of quotas that evicted something: by size, by age."""
    msg_drop_rate: float | None = None
    compaction: CompactionStats | None = None
    """Stats that go on counting; None: the topic was not compacted since it was loaded."""
