"""Every route that Apache has is here, and those of everyday do what they say: or refuse with the reason, listed here."""

import re
from collections.abc import Mapping

import pytest

from broker.admin.rest.dispatch import Dispatcher
from broker.service.settings import BrokerSettings
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.admin.proofs import is_there
from tests.broker.admin.route_world import NAMESPACE, PASSED, PASSING, TOPIC, Route, ask, prepare, routes, seen, setter_of

ALL = tuple(routes())
_V3 = "/admin/v3/transactions/"
EVERYDAY = [each for each in ALL if each.tier != "T3" and not each.path.startswith(_V3)]
"""Routes of T1 and T2. Routes of transactions have tests of their own (test_transactions)."""

_REPLICATION, _OFFLOAD = "geo-replication", "tiered storage"
NOT_THERE: Mapping[str, str] = {
    f"POST {NAMESPACE}/replicatorDispatchRate": _REPLICATION,
    f"POST {TOPIC}/replication": "replication",
    f"POST {TOPIC}/replicatorDispatchRate": "Replication",
    f"GET {NAMESPACE}/scanOffloadedLedgers": _OFFLOAD,
    f"POST {TOPIC}/subscriptionExpirationTime": "no place for it",
}
"""501, and a word of the reason: what belongs to a feature that is not there."""
_NOTHING_THERE = "what would be removed cannot have been set"
NOTHING_TO_SEE: Mapping[str, str] = {
    f"POST {NAMESPACE}/replication": "there is one cluster, and the namespace is in it",
    f"DELETE {NAMESPACE}/replicatorDispatchRate": _NOTHING_THERE,
    f"DELETE {NAMESPACE}/removeOffloadPolicies": _NOTHING_THERE,
    f"DELETE {TOPIC}/replication": _NOTHING_THERE,
    f"DELETE {TOPIC}/replicatorDispatchRate": _NOTHING_THERE,
    f"DELETE {TOPIC}/subscriptionExpirationTime": _NOTHING_THERE,
    f"POST {TOPIC}/createMissedPartitions": "none is missing; test_partitions",
    f"POST {TOPIC}/trim": "no ledger is closed; test_topic_life.py::test_trim_reaches_the_log",
    f"PUT {TOPIC}/backlogSize": "it asks",
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/compatibility": "it asks",
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/version": "it asks",
}
"""Routes that change nothing by their nature, or nothing here, each with the reason."""
_COMPACTION = "broker/compaction/test_compaction_told.py::test_stats_and_metrics_show_a_compaction_until_the_topic_is_reloaded"
_DYNAMIC = "broker/service/test_dynamic_configuration.py::test_a_removed_dynamic_setting_has_the_value_of_the_file_again"
ELSEWHERE: Mapping[str, str] = {
    f"PUT {TOPIC}/compaction": _COMPACTION,
    f"GET {TOPIC}/internal-info": "broker/admin/stats/test_internal_info.py::"
    "test_ledgers_and_cursors_are_told_as_apache_tells_them",
    f"PUT {NAMESPACE}/{{bundle}}/split": "broker/admin/routes/namespaces/test_bundles.py::test_a_split_at_positions",
    "POST /admin/v2/brokers/configuration/{configName}/{configValue}": _DYNAMIC,
    "DELETE /admin/v2/brokers/configuration/{configName}": _DYNAMIC,
}
"""Routes whose effect a broker without ledgers, neighbours and a configuration file cannot show, and the test that does."""
CHANGED_BY_ASKING = {"GET /admin/v2/brokers/health"}
"""Routes whose GET changes what can be seen: the health check publishes."""
SERVED_WITHOUT_STORAGE = (
    "", "/partitions", "/stats", "/partitioned-stats", "/internalStats", "/partitioned-internalStats", "/properties", "/unload",
    "/subscriptions", "/createMissedPartitions", "/permissions", "/permissions/{role}", "/policies",
)  # fmt: skip
"""After the topic; what of Apache's routes a topic that stores nothing has. The others are refused, with the reason."""
ENFORCED_WITHOUT_STORAGE = (
    "publishRate", "maxProducers", "maxConsumers", "maxConsumersPerSubscription", "maxSubscriptionsPerTopic", "maxMessageSize",
    "subscriptionTypesEnabled", "inactiveTopicPolicies", "schemaCompatibilityStrategy",
    "schemaValidationEnforced",
)  # fmt: skip
"""Policies that mean something to it."""


