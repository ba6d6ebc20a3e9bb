"""Policies of topics at three levels: the broker's settings, a namespace's policies, a topic's own. Pure data.

Names are Apache's (Policies, TopicPolicies, HierarchyTopicPolicies). A member that is None says nothing, and the level above it
holds. A quota's limit of -1 is none; of a rate 0 or less is none; a maximum of 0 is none.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from wire.record import record

MEGABYTE = 1 << 20
SUBSCRIPTION_TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")
"""Names of the subscription types in settings and policies, in the order of PulsarApi.CommandSubscribe.SubType."""


class QuotaType(StrEnum):
    """BacklogQuota.BacklogQuotaType."""

    DESTINATION_STORAGE = "destination_storage"
    MESSAGE_AGE = "message_age"


class QuotaPolicy(StrEnum):
    """BacklogQuota.RetentionPolicy: action when the backlog is too large."""

    PRODUCER_REQUEST_HOLD = "producer_request_hold"
    PRODUCER_EXCEPTION = "producer_exception"
    CONSUMER_BACKLOG_EVICTION = "consumer_backlog_eviction"


class InactiveMode(StrEnum):
    """InactiveTopicDeleteMode: condition that keeps a topic without producers and consumers."""

    NO_SUBSCRIPTIONS = "delete_when_no_subscriptions"
    CAUGHT_UP = "delete_when_subscriptions_caught_up"


@record(frozen=True, slots=True)
class BacklogQuota:
    """`limit_bytes` counts for DESTINATION_STORAGE (0 or more), `limit_seconds` for MESSAGE_AGE (more than 0)."""

    limit_bytes: int = -1
    limit_seconds: int = -1
    policy: QuotaPolicy = QuotaPolicy.PRODUCER_REQUEST_HOLD


@record(frozen=True, slots=True)
class RetentionPolicy:
    """RetentionPolicies: time and size kept after all have consumed the messages; -1 without bound, 0 nothing."""

    minutes: int
    megabytes: int

    @property
    def age_ms(self) -> int:
        return self.minutes * 60_000 if self.minutes > 0 else self.minutes

    @property
    def size_bytes(self) -> int:
        return self.megabytes * MEGABYTE if self.megabytes > 0 else self.megabytes


@record(frozen=True, slots=True)
class PublishRate:
    """PublishRate: messages and bytes a second."""

    messages: int = -1
    bytes: int = -1

    @property
    def is_limited(self) -> bool:
        return self.messages > 0 or self.bytes > 0


@record(frozen=True, slots=True)
class DispatchRate:
    """DispatchRate: messages and bytes in each period. Relative: so much more than is being published."""

    messages: int = -1
    bytes: int = -1
    period_seconds: int = 1
    is_relative_to_publish_rate: bool = False

    @property
    def is_limited(self) -> bool:
        return self.messages > 0 or self.bytes > 0


@record(frozen=True, slots=True)
class SubscribeRate:
    """SubscribeRate: how often one consumer may subscribe in each period."""

    per_consumer: int = -1
    period_seconds: int = 30

    @property
    def is_limited(self) -> bool:
        return self.per_consumer > 0 and self.period_seconds > 0


@record(frozen=True, slots=True)
class InactiveTopicPolicy:
    """InactiveTopicPolicies."""

    is_deleted: bool
    mode: InactiveMode
    seconds_min: int


@record(frozen=True, slots=True)
class AutoTopicCreation:
    """AutoTopicCreationOverride; `partitions` is 0 for topics that are not partitioned."""

    is_allowed: bool
    partitions: int = 0


@record(frozen=True, slots=True)
class PersistencePolicy:
    """PersistencePolicies: of ledgers made from now on, and how often a second a cursor stores its place (0: no limit)."""

    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    mark_delete_rate: float


@record(frozen=True, slots=True)
class TopicPolicies:
    """Policies of one level, a namespace's or a topic's."""

    message_ttl_seconds: int | None = None
    retention: RetentionPolicy | None = None
    quotas: Mapping[QuotaType, BacklogQuota] = field(default_factory=dict)
    publish_rate: PublishRate | None = None
    dispatch_rate: DispatchRate | None = None
    subscription_dispatch_rate: DispatchRate | None = None
    subscription_rates: Mapping[str, DispatchRate] = field(default_factory=dict)
    """Rates of single subscriptions, by name; before `subscription_dispatch_rate`."""
    subscribe_rate: SubscribeRate | None = None
    max_producers: int | None = None
    max_consumers: int | None = None
    max_subscriptions: int | None = None
    max_consumers_per_subscription: int | None = None
    max_unacked_per_consumer: int | None = None
    max_unacked_per_subscription: int | None = None
    max_message_size: int | None = None
    subscription_types: tuple[str, ...] | None = None
    """Names out of SUBSCRIPTION_TYPES."""
    encryption_required: bool | None = None
    auto_subscription_creation: bool | None = None
    inactive: InactiveTopicPolicy | None = None
    subscription_expiration_minutes: int | None = None
    compaction_threshold_bytes: int | None = None
    persistence: PersistencePolicy | None = None
    deduplication_enabled: bool | None = None
    deduplication_snapshot_seconds: int | None = None
    delayed_delivery_enabled: bool | None = None
    delayed_delivery_tick_ms: int | None = None
    delayed_delivery_max_delay_ms: int | None = None
    auto_topic_creation: AutoTopicCreation | None = None
    """Policy of a namespace; a topic that is not there has no policies."""
    max_topics: int | None = None
    """Maximum in a namespace."""
    schema_compatibility: str | None = None
    """SchemaCompatibilityStrategy; the checks of schemas use this and the following fields."""
    schema_validation_enforced: bool | None = None
    auto_update_schema: bool | None = None
    """Policy of a namespace: whether producers may bring new versions."""


NOTHING_SAID = TopicPolicies()
NOTHING_GOES = TopicPolicies(
    message_ttl_seconds=0,
    retention=RetentionPolicy(-1, -1),
    quotas={each: BacklogQuota() for each in QuotaType},
    inactive=InactiveTopicPolicy(False, InactiveMode.NO_SUBSCRIPTIONS, 0),
)
"""Policies of a topic whose own policies cannot be read: they may say that it is to be kept."""
EXEMPT = TopicPolicies(
    message_ttl_seconds=0,
    quotas={each: BacklogQuota() for each in QuotaType},
    publish_rate=PublishRate(),
    dispatch_rate=DispatchRate(),
    subscription_dispatch_rate=DispatchRate(),
    subscribe_rate=SubscribeRate(),
    max_producers=0,
    max_consumers=0,
    max_subscriptions=0,
    max_consumers_per_subscription=0,
    max_message_size=0,
    delayed_delivery_max_delay_ms=0,
    encryption_required=False,
    auto_subscription_creation=True,
    subscription_expiration_minutes=0,
    deduplication_enabled=False,
)
"""Policies of the system's own topics: no message expires, no client is throttled or refused."""


