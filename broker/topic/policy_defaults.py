"""What holds for a topic: its namespace's policies, and where these say nothing the broker's settings. Pure."""

from .policies import BacklogQuota, EffectivePolicies, QuotaPolicy, QuotaType, RetentionPolicy, TopicPolicies
from .settings import TopicSettings


def default_quota(settings: TopicSettings) -> BacklogQuota:
    """BacklogQuotaManager: the limit in GB wins over the one in bytes when it is more than 0."""
    gigabytes = settings.backlog_quota_default_limit_gb
    limit_bytes = int(gigabytes * (1 << 30)) if gigabytes > 0 else settings.backlog_quota_default_limit_bytes
    policy = QuotaPolicy(settings.backlog_quota_default_retention_policy)
    return BacklogQuota(limit_bytes, settings.backlog_quota_default_limit_second, policy)


def effective(policies: TopicPolicies, settings: TopicSettings) -> EffectivePolicies:
    default, ttl = default_quota(settings), policies.message_ttl_seconds
    return EffectivePolicies(
        settings.ttl_duration_default_in_seconds if ttl is None else ttl,
        policies.retention
        or RetentionPolicy(settings.default_retention_time_in_minutes, settings.default_retention_size_in_mb),
        policies.quotas.get(QuotaType.DESTINATION_STORAGE, default),
        policies.quotas.get(QuotaType.MESSAGE_AGE, default),
    )
