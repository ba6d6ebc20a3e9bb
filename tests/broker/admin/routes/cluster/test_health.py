"""The health check: a message goes to the broker's own heartbeat topic and comes back, or the broker is not well."""

import asyncio
from typing import Any

from broker.service.lifecycle.heartbeat import SECONDS_MAX
from broker.service.lookup import heartbeat_topic
from tests.broker.admin.admin_world import ADVERTISED, AdminWorld, play

HEALTH = "/admin/v2/brokers/health"
TOPIC = str(heartbeat_topic(ADVERTISED))


def test_a_broker_that_stores_and_reads_is_well_and_shows_its_topic_to_nobody() -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.get(HEALTH)
        assert (answer.status, answer.body) == (200, b"ok")
        topic = world.service.catalogue.loaded_topics[TOPIC]
        assert topic.stats().msg_in_counter == 1
        assert not topic.stats().publishers
        assert not topic.stats().subscriptions
        assert (await world.get("/admin/v2/namespaces/pulsar")).json == ["pulsar/system"]

    play(scenario)


def test_a_broker_whose_storage_stands_still_is_not_well_and_is_again_when_it_moves() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.get(HEALTH)
        ledger: Any = world.service.catalogue.loaded_topics[TOPIC].ledger  # type: ignore[attr-defined]  # of the real topic
        append = ledger.append
        ledger.append = lambda batch: asyncio.get_running_loop().create_future()
        begun = asyncio.get_running_loop().time()
        status, reason = (await world.get(HEALTH)).refused
        assert (status, round(asyncio.get_running_loop().time() - begun)) == (503, SECONDS_MAX)
        assert "did not come back" in reason
        ledger.append = append
        assert (await world.get(HEALTH)).status == 200

    play(scenario)


def test_a_broker_whose_disk_is_full_is_not_well_and_names_the_directory_and_its_metric_says_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        series = b'pulsar_broker_storage_refused{cluster="standalone"} '
        assert series + b"0" in (await world.get("/metrics/")).body
        world.service.meters.storage_refusal = lambda: "disk full: over 95%: /data/journal"
        status, reason = (await world.get(HEALTH)).refused
        assert status == 503
        assert "/data/journal" in reason
        assert TOPIC not in world.service.catalogue.loaded_topics, "nothing is written to learn that"
        assert series + b"1" in (await world.get("/metrics/")).body
        world.service.meters.storage_refusal = str
        assert (await world.get(HEALTH)).status == 200

    play(scenario)


def test_those_who_ask_at_the_same_time_share_one_message() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.get(HEALTH)
        answers = await asyncio.gather(*(world.get(HEALTH) for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
        assert world.service.catalogue.loaded_topics[TOPIC].stats().msg_in_counter == 2

    play(scenario)


def test_a_health_check_of_another_broker_is_redirected_and_of_an_unknown_one_is_404() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.store.put("/loadbalance/brokers/other:8080", b'{"webServiceUrl":"http://other:8080"}')
        answer = await world.get(f"{HEALTH}?brokerId=other:8080")
        assert (answer.status, answer.headers["location"]) == (307, f"http://other:8080{HEALTH}?brokerId=other:8080")
        unknown = await world.get(f"{HEALTH}?brokerId=none:1")
        assert unknown.refused == (404, "Broker id 'none:1' not found in available brokers.")

    play(scenario)
