"""Policies in force, shared by topics for which the same holds."""

from broker.dispatchers.settings import DispatcherSettings
from broker.policies.in_force import PoliciesInForce, SharedPolicies
from broker.policies.policies import (
    NOTHING_SAID,
    TopicPolicies,
)
from broker.policies.topic_settings import TopicSettings


def test_topics_for_which_the_same_holds_share_their_policies_until_the_settings_change() -> None:
    settings, shared = TopicSettings(), SharedPolicies()
    one, other = (PoliciesInForce(settings, DispatcherSettings(), shared) for _ in range(2))
    assert one.current is other.current
    other.apply(TopicPolicies(message_ttl_seconds=7), NOTHING_SAID)
    assert (one.current.message_ttl_seconds, other.current.message_ttl_seconds) == (0, 7)
    object.__setattr__(settings, "ttl_duration_default_in_seconds", 9)  # as the broker's dynamic settings do
    one.apply(NOTHING_SAID, NOTHING_SAID)
    assert one.current.message_ttl_seconds == 9
