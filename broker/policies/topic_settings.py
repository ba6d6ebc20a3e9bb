"""Settings of topics, under Apache's key names. Pure data."""

from dataclasses import dataclass

from .policies import SUBSCRIPTION_TYPES, InactiveMode, QuotaPolicy

SEGMENT_BYTES_MAX = 600_000
"""A transaction is counted as three bytes, and takes up to twenty: a message has to have room for all."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Defaults are Apache's; a maximum of 0 means no limit."""

    max_producers_per_topic: int = 0
    """Producers that one topic lets in."""
    max_same_address_producers_per_topic: int = 0
    """Producers of one client address that a topic lets in."""
    max_subscriptions_per_topic: int = 0
    """Subscriptions that one topic may have."""
    max_consumers_per_topic: int = 0
    """Consumers that one topic lets in, over all its subscriptions."""
    max_same_address_consumers_per_topic: int = 0
    """Consumers of one client address that a topic lets in."""
    max_consumers_per_subscription: int = 0
    """Consumers that one subscription lets in."""
    max_unacked_messages_per_broker: int = 0
    """Maximum of Shared and Key_Shared subscriptions of all topics. Subscriptions with more than the share below get no more
    messages at the maximum until they are down to half of their share, or all together to half of this.
    """
    max_unacked_messages_per_subscription_on_broker_blocked: float = 0.16
    """Share of the maximum above; 0: neither holds."""
    encryption_require_on_producer: bool = False
    """Producers that do not encrypt their messages are refused."""
    allow_auto_subscription_creation: bool = True
    """A consumer of a subscription that is not there makes it."""
    subscription_types_enabled: tuple[str, ...] = SUBSCRIPTION_TYPES
    """Types of subscriptions that consumers may ask for."""
    acknowledgment_at_batch_index_level_enabled: bool = True
    """Single messages of a batch may be acknowledged; else a batch is delivered again until all of it is."""
    max_concurrent_non_persistent_message_per_connection: int = 1000
    """Messages at once from a connection for a non-persistent topic; more are dropped."""
    stats_update_frequency_in_secs: int = 60
    """Interval at which rates and averages of topics are computed."""
    ttl_duration_default_in_seconds: int = 0
    """The age at which a message that is not acknowledged is passed over, where no policy says otherwise. 0: never."""
    default_retention_time_in_minutes: int = 0
    """Time that acknowledged messages are kept, where no policy says otherwise. 0: not at all; -1: for ever."""
    default_retention_size_in_mb: int = 0
    """Size of acknowledged messages that a topic keeps, where no policy says otherwise. 0: nothing; -1: everything."""
    backlog_quota_default_limit_bytes: int = -1
    """The backlog that a topic may have, where no policy says otherwise. 0 or less: no limit."""
    backlog_quota_default_limit_gb: float = -1
    """More than 0: wins over the limit in bytes."""
    backlog_quota_default_limit_second: int = -1
    """The age that the oldest message of a backlog may have, where no policy says otherwise. 0 or less: no limit."""
    backlog_quota_default_retention_policy: str = QuotaPolicy.PRODUCER_REQUEST_HOLD.value
    """Action at these limits: producer_request_hold, producer_exception or consumer_backlog_eviction."""
    precise_time_based_backlog_quota_check: bool = False
    """The oldest message itself is read to know its age; else the age is that of its ledger."""
    broker_entry_metadata_interceptors: tuple[str, ...] = ()
    """Metadata stored in front of each message: the broker's time, the message's index."""
    subscription_backlog_scan_max_time_ms: int = 120_000
    """Longest analysis of a backlog over REST; the answer has the entries that were seen by then."""
    subscription_backlog_scan_max_entries: int = 10_000
    """Entries that one analysis of a backlog looks at."""
    subscription_expiration_time_minutes: int = 0
    """Time that a subscription without consumers is kept; 0 for ever."""
    broker_delete_inactive_topics_enabled: bool = True
    """Unused topics are deleted, unless their retention keeps them."""
    broker_delete_inactive_topics_mode: str = InactiveMode.NO_SUBSCRIPTIONS.value
    """Definition of unused: delete_when_no_subscriptions, or delete_when_subscriptions_caught_up."""
    broker_delete_inactive_topics_frequency_seconds: int = 60
    """Interval of looks for unused topics."""
    broker_delete_inactive_topics_max_inactive_duration_seconds: int | None = None
    """None: as often as it is looked for."""
    broker_publisher_throttling_max_message_rate: int = 0
    """Rate of all topics together, as is the next; 0: no limit, as for the other rates."""
    broker_publisher_throttling_max_byte_rate: int = 0
    """Bytes a second that all topics of this broker together take."""
    max_publish_rate_per_topic_in_messages: int = 0
    """Messages a second that one topic takes, where no policy says otherwise."""
    max_publish_rate_per_topic_in_bytes: int = 0
    """Bytes a second that one topic takes, where no policy says otherwise."""
    dispatch_throttling_rate_in_msg: int = 0
    """Rate of all topics together, as is the next."""
    dispatch_throttling_rate_in_byte: int = 0
    """Bytes a second that all topics of this broker together deliver."""
    dispatch_throttling_rate_per_topic_in_msg: int = 0
    """Messages a second that one topic delivers, where no policy says otherwise."""
    dispatch_throttling_rate_per_topic_in_byte: int = 0
    """Bytes a second that one topic delivers, where no policy says otherwise."""
    dispatch_throttling_rate_per_subscription_in_msg: int = 0
    """Messages a second that one subscription delivers, where no policy says otherwise."""
    dispatch_throttling_rate_per_subscription_in_byte: int = 0
    """Bytes a second that one subscription delivers, where no policy says otherwise."""
    dispatch_throttling_rate_relative_to_publish_rate: bool = False
    """The rate of dispatch is the rate of publishing in the last second, plus the rates above."""
    broker_service_compaction_threshold_in_bytes: int = 0
    """A topic with more than this that is not compacted is; 0: only on request."""
    topic_compaction_retain_null_key: bool = False
    """Compaction leaves messages without a key where they are."""
    dispatch_throttling_on_batch_message_enabled: bool = False
    """A batch counts as one message."""
    delayed_delivery_enabled: bool = True
    """False: messages with a delivery time are delivered at once."""
    delayed_delivery_tick_time_millis: int = 1000
    """Longest lateness of such a message; a tenth of it in rest."""
    delayed_delivery_max_delay_in_millis: int = 0
    """A message that is to be delivered later than so long after its publish time is refused; 0: none is."""
    subscribe_throttling_rate_per_consumer: int = 0
    """Attempts to subscribe that one consumer may make in a period. 0 or less: no limit."""
    subscribe_rate_period_per_consumer_in_second: int = 30
    """The length of that period."""
    transaction_buffer_snapshot_max_transaction_count: int = 1000
    """Transactions that end on a topic between snapshots of the aborted ones, at most."""
    transaction_buffer_snapshot_min_time_in_millis: int = 5000
    """Interval of looks whether a snapshot is due."""
    transaction_buffer_segmented_snapshot_enabled: bool = False
    """Snapshots in segments with an index (PIP-196); a list of more than a megabyte is written so all the same."""
    transaction_buffer_snapshot_segment_size: int = 262_144
    """Bytes of a segment, about."""
    broker_deduplication_enabled: bool = False
    """Whether each (producer name, sequence id) is stored once, where namespace and topic say nothing."""
    broker_deduplication_max_number_of_producers: int = 10_000
    """Names that are remembered without being in use, and in a snapshot."""
    broker_deduplication_entries_interval: int = 1000
    """Entries between snapshots: about as many are read again when a topic is loaded."""
    broker_deduplication_snapshot_interval_seconds: int = 120
    """Time between snapshots, where namespace and topic say nothing; 0: only entries count."""
    broker_deduplication_snapshot_frequency_in_seconds: int = 120
    """0: no snapshots by time. Any other value: they are taken when they are due."""
    broker_deduplication_producer_inactivity_timeout_minutes: int = 360
    """Time that unused names are remembered; 0: as long as there is room."""

    def _check_deliveries(self) -> None:
        if not 0 <= self.max_unacked_messages_per_subscription_on_broker_blocked <= 1:
            raise ValueError("maxUnackedMessagesPerSubscriptionOnBrokerBlocked: expected a share, from 0 to 1")
        if self.delayed_delivery_tick_time_millis < 1:
            raise ValueError("delayedDeliveryTickTimeMillis: expected at least 1")

    def __post_init__(self) -> None:
        unknown = [name for name in self.subscription_types_enabled if name not in SUBSCRIPTION_TYPES]
        if unknown:
            raise ValueError(f"subscriptionTypesEnabled: {unknown[0]} is none of {', '.join(SUBSCRIPTION_TYPES)}")
        if self.stats_update_frequency_in_secs < 1:
            raise ValueError("statsUpdateFrequencyInSecs must be at least 1")
        self._check_transactions()
        if self.broker_deduplication_max_number_of_producers < 1:
            raise ValueError("brokerDeduplicationMaxNumberOfProducers must be at least 1")
        if self.broker_deduplication_entries_interval < 1:
            raise ValueError("brokerDeduplicationEntriesInterval must be at least 1")
        if self.max_concurrent_non_persistent_message_per_connection < 0:
            raise ValueError("maxConcurrentNonPersistentMessagePerConnection: expected 0 (one at a time) or more")
        self._check_deliveries()
        if self.ttl_duration_default_in_seconds < 0:
            raise ValueError("ttlDurationDefaultInSeconds: expected 0 (nothing expires) or more")
        if self.backlog_quota_default_retention_policy not in list(QuotaPolicy):
            raise ValueError(f"backlogQuotaDefaultRetentionPolicy: expected one of {', '.join(QuotaPolicy)}")
        if self.broker_service_compaction_threshold_in_bytes < 0:
            raise ValueError("brokerServiceCompactionThresholdInBytes: expected 0 (only on request) or more")
        if self.broker_delete_inactive_topics_mode not in list(InactiveMode):
            raise ValueError(f"brokerDeleteInactiveTopicsMode: expected {' or '.join(InactiveMode)}")

    def _check_transactions(self) -> None:
        if self.transaction_buffer_snapshot_max_transaction_count < 1:
            raise ValueError("transactionBufferSnapshotMaxTransactionCount must be at least 1")
        if self.transaction_buffer_snapshot_min_time_in_millis < 1:
            raise ValueError("transactionBufferSnapshotMinTimeInMillis must be at least 1")
        if not 0 < self.transaction_buffer_snapshot_segment_size <= SEGMENT_BYTES_MAX:
            raise ValueError(f"transactionBufferSnapshotSegmentSize: expected 1 to {SEGMENT_BYTES_MAX} bytes")

    @property
    def non_persistent_entries_at_once_max(self) -> int:
        """The one that exceeds Apache's limit is the first that it drops."""
        return self.max_concurrent_non_persistent_message_per_connection + 1
