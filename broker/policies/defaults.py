"""Resolution of policies: a topic's own before its namespace's before the broker's settings, member by member. Pure."""

from dataclasses import fields
from typing import Any

from broker.dispatchers.settings import DispatcherSettings

from .policies import (
    NOTHING_SAID,
    BacklogQuota,
    DispatchRate,
    EffectivePolicies,
    InactiveMode,
    InactiveTopicPolicy,
    PublishRate,
    QuotaPolicy,
    QuotaType,
    RetentionPolicy,
    SubscribeRate,
    TopicPolicies,
)
from .topic_settings import TopicSettings

_MERGED = ("quotas", "subscription_rates")
"""Maps, of which each entry holds by itself."""
_MEMBERS = tuple(each.name for each in fields(EffectivePolicies))


def broker_defaults(settings: TopicSettings, dispatchers: DispatcherSettings) -> EffectivePolicies:
    """Policies where neither a namespace nor a topic sets any."""
    quota = _default_quota(settings)
    return EffectivePolicies(
        message_ttl_seconds=settings.ttl_duration_default_in_seconds,
        retention=RetentionPolicy(settings.default_retention_time_in_minutes, settings.default_retention_size_in_mb),
        quotas=dict.fromkeys(QuotaType, quota),
        publish_rate=PublishRate(settings.max_publish_rate_per_topic_in_messages, settings.max_publish_rate_per_topic_in_bytes),
        dispatch_rate=DispatchRate(
            settings.dispatch_throttling_rate_per_topic_in_msg, settings.dispatch_throttling_rate_per_topic_in_byte
        ),
        subscription_dispatch_rate=DispatchRate(
            settings.dispatch_throttling_rate_per_subscription_in_msg,
            settings.dispatch_throttling_rate_per_subscription_in_byte,
            is_relative_to_publish_rate=settings.dispatch_throttling_rate_relative_to_publish_rate,
        ),
        subscription_rates={},
        subscribe_rate=SubscribeRate(
            settings.subscribe_throttling_rate_per_consumer, settings.subscribe_rate_period_per_consumer_in_second
        ),
        max_producers=settings.max_producers_per_topic,
        max_consumers=settings.max_consumers_per_topic,
        max_subscriptions=settings.max_subscriptions_per_topic,
        max_consumers_per_subscription=settings.max_consumers_per_subscription,
        max_unacked_per_consumer=dispatchers.max_unacked_messages_per_consumer,
        max_unacked_per_subscription=dispatchers.max_unacked_messages_per_subscription,
        max_message_size=0,
        subscription_types=settings.subscription_types_enabled,
        encryption_required=settings.encryption_require_on_producer,
        auto_subscription_creation=settings.allow_auto_subscription_creation,
        inactive=_default_inactive(settings),
        compaction_threshold_bytes=settings.broker_service_compaction_threshold_in_bytes,
        subscription_expiration_minutes=settings.subscription_expiration_time_minutes,
        delayed_delivery_enabled=settings.delayed_delivery_enabled,
        delayed_delivery_tick_ms=settings.delayed_delivery_tick_time_millis,
        delayed_delivery_max_delay_ms=settings.delayed_delivery_max_delay_in_millis,
        persistence=None,
        deduplication_enabled=settings.broker_deduplication_enabled,
        deduplication_snapshot_seconds=settings.broker_deduplication_snapshot_interval_seconds,
    )


def resolve(
    defaults: EffectivePolicies, namespace: TopicPolicies = NOTHING_SAID, topic: TopicPolicies = NOTHING_SAID
) -> EffectivePolicies:
    """Apache's HierarchyTopicPolicies. Returns the defaults themselves where neither level has a value, as for most topics."""
    if topic == NOTHING_SAID and namespace == NOTHING_SAID:
        return defaults
    levels = (topic, namespace, defaults)
    return EffectivePolicies(**{name: _resolved(name, levels) for name in _MEMBERS})


def _resolved(name: str, levels: tuple[TopicPolicies, TopicPolicies, EffectivePolicies]) -> Any:
    values = [getattr(level, name) for level in levels]
    if name in _MERGED:
        return {**values[2], **values[1], **values[0]}
    return next((value for value in values if value is not None), None)


def effective(policies: TopicPolicies, settings: TopicSettings) -> EffectivePolicies:
    """Policies of a namespace whose topics set none, with the dispatchers' default settings."""
    return resolve(broker_defaults(settings, DispatcherSettings()), policies)


def _default_quota(settings: TopicSettings) -> BacklogQuota:
    """BacklogQuotaManager: the limit in GB wins over the one in bytes when it is more than 0."""
    gigabytes = settings.backlog_quota_default_limit_gb
    limit_bytes = int(gigabytes * (1 << 30)) if gigabytes > 0 else settings.backlog_quota_default_limit_bytes
    policy = QuotaPolicy(settings.backlog_quota_default_retention_policy)
    return BacklogQuota(limit_bytes, settings.backlog_quota_default_limit_second, policy)


def _default_inactive(settings: TopicSettings) -> InactiveTopicPolicy:
    """Apache's default duration is the frequency of the check."""
    given = settings.broker_delete_inactive_topics_max_inactive_duration_seconds
    return InactiveTopicPolicy(
        settings.broker_delete_inactive_topics_enabled,
        InactiveMode(settings.broker_delete_inactive_topics_mode),
        settings.broker_delete_inactive_topics_frequency_seconds if given is None else given,
    )
