"""The bodies of topic policies: Apache's JSON as types, and their forbidden values. Pure.

Unknown members are ignored, as Jackson does. Statuses and reasons are those of an Apache Pulsar 4.0.8.
"""

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from ....policies.policies import MEGABYTE, BacklogQuota, InactiveMode, QuotaPolicy, RetentionPolicy
from ...rest.answers import Refusal

ENSEMBLE_MAX = 5
"""Apache's broker takes no more either."""
Int32 = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class SubscriptionTypeName(StrEnum):
    """CommandSubscribe.SubType."""

    EXCLUSIVE = "Exclusive"
    SHARED = "Shared"
    FAILOVER = "Failover"
    KEY_SHARED = "Key_Shared"


class Retention(Struct):
    """RetentionPolicies."""

    retention_time_in_minutes: Int32 = field(name="retentionTimeInMinutes", default=0)
    retention_size_in_mb: Int64 = field(name="retentionSizeInMB", default=0)


class Quota(Struct, rename="camel"):
    """BacklogQuotaImpl; `limit` is the older name of `limitSize`."""

    limit: Int64 | None = None
    limit_size: Int64 | None = None
    limit_time: Int32 = 0
    policy: QuotaPolicy | None = None


class DispatchRateBody(Struct, rename="camel"):
    """DispatchRateImpl."""

    dispatch_throttling_rate_in_msg: Int32 = 0
    dispatch_throttling_rate_in_byte: Int64 = 0
    relative_to_publish_rate: bool = False
    rate_period_in_second: Int32 = 0


class PublishRateBody(Struct, rename="camel"):
    """PublishRate."""

    publish_throttling_rate_in_msg: Int32 = -1
    publish_throttling_rate_in_byte: Int64 = -1


class SubscribeRateBody(Struct, rename="camel"):
    """SubscribeRate."""

    subscribe_throttling_rate_per_consumer: Int32 = -1
    rate_period_in_second: Int32 = 30


class InactiveBody(Struct, rename="camel"):
    """InactiveTopicPolicies."""

    inactive_topic_delete_mode: InactiveMode = InactiveMode.NO_SUBSCRIPTIONS
    max_inactive_duration_seconds: Int32 = 0
    delete_while_inactive: bool = False


class PersistenceBody(Struct, rename="camel"):
    """PersistencePolicies."""

    bookkeeper_ensemble: Int32 = 2
    bookkeeper_write_quorum: Int32 = 2
    bookkeeper_ack_quorum: Int32 = 2
    managed_ledger_max_mark_delete_rate: float = 0.0


class DelayedDeliveryBody(Struct, rename="camel"):
    """DelayedDeliveryPolicies; of the tick 0 is the level above's, of the longest delay none."""

    tick_time: Int64 = 0
    active: bool = False
    max_delivery_delay_in_millis: Int64 = 0


class AutoSubscriptionCreationBody(Struct, rename="camel"):
    """AutoSubscriptionCreationOverrideImpl."""

    allow_auto_subscription_creation: bool = False


def check_retention(body: Retention) -> None:
    check_retention_limits(body.retention_time_in_minutes, body.retention_size_in_mb)


def check_retention_limits(minutes: int, megabytes: int) -> None:
    """PolicyValidation of RetentionPolicies, a namespace's too."""
    if megabytes < -1:
        raise Refusal(400, "Invalid retention policy: size limit must be >= -1")
    if minutes < -1:
        raise Refusal(400, "Invalid retention policy: time limit must be >= -1")
    if (minutes == 0) != (megabytes == 0):
        raise Refusal(
            400,
            "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has a"
            " non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both limits"
            " must be set to 0.",
        )


def is_conflict(quota: BacklogQuota, retention: RetentionPolicy) -> bool:
    """Whether a backlog quota is not below retention (AdminResource.checkBacklogQuota)."""
    is_larger = retention.megabytes > 0 and quota.limit_bytes >= retention.megabytes * MEGABYTE
    return is_larger or (retention.minutes > 0 and quota.limit_seconds >= retention.minutes * 60)


def check_persistence(body: PersistenceBody) -> None:
    check_sizes(body.bookkeeper_ensemble, body.bookkeeper_write_quorum, body.bookkeeper_ack_quorum)
    if body.managed_ledger_max_mark_delete_rate < 0:
        raise Refusal(412, "managedLedgerMaxMarkDeleteRate: expected 0 or more")


def check_sizes(ensemble: int, writes: int, acks: int) -> None:
    """BookKeeper's order of the three, and Apache's bounds; a namespace's too."""
    for name, size in (("Ensemble", ensemble), ("WriteQuorum", writes), ("AckQuorum", acks)):
        if not 0 < size <= ENSEMBLE_MAX:
            raise Refusal(400, f"Bookkeeper-{name} must be <= {ENSEMBLE_MAX} and > 0.")
    if not ensemble >= writes >= acks:
        raise Refusal(400, f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({writes}) >= AckQuorum ({acks})")


def check_number(reason: str) -> Any:
    """A check of a whole number that must not be negative."""

    def check(number: int) -> None:
        if number < 0:
            raise Refusal(412, reason)

    return check
