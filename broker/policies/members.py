"""Single policies in Apache's JSON: each one's reader and, where routes answer with it, its writer. Pure.

A reader takes the value and the name to call it by when it cannot be read: BrokerError(METADATA).
"""

from collections.abc import Mapping
from typing import Any

from broker.errors import BrokerError, ServerError

from .policies import (
    SUBSCRIPTION_TYPES,
    AutoTopicCreation,
    BacklogQuota,
    DispatchRate,
    InactiveMode,
    InactiveTopicPolicy,
    PersistencePolicy,
    PublishRate,
    QuotaPolicy,
    QuotaType,
    RetentionPolicy,
    SubscribeRate,
)

_STRATEGIES = ("ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
               "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")  # fmt: skip
_OF_AUTO_UPDATE = {
    "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
    "AlwaysCompatible": "ALWAYS_COMPATIBLE",
    "Backward": "BACKWARD",
    "Forward": "FORWARD",
    "Full": "FULL",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}
"""SchemaAutoUpdateCompatibilityStrategy, the older of a namespace's two policies; the newer one is before it."""
_SUBSCRIPTION_TYPES = {name.lower(): name for name in SUBSCRIPTION_TYPES}


def parse_object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _unreadable(name, "an object", value)
    return value


def parse_number(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unreadable(name, "a whole number", value)
    return value


def parse_flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise _unreadable(name, "true or false", value)
    return value


def parse_strategy(value: Any, name: str) -> str | None:
    """SchemaCompatibilityStrategy; None for UNDEFINED."""
    if value in ("", "UNDEFINED"):
        return None
    if value not in _STRATEGIES:
        raise _unreadable(name, f"one of {', '.join(_STRATEGIES)}", value)
    return str(value)


def parse_auto_update_strategy(value: Any, name: str) -> str | None:
    """SchemaAutoUpdateCompatibilityStrategy, as SchemaCompatibilityStrategy; None for one that is not known."""
    return _OF_AUTO_UPDATE.get(str(value))


def parse_retention(value: Any, name: str = "retention_policies") -> RetentionPolicy:
    """Apache's RetentionPolicies; a member that is missing is 0."""
    fields = parse_object(value, name)
    return RetentionPolicy(_number(fields, "retentionTimeInMinutes", 0), _number(fields, "retentionSizeInMB", 0))


def parse_quota(value: Any, name: str = "backlog quota") -> BacklogQuota:
    """Apache's BacklogQuotaImpl, in which `limit` is the older name of `limitSize`. No policy given: producers are held."""
    fields = parse_object(value, name)
    size = _number(fields, "limitSize", _number(fields, "limit", -1))
    policy = fields.get("policy") or QuotaPolicy.PRODUCER_REQUEST_HOLD.value
    if policy not in list(QuotaPolicy):
        raise _unreadable("policy", f"one of {', '.join(QuotaPolicy)}", policy)
    return BacklogQuota(size, _number(fields, "limitTime", -1), QuotaPolicy(policy))


def quota_json(quota: BacklogQuota) -> dict[str, Any]:
    """The quota in JSON, with both names of the size, as Apache writes it."""
    size = quota.limit_bytes
    return {"limit": size, "limitSize": size, "limitTime": quota.limit_seconds, "policy": quota.policy.value}


def parse_quota_type(name: str) -> QuotaType:
    if name not in list(QuotaType):
        raise _unreadable("backlog_quota_map", " or ".join(QuotaType), name)
    return QuotaType(name)


def parse_publish_rate(value: Any, name: str) -> PublishRate:
    fields = parse_object(value, name)
    return PublishRate(_number(fields, "publishThrottlingRateInMsg", -1), _number(fields, "publishThrottlingRateInByte", -1))


def publish_rate_json(rate: PublishRate) -> dict[str, Any]:
    return {"publishThrottlingRateInMsg": rate.messages, "publishThrottlingRateInByte": rate.bytes}


def parse_dispatch_rate(value: Any, name: str) -> DispatchRate:
    """DispatchRateImpl. A period of less than a second is one of a second."""
    fields = parse_object(value, name)
    is_relative = fields.get("relativeToPublishRate")
    return DispatchRate(
        _number(fields, "dispatchThrottlingRateInMsg", -1),
        _number(fields, "dispatchThrottlingRateInByte", -1),
        max(1, _number(fields, "ratePeriodInSecond", 1)),
        is_relative is not None and parse_flag(is_relative, "relativeToPublishRate"),
    )


def dispatch_rate_json(rate: DispatchRate) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": rate.messages,
        "dispatchThrottlingRateInByte": rate.bytes,
        "relativeToPublishRate": rate.is_relative_to_publish_rate,
        "ratePeriodInSecond": rate.period_seconds,
    }


