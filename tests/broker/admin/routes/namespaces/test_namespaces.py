"""Policies of a namespace over REST: Apache's JSON and statuses, in force at once on topics loaded before and after."""

import json
from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.policies.policies import BacklogQuota, QuotaPolicy
from broker.service.topic_name import NamespaceName
from metadata.store import BadVersion
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.topic.topic_world import settle

NAMESPACE = "/admin/v2/namespaces/public/default"
PATH = "/admin/policies/public/default"
QUOTA = {"limitSize": 1000, "limitTime": 60, "policy": "producer_exception"}


async def stored(world: AdminWorld) -> Any:
    found = await world.store.get(PATH)
    assert found is not None
    return json.loads(found.value)


async def post(world: AdminWorld, path: str, body: Any) -> None:
    answer = await world.call("POST", f"{NAMESPACE}/{path}", body)
    assert (answer.status, answer.body) == (204, b"")


def test_policies_are_stored_in_apaches_form_and_taken_back() -> None:
    async def scenario(world: AdminWorld) -> None:
        before = await stored(world)
        for path in ("retention", "messageTTL"):
            answer = await world.get(f"{NAMESPACE}/{path}")
            assert (answer.status, answer.body) == (204, b"")
        assert (await world.get(f"{NAMESPACE}/backlogQuotaMap")).json == {}
        retention = {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}
        await post(world, "retention", retention)
        await post(world, "messageTTL", 30)
        await post(world, "backlogQuota", QUOTA)
        await post(world, "backlogQuota?backlogQuotaType=message_age", QUOTA)
        quota = {"limit": 1000, **QUOTA}
        quotas = {"destination_storage": quota, "message_age": quota}
        assert (await world.get(f"{NAMESPACE}/retention")).json == retention
        assert (await world.get(f"{NAMESPACE}/messageTTL")).json == 30
        assert (await world.get(f"{NAMESPACE}/backlogQuotaMap")).json == quotas
        wanted = before | {"retention_policies": retention, "message_ttl_in_seconds": 30, "backlog_quota_map": quotas}
        assert await stored(world) == wanted
        for path in ("retention", "messageTTL", "backlogQuota", "backlogQuota?backlogQuotaType=message_age"):
            assert (await world.call("DELETE", f"{NAMESPACE}/{path}")).status == 204
        assert await stored(world) == before

    play(scenario)


def test_policies_are_in_force_at_once_on_topics_loaded_before_and_after_and_not_elsewhere() -> None:
    async def scenario(world: AdminWorld) -> None:
        before = await world.loaded(f"{NAME}/before")
        system = await world.loaded(f"{NAME}/__change_events")
        other = await world.loaded("persistent://public/functions/t")
        await post(world, "messageTTL", 7)
        await post(world, "backlogQuota", QUOTA)
        await post(world, "retention", {"retentionTimeInMinutes": 5, "retentionSizeInMB": 3})
        after = await world.loaded(f"{NAME}/after")
        for topic in (before, after):
            policies = topic.upkeep.policies
            assert policies.message_ttl_seconds == 7
            assert policies.size_quota == BacklogQuota(1000, 60, QuotaPolicy.PRODUCER_EXCEPTION)
            assert topic.ledger.retention == (300_000, 3 << 20)
        assert {system.upkeep.policies.message_ttl_seconds, other.upkeep.policies.message_ttl_seconds} == {0}
        await world.call("DELETE", f"{NAMESPACE}/messageTTL")
        assert before.upkeep.policies.message_ttl_seconds == 0

    play(scenario)


