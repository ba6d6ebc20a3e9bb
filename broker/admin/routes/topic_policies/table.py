"""The policies of topics, declared once each: route, member of the document, body, check, and the value in force when it is not
set.

A policy is enforced, or its `missing` says why it cannot be set: nothing is stored that has no effect. Pure.
(PersistentTopics; the members are TopicPolicies'.)
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ....policies.members import dispatch_rate_json, inactive_json, publish_rate_json, subscribe_rate_json
from ....policies.policies import EffectivePolicies
from ....schema.values import Strategy
from ....service.topic_name import TopicName
from ....service.topic_schemas import TopicSchemas
from .bodies import (
    AutoSubscriptionCreationBody,
    DelayedDeliveryBody,
    DispatchRateBody,
    InactiveBody,
    Int32,
    Int64,
    PersistenceBody,
    PublishRateBody,
    Retention,
    SubscribeRateBody,
    SubscriptionTypeName,
    check_number,
    check_persistence,
    check_retention,
)

Applied = Callable[[EffectivePolicies], Any]
SaidBySchemas = Callable[[TopicSchemas, TopicName], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """`{topic}/{path}`: GET, POST (or `set_method`), DELETE."""

    path: str
    member: str
    name: str
    """Apache's PolicyName, for authorization."""
    body: Any
    applied: Applied
    """The value in force, in JSON; None: no level has one."""
    check: Callable[[Any], None] | None = None
    set_method: str = "POST"
    missing: str = ""
    """Why it cannot be set."""
    unset: Any = None
    """The answer when the topic says nothing; None: 204."""
    namespace_member: str = ""
    """Member of the namespace's document that is in force, where `applied` does not give the value."""
    of_schemas: SaidBySchemas | None = None
    """The value in force, where the schemas decide it rather than the topic."""


def _persistence(policies: EffectivePolicies) -> Any:
    found = policies.persistence
    return found and {
        "bookkeeperEnsemble": found.ensemble_size,
        "bookkeeperWriteQuorum": found.write_quorum,
        "bookkeeperAckQuorum": found.ack_quorum,
        "managedLedgerMaxMarkDeleteRate": found.mark_delete_rate,
    }


def _retention(policies: EffectivePolicies) -> Any:
    found = policies.retention
    return {"retentionTimeInMinutes": found.minutes, "retentionSizeInMB": found.megabytes}


def _delayed_in_force(policies: EffectivePolicies) -> Any:
    return {
        "tickTime": policies.delayed_delivery_tick_ms,
        "active": policies.delayed_delivery_enabled,
        "maxDeliveryDelayInMillis": policies.delayed_delivery_max_delay_ms,
    }


def _types(policies: EffectivePolicies) -> Any:
    return list(policies.subscription_types)


def _always(value: Any) -> Applied:
    return lambda _: value


def _maximum(path: str, member: str, name: str, attribute: str, reason: str = "") -> DeclaredPolicy:
    check = check_number(reason or f"{path} must be 0 or more")
    return DeclaredPolicy(path, member, name, Int32, lambda policies: getattr(policies, attribute), check)


_NO_REPLICATION = "Replication between clusters is not there yet"
_NO_OFFLOAD = "Ledgers are not offloaded yet"
_NO_FILTERS = "Entry filters are classes of Java, which cannot be loaded here"
_NO_PAUSE = "A cursor's state is always stored: there is nothing for a dispatcher to wait for"
_NO_EXPIRATION = "A topic's policies have no place for it: set subscriptionExpirationTime of the namespace"

