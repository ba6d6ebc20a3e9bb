"""Settings of topics, under Apache's key names. Pure data."""

from dataclasses import dataclass

from .contract import SubscriptionType

SUBSCRIPTION_TYPE_NAMES = {
    SubscriptionType.EXCLUSIVE: "Exclusive",
    SubscriptionType.SHARED: "Shared",
    SubscriptionType.FAILOVER: "Failover",
    SubscriptionType.KEY_SHARED: "Key_Shared",
}


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Defaults are Apache's; a maximum of 0 means no limit."""

    max_producers_per_topic: int = 0
    max_same_address_producers_per_topic: int = 0
    max_subscriptions_per_topic: int = 0
    max_consumers_per_topic: int = 0
    max_same_address_consumers_per_topic: int = 0
    max_consumers_per_subscription: int = 0
    encryption_require_on_producer: bool = False
    allow_auto_subscription_creation: bool = True
    subscription_types_enabled: tuple[str, ...] = tuple(SUBSCRIPTION_TYPE_NAMES.values())
    acknowledgment_at_batch_index_level_enabled: bool = True
    stats_update_frequency_in_secs: int = 60

    def __post_init__(self) -> None:
        names = SUBSCRIPTION_TYPE_NAMES.values()
        unknown = [name for name in self.subscription_types_enabled if name not in names]
        if unknown:
            raise ValueError(f"subscriptionTypesEnabled: {unknown[0]} is none of {', '.join(names)}")
        if self.stats_update_frequency_in_secs < 1:
            raise ValueError("statsUpdateFrequencyInSecs must be at least 1")
