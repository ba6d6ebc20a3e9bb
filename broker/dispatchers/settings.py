"""Settings of the dispatchers, under Apache's key names, and the bounds they set. Pure data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DispatcherSettings:
    """Defaults are Apache's. Unacked maxima count messages, 0 means no limit."""

    dispatcher_max_read_batch_size: int = 100
    """Entries in one read; never more."""
    dispatcher_max_read_size_bytes: int = 5 * 1024 * 1024
    """Bytes of one read, unless its first entry alone is larger."""
    dispatcher_max_round_robin_batch_size: int = 20
    """Messages that a consumer gets in its turn while others of its priority level have permits too."""
    dispatcher_read_failure_backoff_initial_time_in_ms: int = 15_000
    """The wait after a read that failed, before it is tried again; it grows with each failure."""
    dispatcher_read_failure_backoff_max_time_in_ms: int = 60_000
    """The longest such wait."""
    max_unacked_messages_per_consumer: int = 50_000
    """Maximum at which a consumer gets nothing more until it is down to half."""
    max_unacked_messages_per_subscription: int = 200_000
    """Maximum at which a subscription delivers nothing more until it is down to half."""
    is_delayed_delivery_deliver_at_time_strict: bool = False
    """False: a message due within a tick (delayedDeliveryTickTimeMillis) at its read is delivered at once."""
    delayed_delivery_min_index_count_per_bucket: int = 50_000
    """Fewer delayed messages of a subscription are never stored beside the log, but read again after a restart; 0: none are."""
    delayed_delivery_max_indexes_per_bucket_snapshot_segment: int = 5_000
    """Such messages in one entry of a ledger."""
    delayed_delivery_max_num_buckets: int = -1
    """Ledgers for those of one subscription; more are put together. Up to 0: 64."""
    active_consumer_failover_delay_time_millis: int = 1000
    """Time that a new active consumer waits for a demoted one that may still be processing."""
    subscription_key_shared_use_consistent_hashing: bool = True
    """Keys of a Key_Shared subscription are dealt by consistent hashing; else each new consumer takes half of another's
    range."""
    subscription_key_shared_consistent_hashing_replica_points: int = 100
    """Points on the ring of each consumer: more of them deal keys more evenly."""
    key_shared_look_ahead_msg_in_replay_threshold_per_consumer: int = 2000
    """Entries that wait for a key or a slow consumer; at the sum over consumers (or the bound below) nothing new is read."""
    key_shared_look_ahead_msg_in_replay_threshold_per_subscription: int = 20_000
    """The same for a whole subscription."""

    def __post_init__(self) -> None:
        if self.delayed_delivery_min_index_count_per_bucket < 0:
            raise ValueError("delayedDeliveryMinIndexCountPerBucket: expected 0 (nothing is stored) or more")
        if self.delayed_delivery_max_indexes_per_bucket_snapshot_segment < 1:
            raise ValueError("delayedDeliveryMaxIndexesPerBucketSnapshotSegment: expected at least 1")
