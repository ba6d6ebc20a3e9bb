"""Policies of a topic that stores nothing: limits on clients and on the publish rate, and no others."""

from dataclasses import replace

from ...policies.in_force import PoliciesInForce
from ...policies.policies import BacklogQuota, DispatchRate, QuotaType, SubscribeRate, TopicPolicies

_NOTHING_STORED = {
    "message_ttl_seconds": 0,
    "quotas": {each: BacklogQuota() for each in QuotaType},
    "dispatch_rate": DispatchRate(),
    "subscription_dispatch_rate": DispatchRate(),
    "subscription_rates": {},
    "subscribe_rate": SubscribeRate(),
    "max_unacked_per_consumer": 0,
    "max_unacked_per_subscription": 0,
    "subscription_expiration_minutes": 0,
    "persistence": None,
    "deduplication_enabled": False,
    "delayed_delivery_enabled": False,
}
"""Apache's NonPersistentTopic reads none of these; messages that had to wait for a rate would be lost."""


class PassingPolicies(PoliciesInForce):
    """Policies of a non-persistent topic: those of stored messages have no effect."""

    def apply(self, namespace: TopicPolicies, topic: TopicPolicies) -> None:
        super().apply(namespace, topic)
        self.current = replace(self.current, **_NOTHING_STORED)  # type: ignore[arg-type]
