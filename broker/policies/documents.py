"""Apache's JSON of policies as values, and back: a namespace's (Policies) and a topic's own (TopicPolicies). Pure.

The enforced members of both are known here; others are left to the store of the document. An unreadable member is a
BrokerError(METADATA) that names it. A rate without a positive limit counts as none (DispatchRateImpl.normalize,
PublishRate.normalize, SubscribeRate.normalize).
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .members import (
    parse_auto_subscription_creation,
    parse_auto_topic_creation,
    parse_auto_update_strategy,
    parse_dispatch_rate,
    parse_flag,
    parse_inactive,
    parse_number,
    parse_object,
    parse_persistence,
    parse_publish_rate,
    parse_quota,
    parse_quota_type,
    parse_retention,
    parse_strategy,
    parse_subscribe_rate,
    parse_subscription_types,
)
from .policies import BacklogQuota, DispatchRate, PublishRate, QuotaType, SubscribeRate, TopicPolicies

T = TypeVar("T")
Rate = TypeVar("Rate", PublishRate, DispatchRate, SubscribeRate)


class _Document:
    """A JSON object whose members may be missing or null."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = members

    def get(self, name: str, parse: Callable[[Any, str], T]) -> T | None:
        value = self._members.get(name)
        return None if value is None else parse(value, name)

    def rate(self, name: str, parse: Callable[[Any, str], Rate]) -> Rate | None:
        rate = self.get(name, parse)
        return rate if rate is not None and rate.is_limited else None

    def rate_of(self, name: str, cluster: str, parse: Callable[[Any, str], Rate]) -> Rate | None:
        """Namespaces have one for each cluster."""
        return _Document(parse_object(self._members.get(name) or {}, name)).rate(cluster, parse)

    def items(self, name: str) -> Mapping[str, Any]:
        return parse_object(self._members.get(name) or {}, name)


def from_namespace_document(document: Mapping[str, Any], cluster: str) -> TopicPolicies:
    """Reads a document of /admin/policies/{tenant}/{namespace}, for a broker of this cluster."""
    given = _Document(document)
    return TopicPolicies(
        message_ttl_seconds=given.get("message_ttl_in_seconds", parse_number),
        retention=given.get("retention_policies", parse_retention),
        quotas=_quotas(given.items("backlog_quota_map")),
        publish_rate=given.rate_of("publishMaxMessageRate", cluster, parse_publish_rate),
        dispatch_rate=given.rate_of("topicDispatchRate", cluster, parse_dispatch_rate),
        subscription_dispatch_rate=given.rate_of("subscriptionDispatchRate", cluster, parse_dispatch_rate),
        subscribe_rate=given.rate_of("clusterSubscribeRate", cluster, parse_subscribe_rate),
        max_producers=given.get("max_producers_per_topic", parse_number),
        max_consumers=given.get("max_consumers_per_topic", parse_number),
        max_subscriptions=given.get("max_subscriptions_per_topic", parse_number),
        max_consumers_per_subscription=given.get("max_consumers_per_subscription", parse_number),
        max_unacked_per_consumer=given.get("max_unacked_messages_per_consumer", parse_number),
        max_unacked_per_subscription=given.get("max_unacked_messages_per_subscription", parse_number),
        subscription_types=given.get("subscription_types_enabled", parse_subscription_types),
        encryption_required=given.get("encryption_required", parse_flag) or None,
        auto_subscription_creation=given.get("autoSubscriptionCreationOverride", parse_auto_subscription_creation),
        inactive=given.get("inactive_topic_policies", parse_inactive),
        compaction_threshold_bytes=given.get("compaction_threshold", parse_number),
        subscription_expiration_minutes=given.get("subscription_expiration_time_minutes", parse_number),
        persistence=given.get("persistence", parse_persistence),
        deduplication_enabled=given.get("deduplicationEnabled", parse_flag),
        deduplication_snapshot_seconds=given.get("deduplicationSnapshotIntervalSeconds", parse_number),
        **_delayed_delivery(given.items("delayed_delivery_policies"), "active", "tickTime", "maxDeliveryDelayInMillis"),
        auto_topic_creation=given.get("autoTopicCreationOverride", parse_auto_topic_creation),
        max_topics=given.get("max_topics_per_namespace", parse_number),
        schema_compatibility=given.get("schema_compatibility_strategy", parse_strategy)
        or given.get("schema_auto_update_compatibility_strategy", parse_auto_update_strategy),
        schema_validation_enforced=given.get("schema_validation_enforced", parse_flag) or None,
        auto_update_schema=given.get("is_allow_auto_update_schema", parse_flag),
    )


