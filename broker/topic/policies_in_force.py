"""The policies of one loaded topic, as they are now. Whoever decides by them reads `current` then, and keeps nothing of it."""

from broker.subscription.settings import DispatcherSettings

from .policies import NOTHING_SAID, EffectivePolicies, TopicPolicies
from .policy_defaults import broker_defaults, resolve
from .settings import TopicSettings


class PoliciesInForce:
    """By the broker's settings until the namespace's policies are known."""

    def __init__(self, settings: TopicSettings, dispatchers: DispatcherSettings) -> None:
        self._settings = settings
        self._dispatchers = dispatchers
        self.current: EffectivePolicies
        self.apply(NOTHING_SAID, NOTHING_SAID)

    def apply(self, namespace: TopicPolicies, topic: TopicPolicies) -> None:
        """From now on, with the broker's settings as they are now."""
        self.current = resolve(broker_defaults(self._settings, self._dispatchers), namespace, topic)