POLICIES: tuple[DeclaredPolicy, ...] = (
    DeclaredPolicy("retention", "retentionPolicies", "RETENTION", Retention, _retention, check_retention),
    DeclaredPolicy(
        "dispatchRate", "dispatchRate", "RATE", DispatchRateBody, lambda found: dispatch_rate_json(found.dispatch_rate)
    ),
    DeclaredPolicy(
        "subscriptionDispatchRate",
        "subscriptionDispatchRate",
        "RATE",
        DispatchRateBody,
        lambda found: dispatch_rate_json(found.subscription_dispatch_rate),
    ),
    DeclaredPolicy(
        "publishRate",
        "publishRate",
        "RATE",
        PublishRateBody,
        lambda found: publish_rate_json(found.publish_rate) if found.publish_rate.is_limited else None,
    ),
    DeclaredPolicy(
        "subscribeRate", "subscribeRate", "RATE", SubscribeRateBody, lambda found: subscribe_rate_json(found.subscribe_rate)
    ),
    DeclaredPolicy(
        "inactiveTopicPolicies",
        "inactiveTopicPolicies",
        "INACTIVE_TOPIC",
        InactiveBody,
        lambda found: inactive_json(found.inactive),
    ),
    DeclaredPolicy("persistence", "persistence", "PERSISTENCE", PersistenceBody, _persistence, check_persistence),
    DeclaredPolicy(
        "autoSubscriptionCreation",
        "autoSubscriptionCreationOverride",
        "AUTO_SUBSCRIPTION_CREATION",
        AutoSubscriptionCreationBody,
        lambda found: {"allowAutoSubscriptionCreation": found.auto_subscription_creation},
    ),
    DeclaredPolicy(
        "subscriptionTypesEnabled",
        "subscriptionTypesEnabled",
        "SUBSCRIPTION_AUTH_MODE",
        list[SubscriptionTypeName],
        _types,
        unset=[],
    ),
    _maximum("maxProducers", "maxProducerPerTopic", "MAX_PRODUCERS", "max_producers"),
    _maximum("maxConsumers", "maxConsumerPerTopic", "MAX_CONSUMERS", "max_consumers"),
    _maximum(
        "maxConsumersPerSubscription",
        "maxConsumersPerSubscription",
        "MAX_CONSUMERS",
        "max_consumers_per_subscription",
        "Invalid value for maxConsumersPerSubscription",
    ),
    _maximum("maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic", "MAX_SUBSCRIPTIONS", "max_subscriptions"),
    _maximum(
        "maxUnackedMessagesOnConsumer",
        "maxUnackedMessagesOnConsumer",
        "MAX_UNACKED",
        "max_unacked_per_consumer",
        "maxUnackedNum must be 0 or more",
    ),
    _maximum(
        "maxUnackedMessagesOnSubscription",
        "maxUnackedMessagesOnSubscription",
        "MAX_UNACKED",
        "max_unacked_per_subscription",
        "maxUnackedNum must be 0 or more",
    ),
    DeclaredPolicy(
        "deduplicationEnabled",
        "deduplicationEnabled",
        "DEDUPLICATION",
        bool,
        lambda found: found.deduplication_enabled,
    ),
    DeclaredPolicy(
        "deduplicationSnapshotInterval",
        "deduplicationSnapshotIntervalSeconds",
        "DEDUPLICATION_SNAPSHOT",
        Int32,
        _always(None),
        check_number("interval must be 0 or more"),
    ),
    DeclaredPolicy(
        "compactionThreshold",
        "compactionThreshold",
        "COMPACTION",
        Int64,
        lambda found: found.compaction_threshold_bytes,
        check_number("Invalid value for compactionThreshold"),
    ),
    DeclaredPolicy("delayedDelivery", "delayedDeliveryEnabled", "DELAYED_DELIVERY", DelayedDeliveryBody, _delayed_in_force),
    # policies that cannot be set yet; an Apache broker beside ours may have stored them
    DeclaredPolicy(
        "entryFilters", "entryFilters", "ENTRY_FILTERS", dict, _always({"entryFilterNames": ""}), missing=_NO_FILTERS
    ),
    DeclaredPolicy(
        "dispatcherPauseOnAckStatePersistent",
        "dispatcherPauseOnAckStatePersistentEnabled",
        "DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT",
        None,
        _always(False),
        missing=_NO_PAUSE,
        unset=False,
    ),
    DeclaredPolicy("offloadPolicies", "offloadPolicies", "OFFLOAD", dict, _always(None), missing=_NO_OFFLOAD),
    DeclaredPolicy(
        "replication",
        "replicationClusters",
        "REPLICATION",
        list[str],
        _always(None),
        missing=_NO_REPLICATION,
        namespace_member="replication_clusters",
    ),
    DeclaredPolicy(
        "replicatorDispatchRate", "replicatorDispatchRate", "REPLICATION_RATE", dict, _always(None), missing=_NO_REPLICATION
    ),
    DeclaredPolicy(
        "shadowTopics", "shadowTopics", "SHADOW_TOPIC", list[str], _always(None), set_method="PUT", missing=_NO_REPLICATION
    ),
    DeclaredPolicy(
        "schemaCompatibilityStrategy",
        "schemaCompatibilityStrategy",
        "SCHEMA_COMPATIBILITY_STRATEGY",
        Strategy,
        _always(None),
        set_method="PUT",
        of_schemas=TopicSchemas.strategy,
    ),
    DeclaredPolicy(
        "schemaValidationEnforced",
        "schemaValidationEnforced",
        "SCHEMA_COMPATIBILITY_STRATEGY",
        bool,
        _always(None),
        unset=False,
        of_schemas=TopicSchemas.is_enforced,
    ),
    DeclaredPolicy(
        "subscriptionExpirationTime",
        "",
        "SUBSCRIPTION_EXPIRATION_TIME",
        None,
        lambda found: found.subscription_expiration_minutes,
        missing=_NO_EXPIRATION,
    ),
)


def stored(policy: DeclaredPolicy, document: Mapping[str, Any]) -> Any:
    """Returns the topic's own value, as the route answers it; None: it has none."""
    if policy.path == "delayedDelivery":
        return _delayed_delivery(document)
    value = document.get(policy.member)
    return None if value == [] and policy.unset == [] else value


def written(policy: DeclaredPolicy, value: Any) -> dict[str, Any]:
    """The members of the topic's document that say this; None: nothing."""
    if policy.path != "delayedDelivery":
        return {policy.member: value}
    given = value or {}
    return {
        "delayedDeliveryEnabled": given.get("active"),
        "delayedDeliveryTickTimeMillis": given.get("tickTime"),
        "delayedDeliveryMaxDelayInMillis": given.get("maxDeliveryDelayInMillis"),
    }


def _delayed_delivery(document: Mapping[str, Any]) -> Any:
    if document.get("delayedDeliveryEnabled") is None:
        return None
    return {
        "tickTime": document.get("delayedDeliveryTickTimeMillis", 0),
        "active": document["delayedDeliveryEnabled"],
        "maxDeliveryDelayInMillis": document.get("delayedDeliveryMaxDelayInMillis", 0),
    }