@record(frozen=True, slots=True)
class EffectivePolicies:
    """Policies in force for a topic. `message_ttl_seconds` 0: nothing expires; `persistence` None: the ledgers' defaults."""

    message_ttl_seconds: int
    retention: RetentionPolicy
    quotas: Mapping[QuotaType, BacklogQuota]
    publish_rate: PublishRate
    dispatch_rate: DispatchRate
    subscription_dispatch_rate: DispatchRate
    subscription_rates: Mapping[str, DispatchRate]
    subscribe_rate: SubscribeRate
    max_producers: int
    max_consumers: int
    max_subscriptions: int
    max_consumers_per_subscription: int
    max_unacked_per_consumer: int
    max_unacked_per_subscription: int
    max_message_size: int
    """0: the broker's, which the connection sees to."""
    subscription_types: tuple[str, ...]
    encryption_required: bool
    auto_subscription_creation: bool
    inactive: InactiveTopicPolicy
    subscription_expiration_minutes: int
    compaction_threshold_bytes: int
    """0: compacted on request only."""
    delayed_delivery_enabled: bool
    delayed_delivery_tick_ms: int
    delayed_delivery_max_delay_ms: int
    """0 or less: there is no limit."""
    persistence: PersistencePolicy | None
    deduplication_enabled: bool
    deduplication_snapshot_seconds: int
    """0: no snapshots by time."""

    @property
    def size_quota(self) -> BacklogQuota:
        return self.quotas[QuotaType.DESTINATION_STORAGE]

    @property
    def age_quota(self) -> BacklogQuota:
        return self.quotas[QuotaType.MESSAGE_AGE]

    def dispatch_rate_of(self, subscription: str) -> DispatchRate:
        return self.subscription_rates.get(subscription, self.subscription_dispatch_rate)
