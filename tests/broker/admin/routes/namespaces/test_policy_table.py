"""Every policy of a namespace, by its declaration: set, told and removed, or refused because its feature is missing."""

from typing import Any

import pytest

from broker.admin.routes.namespaces.policy_table import POLICIES, NamespacePolicy
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.admin.routes.namespaces.test_tenancy import asked, stored

NAMESPACE = "namespaces/public/default"
PATH = "/admin/policies/public/default"
SAMPLES: dict[str, Any] = {
    "retention": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 20},
    "persistence": {
        "bookkeeperEnsemble": 3,
        "bookkeeperWriteQuorum": 2,
        "bookkeeperAckQuorum": 2,
        "managedLedgerMaxMarkDeleteRate": 1.5,
    },
    "publishRate": {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": 20},
    "subscribeRate": {"subscribeThrottlingRatePerConsumer": 3, "ratePeriodInSecond": 7},
    "subscriptionTypesEnabled": ["Shared"],
    "autoTopicCreation": {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": True},
    "inactiveTopicPolicies": {
        "deleteWhileInactive": True,
        "maxInactiveDurationSeconds": 60,
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    },
    "delayedDelivery": {"tickTime": 1000, "active": True, "maxDeliveryDelayInMillis": 0},
    "offloadPolicies": {"managedLedgerOffloadDriver": "aws-s3"},
    "schemaCompatibilityStrategy": "FULL",
    "schemaAutoUpdateCompatibilityStrategy": "Full",
    "isAllowAutoUpdateSchema": False,
    "subscriptionAuthMode": "Prefix",
    "resourcegroup": "g",
}
_RATE = {
    "dispatchThrottlingRateInMsg": 10,
    "dispatchThrottlingRateInByte": 20,
    "relativeToPublishRate": True,
    "ratePeriodInSecond": 1,
}
NAMED = {policy.name: policy for policy in POLICIES}
SETTABLE = [name for name in NAMED if name != "entryFilters"]


def sample(policy: NamespacePolicy) -> Any:
    if policy.name.lower().endswith("dispatchrate"):
        return _RATE
    return SAMPLES.get(policy.name, True if policy.body in (bool, None) else 7)


@pytest.mark.parametrize("name", SETTABLE)
def test_a_policy_is_stored_told_and_removed_or_refused_for_what_is_missing(name: str) -> None:
    policy, value = NAMED[name], sample(NAMED[name])

    async def scenario(world: AdminWorld) -> None:
        before = await stored(world, PATH)
        path = f"{NAMESPACE}/{policy.path.replace('{resourcegroup}', str(value))}"
        answer = await world.call(policy.set_by, f"/admin/v2/{path}", None if policy.body is None else value)
        if policy.missing:
            assert answer.refused == (501, f"{name} is not supported: {policy.missing}")
            assert await stored(world, PATH) == before
            return
        assert (answer.status, answer.body) == (204, b"")
        assert (await world.get(f"/admin/v2/{NAMESPACE}/{name}")).json == value
        document = await stored(world, PATH)
        for member in (policy.member, *policy.twins):
            assert document[member] == ({"standalone": value} if policy.is_by_cluster else value)
        if policy.is_removable:
            assert await asked(world, "DELETE", f"{NAMESPACE}/{name}") == 204
            assert await stored(world, PATH) == {
                **before,
                **({policy.member: policy.removed} if policy.removed is not None else {}),
            }

    play(scenario)


@pytest.mark.parametrize("name", list(NAMED))
def test_a_policy_of_a_namespace_that_is_not_there_is_404(name: str) -> None:
    policy = NAMED[name]

    async def scenario(world: AdminWorld) -> None:
        path = f"/admin/v2/namespaces/public/nowhere/{policy.path.replace('{resourcegroup}', 'g')}"
        answer = await world.call(policy.set_by, path, None if policy.body is None else sample(policy))
        assert answer.status in ((404,) if name != "entryFilters" else (400, 404))
        assert (await world.get(f"/admin/v2/namespaces/public/nowhere/{name}")).status == 404

    play(scenario)


def test_a_policy_of_a_missing_feature_may_be_set_to_a_harmless_value() -> None:
    async def scenario(world: AdminWorld) -> None:
        for policy in POLICIES:
            for value in policy.harmless:
                assert await asked(world, policy.set_by, f"{NAMESPACE}/{policy.path}", value) == 204, policy.name

    play(scenario)