def from_topic_document(document: Mapping[str, Any]) -> TopicPolicies:
    """Reads a PulsarEvent's topicPoliciesEvent.policies."""
    given = _Document(document)
    return TopicPolicies(
        message_ttl_seconds=given.get("messageTTLInSeconds", parse_number),
        retention=given.get("retentionPolicies", parse_retention),
        quotas=_quotas(given.items("backLogQuotaMap")),
        publish_rate=given.rate("publishRate", parse_publish_rate),
        dispatch_rate=given.rate("dispatchRate", parse_dispatch_rate),
        subscription_dispatch_rate=given.rate("subscriptionDispatchRate", parse_dispatch_rate),
        subscription_rates=_subscription_rates(given.items("subscriptionPolicies")),
        subscribe_rate=given.rate("subscribeRate", parse_subscribe_rate),
        max_producers=given.get("maxProducerPerTopic", parse_number),
        max_consumers=given.get("maxConsumerPerTopic", parse_number),
        max_subscriptions=given.get("maxSubscriptionsPerTopic", parse_number),
        max_consumers_per_subscription=given.get("maxConsumersPerSubscription", parse_number),
        max_unacked_per_consumer=given.get("maxUnackedMessagesOnConsumer", parse_number),
        max_unacked_per_subscription=given.get("maxUnackedMessagesOnSubscription", parse_number),
        max_message_size=given.get("maxMessageSize", parse_number),
        compaction_threshold_bytes=given.get("compactionThreshold", parse_number),
        schema_compatibility=given.get("schemaCompatibilityStrategy", parse_strategy),
        schema_validation_enforced=given.get("schemaValidationEnforced", parse_flag) or None,
        **_delayed_delivery(
            document, "delayedDeliveryEnabled", "delayedDeliveryTickTimeMillis", "delayedDeliveryMaxDelayInMillis"
        ),
        subscription_types=given.get("subscriptionTypesEnabled", parse_subscription_types),
        auto_subscription_creation=given.get("autoSubscriptionCreationOverride", parse_auto_subscription_creation),
        inactive=given.get("inactiveTopicPolicies", parse_inactive),
        persistence=given.get("persistence", parse_persistence),
        deduplication_enabled=given.get("deduplicationEnabled", parse_flag),
        deduplication_snapshot_seconds=given.get("deduplicationSnapshotIntervalSeconds", parse_number),
    )


def _quotas(given: Mapping[str, Any]) -> dict[QuotaType, BacklogQuota]:
    return {parse_quota_type(name): parse_quota(quota, name) for name, quota in given.items() if quota is not None}


def _delayed_delivery(document: Mapping[str, Any], enabled: str, tick: str, max_delay: str) -> dict[str, Any]:
    """A tick of 0 says nothing: there is none so short."""
    given = _Document(document)
    tick_ms = given.get(tick, parse_number)
    return {
        "delayed_delivery_enabled": given.get(enabled, parse_flag),
        "delayed_delivery_tick_ms": tick_ms if tick_ms is not None and tick_ms > 0 else None,
        "delayed_delivery_max_delay_ms": given.get(max_delay, parse_number),
    }


def _subscription_rates(given: Mapping[str, Any]) -> dict[str, DispatchRate]:
    """SubscriptionPolicies, by the name of the subscription."""
    policies = {name: _Document(parse_object(value, name)) for name, value in given.items()}
    rates = {name: each.rate("dispatchRate", parse_dispatch_rate) for name, each in policies.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}