def found_in(table: Mapping[str, str], route: Route) -> str | None:
    return table.get(str(route).replace(PASSING, TOPIC[: TOPIC.index("{")], 1))


def unnamed(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path).rstrip("/")


def test_every_route_of_apaches_is_here() -> None:
    async def scenario(world: AdminWorld) -> None:
        (served,) = world.app.routes
        assert isinstance(served, Dispatcher)
        here = {(each.method, unnamed(each.path)) for each in served.endpoints}
        assert len(ALL) == 393 + 149
        missing = [str(each) for each in ALL if (each.method, unnamed(each.path)) not in here and not each.path.startswith(_V3)]
        assert missing == []

    play(scenario)


@pytest.mark.parametrize("route", [each for each in EVERYDAY if not each.path.startswith(PASSING)], ids=str)
def test_a_route_of_everyday_does_something_and_what_it_did_can_be_seen(route: Route) -> None:
    reason = found_in(NOT_THERE, route)

    async def scenario(world: AdminWorld) -> None:
        await prepare(world)
        setter = setter_of(route)
        if setter is not None and found_in(NOT_THERE, setter) is None:
            assert (await ask(world, setter)).status in (200, 204)
        before = await seen(world)
        answer = await ask(world, route)
        if reason is not None:
            assert answer.status == 501
            assert reason in answer.refused[1]
            assert await seen(world) == before, "what is refused is not stored"
            return
        assert answer.status in (200, 202, 204), answer.body
        if route.method == "GET":
            assert await seen(world) == before or str(route) in CHANGED_BY_ASKING
            assert answer.status == 200 or setter is None or found_in(NOT_THERE, setter) is not None, "set, and not told"
        else:
            assert (await seen(world) != before) is (found_in(NOTHING_TO_SEE, route) is None)

    if found_in(ELSEWHERE, route) is None:
        play(scenario, BrokerSettings(force_delete_namespace_allowed=True))


_POLICIES = {"/backlogQuotaMap", "/schemaValidationEnforced"} | {
    each.path.partition("{topic}")[2] for each in ALL if each.method == "DELETE" and "/subscription/" not in each.path
} - {"/truncate"}
"""Paths of a topic's policies, after the topic: each of them can be removed, but for the first two."""


def is_served_without_storage(route: Route) -> bool:
    tail = route.path.partition("{topic}")[2]
    if (
        "{topic}" not in route.path
        or tail in SERVED_WITHOUT_STORAGE
        or str(route) == f"DELETE {PASSED}/subscription/{{subName}}"
    ):
        return True
    is_asked_only = route.method in ("GET", "DELETE")
    return tail in _POLICIES and (is_asked_only or tail.strip("/") in ENFORCED_WITHOUT_STORAGE)


@pytest.mark.parametrize("route", [each for each in EVERYDAY if each.path.startswith(PASSING)], ids=str)
def test_a_topic_that_stores_nothing_does_what_it_can_and_refuses_the_rest(route: Route) -> None:
    async def scenario(world: AdminWorld) -> None:
        await prepare(world)
        setter = setter_of(route)
        is_set = setter is not None and (await ask(world, setter)).status in (200, 204)
        before = await seen(world)
        answer = await ask(world, route)
        if not is_served_without_storage(route):
            assert answer.status in (400, 405, 406, 501)
            assert answer.refused[1]
            assert await seen(world) == before, "what is refused is not stored"
            return
        assert answer.status in (200, 204), answer.body
        if route.method == "GET":
            assert answer.status == 200 or not is_set, "set, and not told"
        elif setter is None or is_set:
            assert (await seen(world) != before) is (found_in(NOTHING_TO_SEE, route) is None)

    play(scenario)


@pytest.mark.parametrize("reference", sorted(set(ELSEWHERE.values())))
def test_each_test_that_is_referred_to_elsewhere_exists(reference: str) -> None:
    assert is_there(reference)
