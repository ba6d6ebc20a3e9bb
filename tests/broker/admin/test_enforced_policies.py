"""A policy that is set is enforced: over REST, of a namespace and of a topic, on a topic in use, until it is taken back."""

from collections.abc import Mapping
from typing import Any

import pytest

from broker.admin.routes.namespaces.policy_table import POLICIES as OF_NAMESPACES
from broker.admin.routes.topic_policies.table import POLICIES as OF_TOPICS
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.admin.enforced_policies import ENFORCED, Enforced, goes_when_nobody_is_there
from tests.broker.admin.proofs import is_there
from tests.broker.admin.route_world import prepare

NAMESPACE, TOPIC = "/admin/v2/namespaces/public/default", "/admin/v2/persistent/public/default/t"
PASSED = TOPIC.replace("persistent", "non-persistent")
_SNAPSHOTS = "broker/topic/publish/test_deduplication_driver.py::test_snapshots_are_taken_by_time_where_the_policies_say_so"
SHOWN_ELSEWHERE: Mapping[str, str] = {
    "deduplicationSnapshotInterval": _SNAPSHOTS,
    "subscriptionExpirationTime": "broker/topic/limits/test_subscribe_limiter.py::"
    "test_a_subscription_that_nobody_uses_expires_and_one_that_somebody_uses_does_not",
    "subscriptionAuthMode": "broker/connection/access/test_guard.py::test_a_consumer_that_is_denied_leaves_nothing_behind",
    "schemaAutoUpdateCompatibilityStrategy": "broker/service/test_topic_schemas.py::"
    "test_the_older_policy_of_a_namespace_holds_where_the_newer_says_nothing",
    "entryFilters": "broker/admin/rest/test_bad_input.py::test_no_route_falls_over_a_body",
    "dispatcherPauseOnAckStatePersistent": "broker/topic/test_acknowledging.py::"
    "test_a_consumer_at_its_limit_of_unacked_messages_gets_more_after_acknowledging",
}
LEVELS = [(each, level) for each in ENFORCED for level in ("namespace", "topic") if each.of_namespace and level == "namespace"]
LEVELS += [(each, "topic") for each in ENFORCED if each.of_topic]


async def say(world: AdminWorld, base: str, path: str, policy: Enforced, *, is_of_topic: bool) -> None:
    set_by = "POST" if is_of_topic and policy.set_by == "PUT" and "compaction" in path else policy.set_by
    answer = await world.call(set_by, f"{base}/{path}", policy.body)
    assert answer.status == 204, answer.body


async def take_back(world: AdminWorld, base: str, path: str, policy: Enforced, *, is_of_topic: bool) -> None:
    if policy.neutral is None or (is_of_topic and "Validation" not in path):
        answer = await world.call("DELETE", f"{base}/{path}")
    else:
        answer = await world.call(policy.set_by, f"{base}/{path}", policy.neutral)
    assert answer.status == 204, answer.body


@pytest.mark.parametrize(("policy", "level"), LEVELS, ids=[f"{each.name} of the {level}" for each, level in LEVELS])
def test_a_policy_is_in_force_from_when_it_is_set_until_it_is_removed(policy: Enforced, level: str) -> None:
    is_of_topic = level == "topic"
    base, path = (TOPIC, policy.of_topic) if is_of_topic else (NAMESPACE, policy.of_namespace)

    async def scenario(world: AdminWorld) -> None:
        await prepare(world)
        topic: Any = await world.loaded(f"{NAME}/t")
        assert not await policy.is_in_force(world, topic), "before"
        await say(world, base, path, policy, is_of_topic=is_of_topic)
        assert await policy.is_in_force(world, topic), "set"
        await take_back(world, base, path, policy, is_of_topic=is_of_topic)
        assert not await policy.is_in_force(world, topic), "removed"

    play(scenario)


WITHOUT_STORAGE = (
    "publishRate", "maxProducers", "maxConsumers", "maxConsumersPerSubscription", "maxSubscriptionsPerTopic", "maxMessageSize",
    "subscriptionTypesEnabled", "schemaCompatibilityStrategy", "schemaValidationEnforced",
)  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_STORAGE)
def test_a_topic_that_stores_nothing_obeys_what_may_be_set_of_it(name: str) -> None:
    policy = next(each for each in ENFORCED if each.of_topic == name)

    async def scenario(world: AdminWorld) -> None:
        topic: Any = await world.loaded(f"non-{NAME}/t")
        assert not await policy.is_in_force(world, topic), "before"
        await say(world, PASSED, policy.of_topic, policy, is_of_topic=True)
        assert await policy.is_in_force(world, topic), "set"
        await take_back(world, PASSED, policy.of_topic, policy, is_of_topic=True)
        assert not await policy.is_in_force(world, topic), "removed"

    play(scenario)


def test_a_topic_that_stores_nothing_is_deleted_as_soon_as_it_says() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic: Any = await world.loaded(f"non-{NAME}/t")
        assert not await goes_when_nobody_is_there(world, topic)
        body = {
            "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
            "maxInactiveDurationSeconds": 1,
            "deleteWhileInactive": True,
        }
        assert (await world.call("POST", f"{PASSED}/inactiveTopicPolicies", body)).status == 204
        assert await goes_when_nobody_is_there(world, topic)

    play(scenario)


def test_every_policy_has_its_proof_or_is_refused() -> None:
    names = {each.partition("?")[0] for policy in ENFORCED for each in (policy.of_namespace, policy.of_topic)}
    declared = {each.name for each in OF_NAMESPACES if not each.missing} | {each.path for each in OF_TOPICS if not each.missing}
    assert declared - names - SHOWN_ELSEWHERE.keys() == set()
    assert [reference for reference in SHOWN_ELSEWHERE.values() if not is_there(reference)] == []
