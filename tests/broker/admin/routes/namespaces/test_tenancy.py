"""Tenants, clusters and namespaces over REST: Apache's statuses, reasons and documents, and what is left of them."""

import json
from typing import Any

import pytest

from broker.service.settings import BrokerSettings
from tests.broker.admin.admin_world import AdminWorld, play

V2 = "/admin/v2"
TENANT = {"adminRoles": ["a"], "allowedClusters": ["standalone"]}


async def asked(world: AdminWorld, method: str, path: str, body: Any = None) -> int:
    return (await world.call(method, f"{V2}/{path}", body)).status


async def refused(world: AdminWorld, method: str, path: str, body: Any = None) -> tuple[int, str]:
    return (await world.call(method, f"{V2}/{path}", body)).refused


async def stored(world: AdminWorld, path: str) -> Any:
    found = await world.store.get(path)
    return None if found is None else json.loads(found.value)


def test_a_tenant_is_made_changed_and_deleted_as_apache_stores_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert await asked(world, "PUT", "tenants/t", TENANT) == 204
        assert await stored(world, "/admin/policies/t") == TENANT
        assert await refused(world, "PUT", "tenants/t", TENANT) == (409, "Tenant already exist")
        assert await asked(world, "POST", "tenants/t", {**TENANT, "adminRoles": ["b", "b"]}) == 204
        assert await stored(world, "/admin/policies/t") == {**TENANT, "adminRoles": ["b"]}
        assert await asked(world, "PUT", "namespaces/t/n") == 204
        assert await refused(world, "DELETE", "tenants/t") == (409, "The tenant still has active namespaces")
        assert await asked(world, "DELETE", "namespaces/t/n") == 204
        assert await asked(world, "DELETE", "tenants/t") == 204
        assert await refused(world, "GET", "tenants/t") == (404, "Tenant does not exist")

    play(scenario)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "TenantInfo is null"),
        ({"adminRoles": ["a"]}, "Clusters cannot be null"),
        ({"adminRoles": ["a"], "allowedClusters": []}, "Clusters cannot be empty or blank"),
        ({"adminRoles": ["a"], "allowedClusters": ["nowhere"]}, "Clusters do not exist"),
        ({"adminRoles": [" a"], "allowedClusters": ["standalone"]}, "AdminRoles contains whitespace in the beginning or end."),
        ({"adminRoles": [""], "allowedClusters": ["standalone"]}, "AdminRoles contains empty value"),
    ],
)
def test_a_tenant_that_cannot_be_is_412_in_apaches_words(body: Any, reason: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        assert await refused(world, "PUT", "tenants/t", body) == (412, reason)
        assert await refused(world, "PUT", "tenants/a%20b", TENANT) == (412, "Tenant name is not valid")
        assert await stored(world, "/admin/policies/t") is None

    play(scenario)


def test_there_are_no_more_tenants_and_namespaces_than_the_settings_say() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert await refused(world, "PUT", "tenants/t", TENANT) == (412, "Exceed the maximum number of tenants")
        for name in ("a", "b"):
            status = await asked(world, "PUT", f"namespaces/pulsar/{name}")
            assert status == (204 if name == "a" else 412)

    play(scenario, BrokerSettings(max_tenants=2, max_namespaces_per_tenant=2))


def test_a_namespace_is_made_with_policies_and_bundles() -> None:
    async def scenario(world: AdminWorld) -> None:
        policies = {"bundles": {"numBundles": 3}, "message_ttl_in_seconds": 7, "publishMaxMessageRate": {"standalone": {}}}
        assert await asked(world, "PUT", "namespaces/public/n", policies) == 204
        document = (await world.get(f"{V2}/namespaces/public/n")).json
        assert document["message_ttl_in_seconds"] == 7
        assert document["bundles"]["boundaries"] == ["0x00000000", "0x55555555", "0xaaaaaaaa", "0xffffffff"]
        assert (await stored(world, "/admin/local-policies/public/n"))["bundles"]["numBundles"] == 3
        assert await refused(world, "PUT", "namespaces/public/n") == (409, "Namespace already exists")

    play(scenario)


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("nobody/n", None, 404, "Tenant does not exist"),
        ("public/a%20b", None, 412, "Namespace name is not valid"),
        ("public/n", {"replication_clusters": ["nowhere"]}, 403, "Cluster [nowhere] is not in the list of allowed clusters"),
        ("public/n", {"message_ttl_in_seconds": -5}, 412, "Invalid value for message TTL"),
        ("public/n", {"message_ttl_in_seconds": "x"}, 400, "message_ttl_in_seconds: Expected `int`"),
        ("public/n", {"bundles": {"numBundles": 999_999_999}}, 412, "Invalid number of bundles"),
        ("public/n", {"bundles": {"numBundles": 2, "boundaries": ["0x0", "0x1"]}}, 412, "Invalid bundles"),
        ("public/n", {"offload_threshold": 10}, 501, "offloadThreshold is not supported: tiered storage is missing"),
    ],
)
def test_a_namespace_that_cannot_be_is_refused_and_not_made(path: str, body: Any, status: int, reason: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await refused(world, "PUT", f"namespaces/{path}", body)
        assert answer[0] == status
        assert reason in answer[1]
        assert (await world.get(f"{V2}/namespaces/public")).json == ["public/default", "public/functions"]

    play(scenario)


async def with_topics(world: AdminWorld) -> None:
    """Makes the namespace public/n with a topic and a partitioned topic."""
    await asked(world, "PUT", "namespaces/public/n")
    assert await asked(world, "PUT", "persistent/public/n/t") == 204
    assert await asked(world, "PUT", "persistent/public/n/p/partitions", 2) == 204


def test_a_namespace_with_topics_stays_where_force_is_not_allowed() -> None:
    async def scenario(world: AdminWorld) -> None:
        await with_topics(world)
        assert await refused(world, "DELETE", "namespaces/public/n") == (409, "Cannot delete non empty namespace")
        assert (await stored(world, "/admin/policies/public/n"))["deleted"] is False
        refusal = await refused(world, "DELETE", "namespaces/public/n?force=true")
        assert refusal == (405, "Broker doesn't allow forced deletion of namespaces")

    play(scenario)


def test_a_namespace_that_is_deleted_by_force_leaves_nothing_behind() -> None:
    async def scenario(world: AdminWorld) -> None:
        await with_topics(world)
        assert await asked(world, "DELETE", "namespaces/public/n?force=true") == 204
        for root in ("/admin/policies", "/admin/local-policies", "/admin/partitioned-topics", "/managed-ledgers"):
            assert not await world.store.exists(f"{root}/public/n"), root
        assert not [name for name in world.service.catalogue.loaded_topics if "/public/n/" in name]
        assert await refused(world, "DELETE", "namespaces/public/n") == (404, "Namespace public/n does not exist.")

    play(scenario, BrokerSettings(force_delete_namespace_allowed=True))


def test_a_bundle_with_topics_stays_and_an_empty_one_is_given_up() -> None:
    async def scenario(world: AdminWorld) -> None:
        await asked(world, "PUT", "namespaces/public/n", {"bundles": {"numBundles": 1}})
        assert await asked(world, "PUT", "persistent/public/n/t") == 204
        bundle = "namespaces/public/n/0x00000000_0xffffffff"
        assert await refused(world, "DELETE", bundle) == (409, "Cannot delete non empty bundle")
        assert await asked(world, "DELETE", "persistent/public/n/t") == 204
        assert await asked(world, "DELETE", bundle) == 204
        assert await asked(world, "DELETE", "namespaces/public/n/0x00000000_0x10000000") == 412

    play(scenario)


def test_a_cluster_and_its_peers() -> None:
    async def scenario(world: AdminWorld) -> None:
        data = {"serviceUrl": "http://x:1", "brokerServiceUrl": "pulsar://x:2,y:2"}
        assert await asked(world, "PUT", "clusters/c", data) == 200
        assert await refused(world, "PUT", "clusters/c", data) == (409, "Cluster already exists")
        assert await asked(world, "POST", "clusters/c/peers", ["standalone"]) == 204
        assert await asked(world, "POST", "clusters/c/peers", None) == 204, "AdminApi2Test.testPeerCluster: it has none then"
        assert (await world.get("/admin/v2/clusters/c")).json["peerClusterNames"] is None
        assert await asked(world, "POST", "clusters/c/peers", ["standalone"]) == 204
        assert await refused(world, "POST", "clusters/c/peers", ["c"]) == (412, "c itself can't be part of peer-list")
        assert await refused(world, "POST", "clusters/c/peers", ["d"]) == (412, "Peer cluster d does not exist")
        assert await asked(world, "POST", "clusters/c", {"serviceUrl": "http://y:1"}) == 200
        document = await stored(world, "/admin/clusters/c")
        assert (document["serviceUrl"], document["peerClusterNames"]) == ("http://y:1", ["standalone"])
        reason = "Illegal service url, example: http://pulsar.example.com:8080"
        assert await refused(world, "PUT", "clusters/d", {"serviceUrl": "nonsense"}) == (400, reason)
        assert await asked(world, "DELETE", "clusters/c") == 204
        assert await refused(world, "DELETE", "clusters/c") == (404, "Cluster does not exist")
        assert await refused(world, "DELETE", "clusters/standalone") == (412, "Cluster not empty")

    play(scenario)
