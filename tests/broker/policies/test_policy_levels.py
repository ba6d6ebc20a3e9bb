"""Policies in force for a topic out of three levels, and Apache's JSON of two of them."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError
from broker.policies.defaults import broker_defaults, resolve
from broker.policies.documents import from_namespace_document, from_topic_document
from broker.policies.in_force import PoliciesInForce, SharedPolicies
from broker.policies.policies import (
    NOTHING_SAID,
    AutoTopicCreation,
    BacklogQuota,
    DispatchRate,
    EffectivePolicies,
    InactiveMode,
    InactiveTopicPolicy,
    PersistencePolicy,
    PublishRate,
    QuotaPolicy,
    QuotaType,
    RetentionPolicy,
    SubscribeRate,
    TopicPolicies,
)
from broker.policies.topic_settings import TopicSettings

DEFAULTS = broker_defaults(TopicSettings(), DispatcherSettings())

NAMESPACE_DOCUMENT = {
    "message_ttl_in_seconds": 5,
    "retention_policies": {"retentionTimeInMinutes": 3, "retentionSizeInMB": -1},
    "backlog_quota_map": {"message_age": {"limitTime": 7, "policy": "consumer_backlog_eviction"}},
    "publishMaxMessageRate": {"here": {"publishThrottlingRateInMsg": 8}, "there": {"publishThrottlingRateInMsg": 9}},
    "topicDispatchRate": {"here": {"dispatchThrottlingRateInByte": 10, "ratePeriodInSecond": 2}},
    "subscriptionDispatchRate": {"here": {"dispatchThrottlingRateInMsg": 11, "relativeToPublishRate": True}},
    "clusterSubscribeRate": {"here": {"subscribeThrottlingRatePerConsumer": 12, "ratePeriodInSecond": 40}},
    "max_producers_per_topic": 13,
    "max_consumers_per_topic": 14,
    "max_subscriptions_per_topic": 15,
    "max_consumers_per_subscription": 16,
    "max_unacked_messages_per_consumer": 17,
    "max_unacked_messages_per_subscription": 18,
    "subscription_types_enabled": ["Shared", "Key_Shared"],
    "encryption_required": True,
    "autoSubscriptionCreationOverride": {"allowAutoSubscriptionCreation": False},
    "autoTopicCreationOverride": {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 4},
    "inactive_topic_policies": {
        "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
        "maxInactiveDurationSeconds": 19,
        "deleteWhileInactive": True,
    },
    "subscription_expiration_time_minutes": 20,
    "persistence": {
        "bookkeeperEnsemble": 3,
        "bookkeeperWriteQuorum": 2,
        "bookkeeperAckQuorum": 1,
        "managedLedgerMaxMarkDeleteRate": 0.5,
    },
    "max_topics_per_namespace": 21,
}
NAMESPACE = TopicPolicies(
    message_ttl_seconds=5,
    retention=RetentionPolicy(3, -1),
    quotas={QuotaType.MESSAGE_AGE: BacklogQuota(-1, 7, QuotaPolicy.CONSUMER_BACKLOG_EVICTION)},
    publish_rate=PublishRate(8),
    dispatch_rate=DispatchRate(-1, 10, 2),
    subscription_dispatch_rate=DispatchRate(11, is_relative_to_publish_rate=True),
    subscribe_rate=SubscribeRate(12, 40),
    max_producers=13,
    max_consumers=14,
    max_subscriptions=15,
    max_consumers_per_subscription=16,
    max_unacked_per_consumer=17,
    max_unacked_per_subscription=18,
    subscription_types=("Shared", "Key_Shared"),
    encryption_required=True,
    auto_subscription_creation=False,
    auto_topic_creation=AutoTopicCreation(True, 4),
    inactive=InactiveTopicPolicy(True, InactiveMode.CAUGHT_UP, 19),
    subscription_expiration_minutes=20,
    persistence=PersistencePolicy(3, 2, 1, 0.5),
    max_topics=21,
)


def test_a_namespace_s_document_says_what_it_says_for_this_cluster() -> None:
    assert from_namespace_document(NAMESPACE_DOCUMENT, "here") == NAMESPACE
    assert (
        from_namespace_document({"publishMaxMessageRate": {"there": {"publishThrottlingRateInMsg": 9}}}, "here")
        == TopicPolicies()
    )


def test_a_topic_s_document_says_what_it_says() -> None:
    document = {
        "messageTTLInSeconds": 0,
        "backLogQuotaMap": {"destination_storage": {"limit": 6}, "message_age": None},
        "publishRate": {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": 8},
        "dispatchRate": {"dispatchThrottlingRateInMsg": 0, "dispatchThrottlingRateInByte": -1},
        "subscriptionPolicies": {"s": {"dispatchRate": {"dispatchThrottlingRateInMsg": 3}}, "t": {}},
        "subscriptionTypesEnabled": ["Exclusive"],
        "maxMessageSize": 9,
        "maxProducerPerTopic": 0,
        "isGlobal": False,
        "schemaCompatibilityStrategy": None,
    }
    assert from_topic_document(document) == TopicPolicies(
        message_ttl_seconds=0,
        quotas={QuotaType.DESTINATION_STORAGE: BacklogQuota(6)},
        publish_rate=PublishRate(-1, 8),
        subscription_rates={"s": DispatchRate(3)},
        subscription_types=("Exclusive",),
        max_message_size=9,
        max_producers=0,
    )


@pytest.mark.parametrize("document", [{}, dict.fromkeys(NAMESPACE_DOCUMENT)])
def test_members_that_are_missing_or_null_say_nothing(document: dict[str, Any]) -> None:
    assert from_namespace_document(document, "here") == TopicPolicies()


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("message_ttl_in_seconds", "5"),
        ("max_producers_per_topic", True),
        ("publishMaxMessageRate", [1]),
        ("topicDispatchRate", {"here": 3}),
        ("inactive_topic_policies", {"inactiveTopicDeleteMode": "sometimes"}),
        ("subscription_types_enabled", ["Some"]),
        ("autoTopicCreationOverride", {"allowAutoTopicCreation": True, "topicType": "round"}),
        ("persistence", {"managedLedgerMaxMarkDeleteRate": "fast"}),
        ("encryption_required", 1),
    ],
)
def test_a_member_that_cannot_be_read_is_refused(member: str, value: Any) -> None:
    with pytest.raises(BrokerError, match="expected"):
        from_namespace_document({member: value}, "here")


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


def test_topics_for_which_the_same_holds_share_their_policies_until_the_settings_change() -> None:
    settings, shared = TopicSettings(), SharedPolicies()
    one, other = (PoliciesInForce(settings, DispatcherSettings(), shared) for _ in range(2))
    assert one.current is other.current
    other.apply(TopicPolicies(message_ttl_seconds=7), NOTHING_SAID)
    assert (one.current.message_ttl_seconds, other.current.message_ttl_seconds) == (0, 7)
    object.__setattr__(settings, "ttl_duration_default_in_seconds", 9)  # as the broker's dynamic settings do
    one.apply(NOTHING_SAID, NOTHING_SAID)
    assert one.current.message_ttl_seconds == 9
