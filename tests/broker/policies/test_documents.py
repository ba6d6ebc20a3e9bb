"""Apache's JSON of policies."""

from typing import Any

import pytest

from broker.errors import BrokerError
from broker.policies.documents import from_namespace_document, from_topic_document
from broker.policies.policies import (
    BacklogQuota,
    DispatchRate,
    PublishRate,
    QuotaType,
    TopicPolicies,
)
from tests.broker.policies.namespace_policies import NAMESPACE

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
