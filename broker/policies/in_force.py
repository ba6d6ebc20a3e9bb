"""The policies of one loaded topic, as they are now. Each decision reads `current` anew, and keeps nothing of it."""

from broker.dispatchers.settings import DispatcherSettings

from .defaults import broker_defaults, resolve
from .policies import NOTHING_SAID, EffectivePolicies, TopicPolicies
from .topic_settings import TopicSettings

_KEPT_MAX = 8


class SharedPolicies:
    """The policies that topics of one broker had lately: topics for which the same holds have one object."""

    def __init__(self) -> None:
        self._kept: list[EffectivePolicies] = []

    def one(self, policies: EffectivePolicies) -> EffectivePolicies:
        """Returns the kept policies that are equal; otherwise keeps these, in the place of the oldest."""
        for kept in self._kept:
            if kept == policies:
                return kept
        self._kept = [policies, *self._kept[: _KEPT_MAX - 1]]
        return policies


class PoliciesInForce:
    """Policies of one topic now: the broker's settings until the namespace's policies are known."""

    def __init__(self, settings: TopicSettings, dispatchers: DispatcherSettings, shared: SharedPolicies) -> None:
        self._settings = settings
        self._dispatchers = dispatchers
        self._shared = shared
        self.current: EffectivePolicies
        self.apply(NOTHING_SAID, NOTHING_SAID)

    def apply(self, namespace: TopicPolicies, topic: TopicPolicies) -> None:
        """Applies these policies from now on, with the broker's settings as they are now."""
        self.current = self._shared.one(resolve(broker_defaults(self._settings, self._dispatchers), namespace, topic))
