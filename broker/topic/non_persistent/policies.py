"""What of a topic's policies holds for one that stores nothing: who may come and how fast they publish, and no more."""

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
    """As those of other topics otherwise."""

    def apply(self, namespace: TopicPolicies, topic: TopicPolicies) -> None:
        super().apply(namespace, topic)
        self.current = replace(self.current, **_NOTHING_STORED)  # type: ignore[arg-type]
