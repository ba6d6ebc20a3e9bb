"""Admin REST on plain topics and their subscriptions: statuses and reasons as an Apache Pulsar 4.0.8 gave them."""

from dataclasses import replace
from typing import Any

import pytest

from broker.service.settings import BrokerSettings
from broker.topic.contract import SubscriptionType
from tests.broker.admin.admin_world import NAME, TOPICS, AdminWorld, play
from tests.broker.topic.topic_world import PRODUCER, SUBSCRIBE, ConsumerEnd, ProducerEnd, send_run, settle


def test_a_topic_is_created_once_and_deleted_once() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        assert (await world.topic("PUT", "t")).refused == (409, "This topic already exists")
        await world.done("DELETE", "t")
        assert (await world.topic("DELETE", "t")).refused == (404, f"Topic {NAME}/t not found")
        assert (await world.topic("DELETE", "t?force=true")).refused == (404, f"Topic {NAME}/t not found")
        assert (await world.get(TOPICS)).json == []

    play(scenario)


@pytest.mark.parametrize("name", ["t-s__transaction_pending_ack", "t-s__transaction_pending_ack/partitions"])
def test_a_pending_acknowledgement_topic_is_not_created_on_request(name: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        body = 2 if name.endswith("partitions") else None
        assert (await world.topic("PUT", name, body)).refused == (400, "Cannot create topic in system topic format!")

    play(scenario)


def test_topics_are_created_by_hand_where_they_are_not_made_by_asking() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.topic("PUT", "t/subscription/s")).refused == (404, f"Topic {NAME}/t not found")
        await world.done("PUT", "t", {})
        await world.done("PUT", "t/subscription/s")

    play(scenario, BrokerSettings(allow_auto_topic_creation=False))


def test_properties_of_a_topic_are_kept_added_to_and_removed_one_by_one() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t", {"a": "b"})
        await world.done("PUT", "p/partitions", {"partitions": 1, "properties": {"a": "b"}})
        for topic in ("t", "p"):
            await world.done("PUT", f"{topic}/properties", {"c": "d", "e": "f"})
            await world.done("DELETE", f"{topic}/properties?key=c")
            assert (await world.topic("GET", f"{topic}/properties")).json == {"a": "b", "e": "f"}
            assert (await world.topic("DELETE", f"{topic}/properties")).status == 412
        assert (await world.topic("GET", "p/partitions")).json["properties"] == {"a": "b", "e": "f"}
        assert (await world.topic("GET", "none/properties")).status == 404
        assert (await world.topic("PUT", "t/properties", [1])).status == 400

    play(scenario)


@pytest.mark.parametrize(("method", "path"), [("GET", "stats"), ("GET", "subscriptions"), ("PUT", "unload")])
def test_asking_about_a_missing_topic_is_404_and_makes_none(method: str, path: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.topic(method, f"t/{path}")).refused == (404, f"Topic {NAME}/t not found")
        assert (await world.get(TOPICS)).json == []

    play(scenario)


@pytest.mark.parametrize("path", ["t", "t/partitions", "t/subscription/s"])
@pytest.mark.parametrize("raw", [b"nonsense", b"[1]", b'"x"', b"\xff\xfe"])
def test_a_body_that_cannot_be_read_is_400_and_changes_nothing(path: str, raw: bytes) -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.call("PUT", f"{TOPICS}/{path}", raw=raw)
        assert (answer.status, list(answer.json)) == (400, ["reason"])
        assert (await world.get(TOPICS)).json == []

    play(scenario)


def test_a_body_beyond_the_bound_is_refused_before_it_is_read_whole() -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.call("PUT", f"{TOPICS}/t", raw=b" " * ((1 << 20) + 1))
        assert answer.refused == (400, "the body is larger than 1048576 bytes")

    play(scenario)


def test_a_topic_in_use_is_deleted_only_by_force_and_its_clients_are_told() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded("t")
        producer, consumer = ProducerEnd(), ConsumerEnd()
        await topic.add_producer(PRODUCER, producer)
        await topic.subscribe(SUBSCRIBE, consumer)
        assert (await world.topic("DELETE", "t")).refused == (412, "Topic has 2 connected producers/consumers")
        assert not producer.heard
        await world.done("DELETE", "t?force=true")
        assert [what for what, *_ in producer.heard] == ["closed"]
        assert (await world.get(TOPICS)).json == []

    play(scenario)


def test_a_subscription_nobody_reads_does_not_keep_a_topic() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        await world.done("PUT", "t/subscription/s")
        await world.done("DELETE", "t")

    play(scenario)


def test_an_unloaded_topic_is_there_and_unloading_it_again_is_fine() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        await world.done("PUT", "t/unload")
        assert not world.service.catalogue.loaded_topics
        await world.done("PUT", "t/unload")
        assert (await world.topic("GET", "t/stats")).status == 200

    play(scenario)


def test_subscriptions_are_created_listed_and_deleted() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t/subscription/s")
        assert (await world.topic("PUT", "t/subscription/s")).refused == (409, "Subscription already exists for topic")
        await world.done("PUT", "t/subscription/a%2Fb")
        assert (await world.topic("GET", "t/subscriptions")).json == ["a/b", "s"]
        await world.done("DELETE", "t/subscription/s")
        gone = (404, f"Subscription s not found for topic {NAME}/t")
        assert (await world.topic("DELETE", "t/subscription/s")).refused == gone

    play(scenario)


LATEST = (1 << 63) - 1


@pytest.mark.parametrize(
    ("body", "backlog"),
    [(None, 0), ({}, 0), ({"ledgerId": LATEST, "entryId": LATEST}, 0), ({"ledgerId": -1, "entryId": -1}, 2)],
)
def test_a_subscription_begins_where_its_message_id_says(body: Any, backlog: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        await published(world, "t", 2)
        await world.done("PUT", "t/subscription/s", body)
        assert (await world.topic("GET", "t/stats")).json["subscriptions"]["s"]["msgBacklog"] == backlog

    play(scenario)


def test_a_subscription_in_use_is_deleted_only_by_force() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded("t")
        await topic.subscribe(replace(SUBSCRIBE, subscription="s"), ConsumerEnd())
        refused = (412, "Subscription has active connected consumers")
        assert (await world.topic("DELETE", "t/subscription/s")).refused == refused
        await world.done("DELETE", "t/subscription/s?force=true")
        assert (await world.topic("GET", "t/subscriptions")).json == []

    play(scenario)


def test_stats_count_what_went_in_and_name_who_is_there() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded("t")
        await topic.subscribe(replace(SUBSCRIBE, subscription="s", type=SubscriptionType.SHARED), ConsumerEnd())
        await published(world, "t", 3)
        stats = (await world.topic("GET", "t/stats")).json
        assert (stats["msgInCounter"], stats["msgRateOut"], type(stats["msgRateOut"])) == (3, 0.0, float)
        assert len(stats["publishers"]) == 1
        subscription = stats["subscriptions"]["s"]
        assert (subscription["type"], subscription["msgBacklog"], len(subscription["consumers"])) == ("Shared", 3, 1)
        assert subscription["durable"] is True
        assert stats["deduplicationStatus"] == "Disabled"

    play(scenario)


def test_a_name_with_a_slash_is_no_topic() -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.topic("PUT", "a%2Fb")).status == 412
        assert (await world.get(TOPICS)).json == []

    play(scenario)


async def published(world: AdminWorld, name: str, count: int) -> None:
    topic = await world.loaded(name)
    producer = await topic.add_producer(PRODUCER, ProducerEnd())
    producer.publish(send_run(list(range(count))))
    await settle()