def parse_subscribe_rate(value: Any, name: str) -> SubscribeRate:
    fields = parse_object(value, name)
    return SubscribeRate(_number(fields, "subscribeThrottlingRatePerConsumer", -1), _number(fields, "ratePeriodInSecond", 30))


def subscribe_rate_json(rate: SubscribeRate) -> dict[str, Any]:
    return {"subscribeThrottlingRatePerConsumer": rate.per_consumer, "ratePeriodInSecond": rate.period_seconds}


def parse_inactive(value: Any, name: str = "inactive_topic_policies") -> InactiveTopicPolicy:
    """Apache's InactiveTopicPolicies; without a mode, its first."""
    fields = parse_object(value, name)
    mode = fields.get("inactiveTopicDeleteMode") or InactiveMode.NO_SUBSCRIPTIONS.value
    if mode not in list(InactiveMode):
        raise _unreadable("inactiveTopicDeleteMode", " or ".join(InactiveMode), mode)
    is_deleted = parse_flag(fields.get("deleteWhileInactive", False), "deleteWhileInactive")
    return InactiveTopicPolicy(is_deleted, InactiveMode(mode), _number(fields, "maxInactiveDurationSeconds", 0))


def inactive_json(policy: InactiveTopicPolicy) -> dict[str, Any]:
    return {
        "inactiveTopicDeleteMode": policy.mode.value,
        "maxInactiveDurationSeconds": policy.seconds_min,
        "deleteWhileInactive": policy.is_deleted,
    }


def parse_auto_topic_creation(value: Any, name: str) -> AutoTopicCreation:
    """AutoTopicCreationOverride; a partitioned type wants a number of partitions. Apache stores any where none may be made."""
    fields = parse_object(value, name)
    is_allowed = parse_flag(fields.get("allowAutoTopicCreation", False), "allowAutoTopicCreation")
    topic_type = fields.get("topicType") or "non-partitioned"
    if is_allowed and topic_type not in ("partitioned", "non-partitioned"):
        raise _unreadable("topicType", "partitioned or non-partitioned", topic_type)
    return AutoTopicCreation(
        is_allowed, max(1, _number(fields, "defaultNumPartitions", 1)) if topic_type == "partitioned" else 0
    )


def parse_auto_subscription_creation(value: Any, name: str) -> bool:
    """AutoSubscriptionCreationOverride."""
    return parse_flag(parse_object(value, name).get("allowAutoSubscriptionCreation", False), "allowAutoSubscriptionCreation")


def parse_persistence(value: Any, name: str) -> PersistencePolicy:
    """PersistencePolicies; of the sizes 0 is the broker's."""
    fields = parse_object(value, name)
    rate = fields.get("managedLedgerMaxMarkDeleteRate", 0)
    if not isinstance(rate, (int, float)) or isinstance(rate, bool):
        raise _unreadable("managedLedgerMaxMarkDeleteRate", "a number", rate)
    return PersistencePolicy(
        _number(fields, "bookkeeperEnsemble", 0),
        _number(fields, "bookkeeperWriteQuorum", 0),
        _number(fields, "bookkeeperAckQuorum", 0),
        float(rate),
    )


def parse_subscription_types(value: Any, name: str) -> tuple[str, ...] | None:
    """Names in any case (an enum's constant is `Key_Shared`); none of them says nothing."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _unreadable(name, "a list of names", value)
    unknown = next((each for each in value if each.lower() not in _SUBSCRIPTION_TYPES), None)
    if unknown is not None:
        raise _unreadable(name, f"names out of {', '.join(_SUBSCRIPTION_TYPES.values())}", unknown)
    return tuple(_SUBSCRIPTION_TYPES[each.lower()] for each in value) or None


def _number(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name)
    return default if value is None else parse_number(value, name)


def _unreadable(name: str, expected: str, value: Any) -> BrokerError:
    return BrokerError(ServerError.METADATA, f"{name}: expected {expected}, not {str(value)[:100]!r}")
