"""The policies of a namespace, one declaration each: route, member of Apache's Policies, its allowed values, the effect of
removal.

A policy of a feature that is not there (`missing`) is refused with 501 unless the value asks for nothing of it: it is never
stored for nothing. Pure; storing is `namespace_policies`', being in force the broker service's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from ....policies.members import parse_quota, quota_json
from ....policies.policies import QuotaType
from ...rest import bodies
from ...rest.answers import BadRequest, Refusal
from ...rest.bodies import Int, Long, Name
from .policy_checks import (
    check_auto_topic,
    check_entry_filters,
    check_persistence,
    check_retention,
    fits_quota,
    non_negative,
)

REPLICATION = "geo-replication is missing"
OFFLOAD = "tiered storage is missing"


@dataclass(frozen=True, slots=True)
class NamespacePolicy:
    """One of them. A value is as in JSON."""

    path: str
    """Below the namespace."""
    policy: str
    """Apache's PolicyName, for the authorizer."""
    member: str
    """Member of Apache's Policies."""
    body: Any
    """Type of the body that sets the policy, as msgspec reads it; None: the route has no body, and sets True."""
    set_by: str = "POST"
    is_removable: bool = True
    """Removed by DELETE; otherwise by a value."""
    is_optional: bool = False
    """An empty body removes it."""
    is_by_cluster: bool = False
    """The member is a map, and the route has this cluster's value."""
    twins: tuple[str, ...] = ()
    """Members that always say the same."""
    default: Any = None
    """Answer of GET when nothing is stored; None: 204."""
    removed: Any = None
    """Value that the removal stores; None: nothing is stored."""
    by_super_user: bool = False
    """Apache lets only a super-user change it."""
    check: Callable[[Any], None] | None = None
    fits: Callable[[Mapping[str, Any], Any], None] | None = None
    """Whether it may stand beside the other policies of the document."""
    missing: str = ""
    """Feature that is not there; empty: the policy is enforced."""
    harmless: tuple[Any, ...] = ()
    """Values that ask for nothing of the missing feature."""

    @property
    def name(self) -> str:
        """The first word of its route."""
        return self.path.partition("/")[0]

    def require(self, value: Any) -> None:
        """Checks that the value is valid, and that the policy is enforced here. Refusal."""
        if self.check is not None:
            self.check(value)
        if self.missing and value is not None and value not in self.harmless:
            raise Refusal(501, f"{self.name} is not supported: {self.missing}")


def _limit(path: str, policy: str, member: str) -> NamespacePolicy:
    return NamespacePolicy(path, policy, member, Int, check=non_negative(f"{path} must be 0 or more"))


def _rate(path: str, policy: str, member: str, body: Any, **others: Any) -> NamespacePolicy:
    return NamespacePolicy(path, policy, member, body, is_by_cluster=True, **others)


SchemaCompatibility = Literal[
    "UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
    "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
]  # fmt: skip
AutoUpdateCompatibility = Literal[
    "AutoUpdateDisabled", "Backward", "Forward", "Full", "AlwaysCompatible",
    "BackwardTransitive", "ForwardTransitive", "FullTransitive",
]  # fmt: skip

