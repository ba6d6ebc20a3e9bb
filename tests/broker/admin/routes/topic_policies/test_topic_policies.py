"""Routes of topic policies, as an Apache Pulsar 4.0.8 answers them. Other tests prove the effects of policies on topics."""

from typing import Any

import pytest

from broker.service.policies.change_events import NO_TOPIC_POLICIES
from broker.service.settings import BrokerSettings
from broker.service.topic_name import NamespaceName
from tests.broker.admin.admin_world import NAME, TOPICS, AdminWorld, play

RATE = {
    "dispatchThrottlingRateInMsg": 10,
    "dispatchThrottlingRateInByte": 1000,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}
SET: list[tuple[str, Any, Any]] = [
    (
        "retention",
        {"retentionTimeInMinutes": 60, "retentionSizeInMB": 20000},
        {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0},
    ),
    ("dispatchRate", RATE, RATE | {"dispatchThrottlingRateInMsg": 0, "dispatchThrottlingRateInByte": 0}),
    ("subscriptionDispatchRate", RATE, RATE | {"dispatchThrottlingRateInMsg": 0, "dispatchThrottlingRateInByte": 0}),
    ("sub1/dispatchRate", RATE, RATE | {"dispatchThrottlingRateInMsg": 0, "dispatchThrottlingRateInByte": 0}),
    ("publishRate", {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": 50}, None),
    (
        "subscribeRate",
        {"subscribeThrottlingRatePerConsumer": 5, "ratePeriodInSecond": 10},
        {"subscribeThrottlingRatePerConsumer": 0, "ratePeriodInSecond": 30},
    ),
    (
        "inactiveTopicPolicies",
        {
            "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
            "maxInactiveDurationSeconds": 100,
            "deleteWhileInactive": True,
        },
        {
            "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
            "maxInactiveDurationSeconds": 60,
            "deleteWhileInactive": True,
        },
    ),
    (
        "persistence",
        {
            "bookkeeperEnsemble": 1,
            "bookkeeperWriteQuorum": 1,
            "bookkeeperAckQuorum": 1,
            "managedLedgerMaxMarkDeleteRate": 1.0,
        },
        None,
    ),
    ("autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False}, {"allowAutoSubscriptionCreation": True}),
    ("maxProducers", 3, 0),
    ("maxConsumers", 3, 0),
    ("maxConsumersPerSubscription", 3, 0),
    ("maxSubscriptionsPerTopic", 3, 0),
    ("maxUnackedMessagesOnConsumer", 3, 50000),
    ("maxUnackedMessagesOnSubscription", 3, 200000),
    ("maxMessageSize", 1000, None),
    ("deduplicationEnabled", True, False),
]


async def value(world: AdminWorld, path: str) -> Any:
    answer = await world.topic("GET", path)
    assert answer.status in (200, 204)
    return None if answer.status == 204 else answer.json


@pytest.mark.parametrize(("path", "given", "default"), SET, ids=[path for path, *_ in SET])
def test_a_policy_is_unset_then_what_was_set_then_unset_again(path: str, given: Any, default: Any) -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        assert await value(world, f"t/{path}") is None
        assert await value(world, f"t/{path}?applied=true") == default
        await world.done("POST", f"t/{path}", given)
        assert await value(world, f"t/{path}") == given
        assert await value(world, f"t/{path}?applied=true") == given
        assert await value(world, f"t/{path}?isGlobal=true") is None
        await world.done("POST", f"t/{path}?isGlobal=true", given)
        await world.done("DELETE", f"t/{path}")
        assert await value(world, f"t/{path}") is None
        assert await value(world, f"t/{path}?isGlobal=true") == given
        await world.done("DELETE", "t/policies")
        assert await value(world, f"t/{path}?isGlobal=true") is None

    play(scenario)


def test_time_to_live_types_and_quotas_have_forms_of_their_own() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        await world.done("POST", "t/messageTTL?messageTTL=30")
        assert await value(world, "t/messageTTL") == 30
        await world.done("DELETE", "t/messageTTL")
        assert await value(world, "t/messageTTL?applied=true") == 0
        assert await value(world, "t/subscriptionTypesEnabled") == []
        await world.done("POST", "t/subscriptionTypesEnabled", ["Shared", "Exclusive"])
        assert await value(world, "t/subscriptionTypesEnabled") == ["Shared", "Exclusive"]
        await world.done("DELETE", "t/subscriptionTypesEnabled")
        assert await value(world, "t/subscriptionTypesEnabled") == []
        quota = {"limit": 1000, "limitSize": 1000, "limitTime": 50, "policy": "producer_exception"}
        assert await value(world, "t/backlogQuotaMap") == {}
        assert sorted(await value(world, "t/backlogQuotaMap?applied=true")) == ["destination_storage", "message_age"]
        await world.done("POST", "t/backlogQuota", {"limitSize": 1000, "limitTime": 50, "policy": "producer_exception"})
        age = {"limitSize": -1, "limitTime": 20, "policy": "consumer_backlog_eviction"}
        await world.done("POST", "t/backlogQuota?backlogQuotaType=message_age", age)
        assert await value(world, "t/backlogQuotaMap") == {"destination_storage": quota, "message_age": {"limit": -1} | age}
        await world.done("DELETE", "t/backlogQuota?backlogQuotaType=message_age")
        assert await value(world, "t/backlogQuotaMap") == {"destination_storage": quota}

    play(scenario)


def test_reading_the_quotas_that_hold_for_a_topic_changes_none_of_its_namespace() -> None:
    async def scenario(world: AdminWorld) -> None:
        namespace = "/admin/v2/namespaces/public/default"
        await world.done("PUT", "t")
        before = await value(world, "t/backlogQuotaMap?applied=true")
        age = {"limitSize": -1, "limitTime": 20, "policy": "consumer_backlog_eviction"}
        query = "backlogQuota?backlogQuotaType=message_age"
        assert (await world.call("POST", f"{namespace}/{query}", age)).status == 204
        assert (await world.call("DELETE", f"{namespace}/{query}")).status == 204
        assert (await world.get(f"{namespace}/backlogQuotaMap")).json == {}
        assert await value(world, "t/backlogQuotaMap?applied=true") == before

    play(scenario)


BAD: list[tuple[str, Any, int, str]] = [
    ("maxConsumers", -1, 412, "maxConsumers must be 0 or more"),
    ("maxConsumers", "x", 400, "the body cannot be read: Expected `int`, got `str`"),
    ("maxConsumers", None, 400, "a body in JSON is missing"),
    ("maxProducers", 1 << 40, 400, "the body cannot be read: Expected `int` <= 2147483647"),
    ("maxConsumersPerSubscription", -3, 412, "Invalid value for maxConsumersPerSubscription"),
    ("maxUnackedMessagesOnConsumer", -1, 412, "maxUnackedNum must be 0 or more"),
    (
        "retention",
        {"retentionTimeInMinutes": -3, "retentionSizeInMB": 3},
        400,
        "Invalid retention policy: time limit must be >= -1",
    ),
    ("retention", 7, 400, "the body cannot be read: Expected `object | null`, got `int`"),
    ("messageTTL?messageTTL=-5", None, 412, "Invalid value for message TTL"),
    ("messageTTL?messageTTL=x", None, 400, "messageTTL: expected a whole number, not x"),
    (
        "persistence",
        {"bookkeeperEnsemble": 6, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 2},
        400,
        "Bookkeeper-Ensemble must be <= 5 and > 0.",
    ),
    (
        "persistence",
        {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 1},
        400,
        "Bookkeeper Ensemble (1) >= WriteQuorum (2) >= AckQuorum (1)",
    ),
    (
        "backlogQuota?backlogQuotaType=foo",
        {"limitSize": 1},
        400,
        "backlogQuotaType: expected destination_storage, message_age, not foo",
    ),
    ("compactionThreshold", -5, 412, "Invalid value for compactionThreshold"),
    ("deduplicationEnabled", "x", 400, "the body cannot be read: Expected `bool`, got `str`"),
    ("deduplicationSnapshotInterval", -1, 412, "interval must be 0 or more"),
]


@pytest.mark.parametrize(("path", "body", "status", "reason"), BAD)
def test_an_invalid_topic_policy_is_refused_with_the_reason(path: str, body: Any, status: int, reason: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        answer = await world.topic("POST", f"t/{path}", body)
        assert answer.refused == (status, reason)

    play(scenario)


def test_a_topic_that_is_not_there_and_a_partition_have_no_policies() -> None:
    async def scenario(world: AdminWorld) -> None:
        for method, body in (("GET", None), ("POST", 3), ("DELETE", None)):
            answer = await world.topic(method, "t/maxProducers", body)
            assert answer.refused == (404, f"Topic {NAME}/t not found")
        assert (await world.call("GET", TOPICS.replace("default", "none") + "/t/retention")).refused == (
            404,
            "Namespace not found",
        )
        await world.done("PUT", "p/partitions", 2)
        await world.done("POST", "p/maxProducers", 3)
        assert await value(world, "p/maxProducers") == 3
        answer = await world.topic("GET", "p-partition-0/maxProducers")
        assert answer.refused == (412, "Not allowed to set/get topic policy for a partition")

    play(scenario)


def test_a_backlog_must_not_grow_as_large_as_what_is_retained() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        await world.done("POST", "t/backlogQuota", {"limitSize": 5 << 20, "limitTime": -1, "policy": "producer_exception"})
        answer = await world.topic("POST", "t/retention", {"retentionTimeInMinutes": 1, "retentionSizeInMB": 5})
        assert answer.status == 412
        await world.done("POST", "t/retention", {"retentionTimeInMinutes": 1, "retentionSizeInMB": 6})

    play(scenario)


def test_a_backlog_must_not_grow_as_old_as_what_is_retained() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        await world.done("POST", "t/retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": 10})
        for seconds, status in ((601, 412), (600, 412), (599, 204)):
            body = {"limitTime": seconds, "policy": "consumer_backlog_eviction"}
            assert (await world.topic("POST", "t/backlogQuota?backlogQuotaType=message_age", body)).status == status, seconds

    play(scenario)


def test_schema_policies_are_the_namespaces_until_the_topic_has_its_own() -> None:
    async def scenario(world: AdminWorld) -> None:
        namespace, strategy = "/admin/v2/namespaces/public/default", "schemaCompatibilityStrategy"
        await world.done("PUT", "t")
        assert await value(world, f"t/{strategy}?applied=true") == "FULL"
        assert await value(world, "t/schemaValidationEnforced?applied=true") is False
        assert (await world.call("PUT", f"{namespace}/{strategy}", "BACKWARD")).status == 204
        assert (await world.call("POST", f"{namespace}/schemaValidationEnforced", True)).status == 204
        assert await value(world, f"t/{strategy}") is None
        assert await value(world, f"t/{strategy}?applied=true") == "BACKWARD"
        assert await value(world, "t/schemaValidationEnforced?applied=true") is True
        await world.done("PUT", f"t/{strategy}", "FORWARD")
        assert await value(world, f"t/{strategy}?applied=true") == "FORWARD"

    play(scenario)


@pytest.mark.parametrize("off", [{"topic_level_policies_enabled": False}, {"system_topic_enabled": False}])
def test_disabled_topic_policies_refuse_all_their_routes_and_topics_do_without(off: dict[str, bool]) -> None:
    """405 with Apache's words, which Terraform's provider looks for."""
    settings = BrokerSettings(**off)  # type: ignore[arg-type]  # of one type both

    async def scenario(world: AdminWorld) -> None:
        await world.loaded(f"{NAME}/t")
        for path, body, _ in SET:
            for method in ("GET", "POST", "DELETE"):
                answer = await world.call(method, f"{TOPICS}/t/{path}", body if method == "POST" else None)
                assert answer.refused == (405, NO_TOPIC_POLICIES), (method, path)
        assert (await world.call("GET", f"{TOPICS}/t/backlogQuotaMap")).refused == (405, NO_TOPIC_POLICIES)
        assert (await world.call("DELETE", f"{TOPICS}/t")).status == 204
        assert await world.service.catalogue.list_topics(NamespaceName("public", "default"), system_topics=True) == []

    play(scenario, settings)
