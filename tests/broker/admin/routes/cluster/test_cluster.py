"""Admin REST on the cluster: health, brokers, clusters, tenants, namespaces, lookup, and what has no route."""

import asyncio
import logging
import socket

import pytest

from broker.admin.app import serve_admin
from broker.errors import BrokerError, ServerError
from tests.broker.admin.admin_world import NAME, TOPICS, AdminWorld, play


@pytest.mark.parametrize(
    ("path", "text"),
    [("/admin/v2/brokers/health", b"ok"), ("/admin/v2/brokers/ready", b"ok"), ("/admin/v2/brokers/version", b"9.8.7")],
)
def test_bare_text_has_apaches_content_type(path: str, text: bytes) -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.get(path)
        assert (answer.status, answer.headers["content-type"], answer.body) == (200, "application/json", text)

    play(scenario)


def test_brokers_clusters_tenants_and_namespaces_are_those_of_the_standalone() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.get("/status.html")).body == b"OK"
        assert (await world.get("/admin/v2/brokers")).json == ["broker:8080"]
        assert (await world.get("/admin/v2/brokers/standalone")).json == ["broker:8080"]
        leader = {"serviceUrl": "http://broker:8080", "brokerId": "broker:8080"}
        assert (await world.get("/admin/v2/brokers/leaderBroker")).json == leader
        assert (await world.get("/admin/v2/clusters")).json == ["standalone"]
        assert (await world.get("/admin/v2/clusters/standalone")).json["brokerServiceUrl"] == "pulsar://broker:6650"
        assert (await world.get("/admin/v2/tenants")).json == ["public", "pulsar"]
        tenant = {"adminRoles": [], "allowedClusters": ["standalone"]}
        assert (await world.get("/admin/v2/tenants/public")).json == tenant
        assert (await world.get("/admin/v2/namespaces/public")).json == ["public/default", "public/functions"]
        policies = (await world.get("/admin/v2/namespaces/public/default")).json
        assert (policies["replication_clusters"], policies["bundles"]["numBundles"]) == (["standalone"], 4)

    play(scenario)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/admin/v2/clusters/none", "Cluster does not exist"),
        ("/admin/v2/tenants/none", "Tenant does not exist"),
        ("/admin/v2/namespaces/none", "Tenant not found"),
        ("/admin/v2/namespaces/public/none", "Namespace does not exist"),
        ("/admin/v2/namespaces/public/none/topics", "Namespace does not exist"),
        ("/admin/v2/persistent/public/none", "Namespace does not exist"),
        ("/admin/v2/persistent/public/none/partitioned", "Namespace does not exist"),
        ("/admin/v2/persistent/public/none/t/stats", "Namespace not found"),
        ("/admin/v2/persistent/public/none/t/partitions", "Namespace not found"),
        ("/lookup/v2/topic/persistent/public/none/t", "Namespace not found"),
        ("/admin/v2/schemas/public/default/t/schema", "Schema not found"),
        ("/admin/v2/schemas/public/default/t/schema/1", "Schema not found"),
        ("/admin/v2/nothing", "Not Found"),
        ("/nothing", "Not Found"),
    ],
)
def test_missing_resources_are_404_in_apaches_words(path: str, reason: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.get(path)).refused == (404, reason)

    play(scenario)


def test_a_method_that_a_route_does_not_have_is_405_and_names_those_it_has() -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.call("POST", "/admin/v2/clusters")
        assert answer.refused == (405, "Method Not Allowed")
        assert "GET" in answer.headers["allow"]

    play(scenario)


def test_lookup_tells_all_addresses_and_always_one_for_tls() -> None:
    async def scenario(world: AdminWorld) -> None:
        found = (await world.get("/lookup/v2/topic/persistent/public/default/t")).json
        assert found == {
            "brokerUrl": "pulsar://broker:6650",
            "httpUrl": "http://broker:8080",
            "nativeUrl": "pulsar://broker:6650",
            "brokerUrlSsl": "",
        }
        assert (await world.get("/lookup/v2/topic/wrong/public/default/t")).status == 412

    play(scenario)


def test_topics_of_a_namespace_are_listed_with_their_partitions() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "a")
        await world.done("PUT", "p/partitions", 2)
        names = [f"{NAME}/a", f"{NAME}/p-partition-0", f"{NAME}/p-partition-1"]
        assert (await world.get("/admin/v2/namespaces/public/default/topics")).json == names
        assert (await world.get("/admin/v2/namespaces/public/default/topics?mode=PERSISTENT")).json == names
        assert (await world.get("/admin/v2/namespaces/public/default/topics?mode=NON_PERSISTENT")).json == []
        assert (await world.get(TOPICS)).json == names
        assert (await world.get(f"{TOPICS}/partitioned")).json == [f"{NAME}/p"]

    play(scenario)


def test_a_refusal_without_a_status_of_its_own_is_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: AdminWorld) -> None:
        def fail(_: object, __: str, *, authoritative: bool) -> None:
            raise BrokerError(ServerError.METADATA, "the disk is gone")

        world.service.lookup.find = fail  # type: ignore[method-assign, assignment]
        answer = await world.get("/lookup/v2/topic/persistent/public/default/t")
        assert answer.refused == (500, "the disk is gone")

    with caplog.at_level(logging.ERROR):
        play(scenario)
    assert "the disk is gone" in caplog.text


def test_an_offer_of_http_2_is_declined_without_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def request() -> bytes:
        server = await serve_admin(AdminWorld().app, socket.create_server(("127.0.0.1", 0)))
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(
            b"GET /admin/v2/brokers/ready HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            b"Upgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n\r\n"
        )
        answer = await reader.readuntil(b"ok")
        writer.close()
        server.close()
        return answer

    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)
    answer = asyncio.run(request())
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.lower().count(b"\r\ndate: ") == 1
    assert caplog.records == []
