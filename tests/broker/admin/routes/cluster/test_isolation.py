"""Admin REST for isolation policies, failure domains and anti-affinity groups: paths, statuses and forms as Apache's."""

from typing import Any

import pytest

from broker.service.load.placement.isolation import decode_policies
from broker.service.load.placement.rules_driver import isolation_path
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.service.load.placement.test_isolation import document

CLUSTER = "/admin/v2/clusters/standalone"
POLICIES = CLUSTER + "/namespaceIsolationPolicies"
DOMAINS = CLUSTER + "/failureDomains"
GROUP = "/admin/v2/namespaces/public/default/antiAffinity"


async def put(world: AdminWorld, path: str, body: Any, status: int = 204) -> None:
    answer = await world.call("POST", path, body)
    assert (answer.status, answer.body) == (status, b"")


def test_policies_are_set_read_and_deleted() -> None:
    async def scenario(world: AdminWorld) -> None:
        await put(world, POLICIES + "/one", document())
        await put(world, POLICIES + "/two", document(primary=["x"]))
        assert (await world.get(POLICIES)).json == {"one": document(), "two": document(primary=["x"])}
        assert (await world.get(POLICIES + "/two")).json == document(primary=["x"])
        found = await world.store.get(isolation_path("standalone"))
        assert found is not None
        assert list(decode_policies(found.value).by_name) == ["one", "two"]
        assert (await world.call("DELETE", POLICIES + "/one")).status == 204
        assert (await world.call("DELETE", POLICIES + "/none")).status == 204
        assert list((await world.get(POLICIES)).json) == ["two"]

    play(scenario)


def test_a_broker_is_told_with_the_policies_that_it_is_in() -> None:
    async def scenario(world: AdminWorld) -> None:
        await put(world, POLICIES + "/p", document(primary=["broker"]))
        own = {"primary": True, "brokerName": "broker:8080", "policyName": "p", "namespaceRegex": ["gold/.*"]}
        assert (await world.get(POLICIES + "/brokers")).json == [own]
        assert (await world.get(POLICIES + "/brokers/b3:8080")).json["primary"] is False
        free = {"primary": False, "brokerName": "x:1", "namespaceRegex": []}
        assert (await world.get(POLICIES + "/brokers/x:1")).json == free

    play(scenario)


@pytest.mark.parametrize(
    ("method", "path", "refused"),
    [
        ("GET", POLICIES, (404, "NamespaceIsolationPolicies for cluster standalone does not exist")),
        ("GET", POLICIES.replace("standalone", "none"), (404, "Cluster none does not exist.")),
        ("GET", POLICIES.replace("standalone", "none") + "/p", (412, "Cluster none does not exist.")),
        ("GET", POLICIES + "/brokers", (404, "NamespaceIsolationPolicies for cluster standalone does not exist")),
        ("GET", DOMAINS + "/d", (404, "Domain d for cluster standalone does not exist")),
        ("DELETE", DOMAINS + "/d", (404, "Domain-name d or cluster standalone does not exist")),
        ("GET", "/admin/v2/namespaces/public/none/antiAffinity", (404, "Namespace does not exist")),
    ],
)
def test_missing_policies_clusters_and_domains_are_refused_in_apaches_words(
    method: str, path: str, refused: tuple[int, str]
) -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.call(method, path)).refused == refused

    play(scenario)


def test_a_policy_that_is_none_is_refused_and_changes_nothing() -> None:
    async def scenario(world: AdminWorld) -> None:
        await put(world, POLICIES + "/p", document())
        status, reason = (await world.call("POST", POLICIES + "/p", document(primary=["b["]))).refused
        assert status == 400
        assert "policy: p" in reason
        assert "invalid policy regex b[" in reason
        assert (await world.get(POLICIES + "/p")).json == document()

    play(scenario)


def test_a_policy_that_is_set_unloads_its_namespaces_unless_it_is_asked_not_to() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded(f"{NAME}/t")
        await put(world, POLICIES + "/p?unloadBundles=false", document(namespaces=["public/default"]))
        await put(world, POLICIES + "/other", document())
        assert await world.loaded(f"{NAME}/t") is topic
        await put(world, POLICIES + "/p", document(namespaces=["public/default"], primary=["x"]))
        assert await world.loaded(f"{NAME}/t") is not topic

    play(scenario)


def test_a_standalone_answers_lookups_of_a_namespace_whose_policy_leaves_it_no_broker() -> None:
    """Apache's standalone.conf has NoopLoadManager, which looks at no policy; a cluster refuses (test_rules_driver)."""

    async def scenario(world: AdminWorld) -> None:
        await put(world, POLICIES + "/p", document(namespaces=["public/default"], primary=["not_there"], secondary=[]))
        answer = await world.get("/lookup/v2/topic/persistent/public/default/t")
        assert answer.json["brokerUrl"] == "pulsar://broker:6650"

    play(scenario)


def test_failure_domains_are_set_read_and_deleted_and_share_no_broker() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.get(DOMAINS)).json == {}
        await put(world, DOMAINS + "/d1", {"brokers": ["b1:8080", "b2:8080"]})
        await put(world, DOMAINS + "/d2", {"brokers": ["b3:8080"]})
        assert (await world.get(DOMAINS + "/d1")).json == {"brokers": ["b1:8080", "b2:8080"]}
        assert list((await world.get(DOMAINS)).json) == ["d1", "d2"]
        twice = await world.call("POST", DOMAINS + "/d2", {"brokers": ["b2:8080", "b3:8080"]})
        assert twice.refused == (409, "[b2:8080] already exists in d1")
        assert (await world.call("POST", DOMAINS + "/d2", ["b2"])).status == 400
        assert (await world.call("DELETE", DOMAINS + "/d1")).status == 200
        assert list((await world.get(DOMAINS)).json) == ["d2"]

    play(scenario)


def test_a_namespaces_group_is_set_and_deleted_beside_how_it_is_cut() -> None:
    async def scenario(world: AdminWorld) -> None:
        cut = (await world.get("/admin/v2/namespaces/public/default/bundles")).json
        assert (await world.get(GROUP)).status == 204
        await put(world, GROUP, "Group")
        assert (await world.get(GROUP)).body == b"Group"
        for group in ("/admin/v2/namespaces/standalone/antiAffinity/group", "/admin/namespaces/standalone/antiAffinity/group"):
            assert (await world.get(group + "?property=public")).json == ["public/default"]
            assert (await world.get(group + "?tenant=public")).json == ["public/default"]
            assert (await world.get(group + "?property=none")).json == []
            assert (await world.call("GET", group)).refused == (400, "Tenant should not be null")
        stored = await world.store.get("/admin/local-policies/public/default")
        assert stored is not None
        assert b"boundaries" in stored.value
        assert (await world.call("DELETE", GROUP)).status == 204
        assert (await world.get(GROUP)).status == 204
        assert (await world.get("/admin/v2/namespaces/public/default/bundles")).json == cut
        assert (await world.call("POST", GROUP, " ")).refused == (412, "antiAffinityGroup can't be empty")

    play(scenario)