POLICIES: tuple[NamespacePolicy, ...] = (
    NamespacePolicy(
        "messageTTL", "TTL", "message_ttl_in_seconds", Int,
        check=non_negative("Invalid value for message TTL, message TTL must >= 0"),
    ),
    NamespacePolicy(
        "retention", "RETENTION", "retention_policies", bodies.RetentionPolicies, check=check_retention, fits=fits_quota
    ),
    NamespacePolicy(
        "subscriptionExpirationTime", "SUBSCRIPTION_EXPIRATION_TIME", "subscription_expiration_time_minutes", Int,
        check=non_negative("Invalid value for subscription expiration time"),
    ),
    NamespacePolicy("persistence", "PERSISTENCE", "persistence", bodies.Persistence, check=check_persistence),
    _rate("publishRate", "RATE", "publishMaxMessageRate", bodies.PublishRate),
    _rate("dispatchRate", "RATE", "topicDispatchRate", bodies.DispatchRate, twins=("clusterDispatchRate",)),
    _rate("subscriptionDispatchRate", "RATE", "subscriptionDispatchRate", bodies.DispatchRate),
    _rate("subscribeRate", "RATE", "clusterSubscribeRate", bodies.SubscribeRate),
    _rate("replicatorDispatchRate", "REPLICATION_RATE", "replicatorDispatchRate", bodies.DispatchRate, missing=REPLICATION),
    _limit("maxProducersPerTopic", "MAX_PRODUCERS", "max_producers_per_topic"),
    _limit("maxConsumersPerTopic", "MAX_CONSUMERS", "max_consumers_per_topic"),
    _limit("maxConsumersPerSubscription", "MAX_CONSUMERS", "max_consumers_per_subscription"),
    _limit("maxSubscriptionsPerTopic", "MAX_SUBSCRIPTIONS", "max_subscriptions_per_topic"),
    _limit("maxTopicsPerNamespace", "MAX_TOPICS", "max_topics_per_namespace"),
    _limit("maxUnackedMessagesPerConsumer", "MAX_UNACKED", "max_unacked_messages_per_consumer"),
    _limit("maxUnackedMessagesPerSubscription", "MAX_UNACKED", "max_unacked_messages_per_subscription"),
    NamespacePolicy(
        "subscriptionTypesEnabled", "SUBSCRIPTION_AUTH_MODE", "subscription_types_enabled", list[bodies.SubscriptionType],
        default=[], removed=[],
    ),
    NamespacePolicy(
        "autoTopicCreation", "AUTO_TOPIC_CREATION", "autoTopicCreationOverride", bodies.AutoTopicCreation,
        check=check_auto_topic,
    ),
    NamespacePolicy(
        "autoSubscriptionCreation", "AUTO_SUBSCRIPTION_CREATION", "autoSubscriptionCreationOverride",
        bodies.AutoSubscriptionCreation,
    ),
    NamespacePolicy("inactiveTopicPolicies", "INACTIVE_TOPIC", "inactive_topic_policies", bodies.InactiveTopics),
    NamespacePolicy("encryptionRequired", "ENCRYPTION", "encryption_required", bool, is_removable=False, default=False),
    NamespacePolicy(
        "delayedDelivery",
        "DELAYED_DELIVERY",
        "delayed_delivery_policies",
        bodies.DelayedDelivery,
        by_super_user=True,
    ),
    NamespacePolicy("deduplication", "DEDUPLICATION", "deduplicationEnabled", bool),
    NamespacePolicy(
        "deduplicationSnapshotInterval", "DEDUPLICATION_SNAPSHOT", "deduplicationSnapshotIntervalSeconds", Int | None,
        is_removable=False, is_optional=True, check=non_negative("interval must be greater than or equal to 0"),
    ),
    NamespacePolicy(
        "compactionThreshold", "COMPACTION", "compaction_threshold", Long, set_by="PUT",
        check=non_negative("compactionThreshold must be 0 or more"),
    ),
    NamespacePolicy(
        "offloadThreshold", "OFFLOAD", "offload_threshold", Long, set_by="PUT", is_removable=False, default=-1,
        missing=OFFLOAD, harmless=(-1, 0),  # Go's admin package creates namespaces with 0, and there is nothing to offload to
    ),
    NamespacePolicy(
        "offloadThresholdInSeconds", "OFFLOAD", "offload_threshold_in_seconds", Long, set_by="PUT", is_removable=False,
        default=-1, missing=OFFLOAD, harmless=(-1,),
    ),
    NamespacePolicy("offloadDeletionLagMs", "OFFLOAD", "offload_deletion_lag_ms", Long, set_by="PUT", missing=OFFLOAD),
    NamespacePolicy("offloadPolicies", "OFFLOAD", "offload_policies", dict[str, Any], is_removable=False, missing=OFFLOAD),
    NamespacePolicy(
        "schemaCompatibilityStrategy", "SCHEMA_COMPATIBILITY_STRATEGY", "schema_compatibility_strategy", SchemaCompatibility,
        set_by="PUT", is_removable=False, default="UNDEFINED",
    ),
    NamespacePolicy(
        "schemaAutoUpdateCompatibilityStrategy", "SCHEMA_COMPATIBILITY_STRATEGY", "schema_auto_update_compatibility_strategy",
        AutoUpdateCompatibility, set_by="PUT", is_removable=False,
    ),
    NamespacePolicy(
        "isAllowAutoUpdateSchema", "SCHEMA_COMPATIBILITY_STRATEGY", "is_allow_auto_update_schema", bool, is_removable=False,
        default=True,
    ),
    NamespacePolicy(
        "schemaValidationEnforced", "SCHEMA_COMPATIBILITY_STRATEGY", "schema_validation_enforced", bool, is_removable=False,
        default=False,
    ),
    NamespacePolicy(
        "subscriptionAuthMode", "SUBSCRIPTION_AUTH_MODE", "subscription_auth_mode", Literal["None", "Prefix"],
        is_removable=False, default="None",
    ),
    NamespacePolicy("entryFilters", "ENTRY_FILTERS", "entryFilters", bodies.EntryFilters, check=check_entry_filters),
    NamespacePolicy(  # in force always: acknowledgements of any number are stored, so that no dispatcher has to pause
        "dispatcherPauseOnAckStatePersistent", "DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT",
        "dispatcherPauseOnAckStatePersistentEnabled", None, default=False, removed=False,
    ),
    NamespacePolicy(
        "resourcegroup/{resourcegroup}", "RESOURCEGROUP", "resource_group_name", Name, missing="resource groups are missing",
    ),
)  # fmt: skip

_BY_MEMBER: Mapping[str, NamespacePolicy] = {member: each for each in POLICIES for member in (each.member, *each.twins)}


def check_document(given: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """The policies with which a namespace is made: each as if it were set by itself. Refusal."""
    found: dict[str, Any] = {}
    for member, value in given.items():
        policy = _BY_MEMBER.get(member)
        if policy is not None and value is not None:
            found[member] = _of_each_cluster(policy, value) if policy.is_by_cluster else _checked(policy, value)
    quotas = _converted("backlog_quota_map", given.get("backlog_quota_map") or {}, dict[QuotaType, bodies.BacklogQuota])
    found["backlog_quota_map"] = {kind: stored_quota(quota) for kind, quota in quotas.items()}
    for policy in POLICIES:
        if policy.fits is not None and policy.member in found:
            policy.fits(found, found[policy.member])
    return found


def stored_quota(quota: Mapping[str, Any]) -> dict[str, Any]:
    """A BacklogQuota as Apache stores it, with both names of the size."""
    return quota_json(parse_quota(quota))


def _of_each_cluster(policy: NamespacePolicy, value: Any) -> dict[str, Any]:
    rates = _converted(policy.member, value, dict[str, Any])
    return {name: _checked(policy, rate) for name, rate in rates.items()}


def _checked(policy: NamespacePolicy, value: Any) -> Any:
    found = _converted(policy.member, value, policy.body or bool)
    policy.require(found)
    return found


def _converted(member: str, value: Any, kind: Any) -> Any:
    try:
        return bodies.plain(msgspec.convert(value, kind, strict=False))
    except msgspec.ValidationError as error:
        raise BadRequest(f"{member}: {error}") from error