def test_policies_changed_by_another_broker_take_effect_and_garbage_changes_nothing() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded(f"{NAME}/t")
        document = await stored(world)
        await world.store.put(PATH, json.dumps(document | {"message_ttl_in_seconds": 9}).encode())
        await settle()
        assert topic.upkeep.policies.message_ttl_seconds == 9
        for garbage in (b"{", b"[]", b'{"message_ttl_in_seconds": "x"}', b'{"backlog_quota_map": {"size": {}}}'):
            await world.store.put(PATH, garbage)
            await settle()
            assert topic.upkeep.policies.message_ttl_seconds == 9
        await world.store.put("/admin/policies/public/functions", b"[]")
        with pytest.raises(BrokerError, match="unreadable value at /admin/policies/public/functions") as refused:
            await world.loaded("persistent://public/functions/t")
        assert refused.value.code is ServerError.METADATA

    play(scenario)


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("messageTTL", -1, 412, "Invalid value for message TTL"),
        ("messageTTL", "x", 400, "Expected `int`, got `str`"),
        ("retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5}, 400, "Setting a single time or size limit to 0"),
        ("retention", {"retentionTimeInMinutes": -2, "retentionSizeInMB": 5}, 400, "time limit must be >= -1"),
        ("retention", {"retentionTimeInMinutes": 1, "retentionSizeInMB": -2}, 400, "size limit must be >= -1"),
        ("retention", {"retentionTimeInMinutes": "x"}, 400, "at `$.retentionTimeInMinutes`"),
        ("retention", [], 400, "Expected `object`, got `array`"),
        ("backlogQuota", {**QUOTA, "policy": "drop"}, 400, "at `$.policy`"),
        ("backlogQuota", {**QUOTA, "limitSize": True}, 400, "at `$.limitSize`"),
        ("backlogQuota?backlogQuotaType=x", QUOTA, 400, "backlogQuotaType: expected destination_storage, message_age"),
    ],
)
def test_an_invalid_policy_is_refused_and_changes_nothing(path: str, body: Any, status: int, reason: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        before = await stored(world)
        answer = await world.call("POST", f"{NAMESPACE}/{path}", body)
        assert answer.status == status
        assert reason in answer.refused[1]
        assert await stored(world) == before
        missing = await world.call("POST", "/admin/v2/namespaces/public/nowhere/messageTTL", 1)
        assert missing.refused == (404, "Namespace does not exist")

    play(scenario)


def test_a_backlog_must_fit_into_what_is_retained_whichever_comes_first() -> None:
    async def scenario(world: AdminWorld) -> None:
        await post(world, "backlogQuota", {**QUOTA, "limitSize": 1 << 20, "limitTime": -1})
        answer = await world.call("POST", f"{NAMESPACE}/retention", {"retentionTimeInMinutes": 5, "retentionSizeInMB": 1})
        assert answer.refused == (412, "Retention Quota must exceed configured backlog quota for namespace.")
        await post(world, "retention", {"retentionTimeInMinutes": 5, "retentionSizeInMB": 2})
        answer = await world.call("POST", f"{NAMESPACE}/backlogQuota", {**QUOTA, "limitSize": 2 << 20, "limitTime": -1})
        assert (answer.status, answer.refused[1][:20]) == (412, "Backlog Quota exceed")
        answer = await world.call("POST", f"{NAMESPACE}/backlogQuota", {**QUOTA, "limitTime": 300})
        assert answer.status == 412
        await post(world, "retention", {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1})  # by time alone
        answer = await world.call("POST", f"{NAMESPACE}/backlogQuota", {**QUOTA, "limitSize": 5, "limitTime": 300})
        assert answer.status == 412

    play(scenario)


def test_a_change_is_made_on_top_of_what_somebody_else_changed_meanwhile() -> None:
    async def scenario(world: AdminWorld) -> None:
        calls = 0

        def edit(document: dict[str, Any]) -> None:
            nonlocal calls
            calls += 1
            document["message_ttl_in_seconds"] = 5

        put = world.store.put
        raced: list[int] = []

        async def racing(path: str, value: bytes, *args: Any, **more: Any) -> Any:
            if not raced:
                raced.append(1)
                raise BadVersion(path)
            return await put(path, value, *args, **more)

        world.store.put = racing  # type: ignore[method-assign]  # the first write comes too late
        await world.service.namespace_policies.change(NamespaceName("public", "default"), edit)
        assert calls == 2
        assert (await stored(world))["message_ttl_in_seconds"] == 5

    play(scenario)
