"""Settings of the dispatchers, under Apache's key names, and the bounds they set. Pure data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DispatcherSettings:
    """Defaults are Apache's. Unacked maxima count messages, 0 means no limit."""

    dispatcher_max_read_batch_size: int = 100
    """Entries in one read; never more."""
    dispatcher_max_read_size_bytes: int = 5 * 1024 * 1024
    dispatcher_max_round_robin_batch_size: int = 20
    """Messages that a consumer gets in its turn while others of its priority level have permits too."""
    dispatcher_read_failure_backoff_initial_time_in_ms: int = 15_000
    dispatcher_read_failure_backoff_max_time_in_ms: int = 60_000
    max_unacked_messages_per_consumer: int = 50_000
    """At it a consumer gets nothing more until it is down to half."""
    max_unacked_messages_per_subscription: int = 200_000
    is_delayed_delivery_deliver_at_time_strict: bool = False
    """False: what is due within a tick (delayedDeliveryTickTimeMillis) when it is read is delivered at once."""
    active_consumer_failover_delay_time_millis: int = 1000
    """How long a new active consumer waits for a demoted one that may still be processing."""
    subscription_key_shared_use_consistent_hashing: bool = True
    subscription_key_shared_consistent_hashing_replica_points: int = 100
    key_shared_look_ahead_msg_in_replay_threshold_per_consumer: int = 2000
    """Entries that wait for a key or a slow consumer; at the sum over consumers (or the bound below) nothing new is read."""
    key_shared_look_ahead_msg_in_replay_threshold_per_subscription: int = 20_000
