"""Resolution of policies: the topic's own before its namespace's before the broker's settings."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from broker.dispatchers.settings import DispatcherSettings
from broker.policies.defaults import broker_defaults, resolve
from broker.policies.policies import (
    BacklogQuota,
    DispatchRate,
    EffectivePolicies,
    PublishRate,
    QuotaType,
    TopicPolicies,
)
from broker.policies.topic_settings import TopicSettings
from tests.broker.policies.namespace_policies import NAMESPACE

DEFAULTS = broker_defaults(TopicSettings(), DispatcherSettings())


@given(st.sets(st.sampled_from([each.name for each in fields(EffectivePolicies)])), st.booleans())
def test_each_member_is_the_topic_s_then_the_namespace_s_then_the_broker_s(said: set[str], by_topic: bool) -> None:
    said -= {"quotas", "subscription_rates"}
    level = TopicPolicies(**{name: getattr(NAMESPACE, name) for name in said})
    other = TopicPolicies(message_ttl_seconds=99)
    found = resolve(DEFAULTS, other, level) if by_topic else resolve(DEFAULTS, level)
    for name in said:
        expected = getattr(NAMESPACE, name)
        if expected is not None:
            assert getattr(found, name) == expected
    if "message_ttl_seconds" not in said:
        assert found.message_ttl_seconds == (99 if by_topic else DEFAULTS.message_ttl_seconds)


def test_quotas_and_rates_of_subscriptions_hold_one_by_one() -> None:
    size, age = QuotaType.DESTINATION_STORAGE, QuotaType.MESSAGE_AGE
    namespace = TopicPolicies(quotas={size: BacklogQuota(1), age: BacklogQuota(limit_seconds=2)})
    topic = TopicPolicies(
        quotas={age: BacklogQuota(limit_seconds=3)},
        subscription_dispatch_rate=DispatchRate(4),
        subscription_rates={"s": DispatchRate(5)},
    )
    found = resolve(DEFAULTS, namespace, topic)
    assert (found.size_quota.limit_bytes, found.age_quota.limit_seconds) == (1, 3)
    assert (found.dispatch_rate_of("s").messages, found.dispatch_rate_of("t").messages) == (5, 4)


def test_nothing_said_is_the_broker_s_settings() -> None:
    settings = TopicSettings(
        max_producers_per_topic=3, max_publish_rate_per_topic_in_bytes=4, subscription_types_enabled=("Shared",)
    )
    found = resolve(broker_defaults(settings, DispatcherSettings(max_unacked_messages_per_consumer=5)))
    assert (found.max_producers, found.publish_rate, found.max_unacked_per_consumer) == (3, PublishRate(0, 4), 5)
    assert found == replace(found, subscription_types=("Shared",), persistence=None)
