"""Admin REST on partitioned topics: statuses and reasons as an Apache Pulsar 4.0.8 gave them."""

from typing import Any

import pytest

from tests.broker.admin.admin_world import NAME, TOPICS, AdminWorld, play
from tests.broker.topic.topic_world import PRODUCER, ProducerEnd

NAMESPACE = "/admin/v2/namespaces/public/default"


def test_a_partitioned_topic_is_created_read_and_deleted() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 3)
        assert (await world.topic("PUT", "p/partitions", 3)).refused == (409, "This topic already exists")
        assert (await world.topic("PUT", "p")).refused == (409, "This topic already exists")
        assert (await world.topic("GET", "p/partitions")).json == {"partitions": 3, "deleted": False}
        assert (await world.topic("GET", "p-partition-0/partitions")).json == {"partitions": 0, "deleted": False}
        await world.done("DELETE", "p/partitions")
        assert (await world.topic("DELETE", "p/partitions")).refused == (404, f"Topic {NAME}/p not found.")
        assert (await world.get(TOPICS)).json == []

    play(scenario)


def test_properties_given_with_the_number_are_kept() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "without/partitions", 2)
        assert (await world.topic("GET", "without/properties")).status == 204, "Java's client reads null, as from Apache"
        await world.done("PUT", "p/partitions", {"partitions": 2, "properties": {"a": "b"}})
        expected = {"partitions": 2, "deleted": False, "properties": {"a": "b"}}
        assert (await world.topic("GET", "p/partitions")).json == expected

    play(scenario)


@pytest.mark.parametrize("body", ["3", " 3 ", 3.0, "3.0", {"partitions": "3"}])
def test_the_number_may_come_as_text_or_with_a_point(body: Any) -> None:
    """Numbers are read like Jackson does; the Rust client's tests send text."""

    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", body)
        assert (await world.topic("GET", "p/partitions")).json == {"partitions": 3, "deleted": False}

    play(scenario)


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (0, (406, "Number of partitions should be more than 0")),
        (-1, (406, "Number of partitions should be more than 0")),
        (None, (400, "expected the number of partitions")),
        (True, (400, "expected the number of partitions")),
        (1.5, (400, "expected the number of partitions")),
        ("x", (400, "expected the number of partitions")),
        ("9" * 5000, (400, "expected the number of partitions")),
        ("", (406, "Number of partitions should be more than 0")),
        ({"partitions": 2, "properties": 1}, (400, "properties: expected an object")),
        (100_001, (406, "Number of partitions should be between 1 and 100000, not 100001")),
    ],
)
def test_a_number_that_cannot_be_makes_nothing(body: Any, refused: tuple[int, str]) -> None:
    async def scenario(world: AdminWorld) -> None:
        assert (await world.topic("PUT", "p/partitions", body)).refused == refused
        assert (await world.get(f"{TOPICS}/partitioned")).json == []

    play(scenario)


def test_partitions_become_more_never_fewer() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 3)
        for count in (2, 0):
            reason = f"Desired partitions {count} can't be less than the current partitions 3."
            assert (await world.topic("POST", "p/partitions", count)).refused == (422, reason)
        await world.done("POST", "p/partitions", 3)
        await world.done("POST", "p/partitions", 4)
        assert len((await world.get(TOPICS)).json) == 4
        missing = (409, f"Topic {NAME}/none is not the partitioned topic.")
        assert (await world.topic("POST", "none/partitions", 4)).refused == missing

    play(scenario)


def test_a_subscription_on_a_partition_that_its_topic_does_not_have_is_refused() -> None:
    """AdminApi2Test.testFailedUpdatePartitionedTopic expects 412; it was 405."""

    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        refused = (412, "Topic does not exist and cannot be auto-created")
        assert (await world.topic("PUT", "p-partition-2/subscription/s")).refused == refused

    play(scenario)


def test_a_topic_over_the_limit_of_its_namespace_is_refused_in_apaches_words() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.call("POST", f"{NAMESPACE}/maxTopicsPerNamespace", 2)
        await world.done("PUT", "p/partitions", 2)
        refused = (412, "Exceed maximum number of topics in namespace.")
        assert (await world.topic("PUT", "q/partitions", 1)).refused == refused
        assert (await world.topic("PUT", "q")).refused == refused
        await world.done("PUT", "__change_events/partitions", 6)

    play(scenario)


def test_names_of_partitions_are_no_topics_of_their_own() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        cannot = 'Can\'t create topic {} with "-partition-" followed by {}'
        beyond = cannot.format("p-partition-9", "a number smaller than number of partition of partitioned topic p")
        assert (await world.topic("PUT", "p-partition-9")).refused == (412, beyond)
        without = cannot.format("q-partition-1", "numeric value if there isn't a partitioned topic q created.")
        assert (await world.topic("PUT", "q-partition-1")).refused == (412, without)
        nested = (412, "Partitioned Topic Name should not contain '-partition-'")
        assert (await world.topic("PUT", "q-partition-1/partitions", 2)).refused == nested
        assert (await world.topic("GET", "p-partition-9/stats")).refused == (404, "Topic partitions were not yet created")

    play(scenario)


def test_each_kind_is_deleted_its_own_way() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        await world.done("PUT", "t")
        advice = "instead of calling delete topic, please call delete-partitioned-topic."
        assert (await world.topic("DELETE", "p")).refused == (409, f"{NAME}/p is a partitioned topic, {advice}")
        advice = "Instead of calling delete-partitioned-topic please call delete."
        assert (await world.topic("DELETE", "t/partitions")).refused == (409, f"{NAME}/t is a non-partitioned topic. {advice}")
        assert len((await world.get(TOPICS)).json) == 3

    play(scenario)


def test_a_partition_in_use_keeps_the_topic_unless_forced() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        await (await world.loaded("p-partition-1")).add_producer(PRODUCER, ProducerEnd())
        assert (await world.topic("DELETE", "p/partitions")).status == 412
        assert (await world.topic("GET", "p/partitions")).json["partitions"] == 2
        await world.done("DELETE", "p/partitions?force=true")
        assert (await world.get(TOPICS)).json == []

    play(scenario)


def test_a_subscription_is_made_on_every_partition_and_deleted_from_each() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        await world.done("PUT", "p-partition-0/subscription/s")
        await world.done("PUT", "p/subscription/s")
        assert (await world.topic("GET", "p/subscriptions")).json == ["s"]
        for index in range(2):
            assert list((await world.topic("GET", f"p-partition-{index}/stats")).json["subscriptions"]) == ["s"]
        await world.done("DELETE", "p-partition-0/subscription/s")
        await world.done("DELETE", "p/subscription/s")
        assert (await world.topic("DELETE", "p/subscription/s")).refused == (404, "Subscription not found")

    play(scenario)


def test_stats_are_sums_and_each_partition_if_asked() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        await world.done("PUT", "p/subscription/s")
        stats = (await world.topic("GET", "p/partitioned-stats")).json
        assert list(stats["partitions"]) == [f"{NAME}/p-partition-0", f"{NAME}/p-partition-1"]
        assert (stats["metadata"]["partitions"], stats["subscriptions"]["s"]["msgBacklog"]) == (2, 0)
        assert (await world.topic("GET", "p/partitioned-stats?perPartition=false")).json["partitions"] == {}
        assert (await world.topic("GET", "p/stats")).refused == (404, f"Topic {NAME}/p not found")
        missing = (404, f"Partitioned Topic {NAME}/t not found")
        assert (await world.topic("GET", "t/partitioned-stats")).refused == missing

    play(scenario)


def test_unloading_a_partitioned_topic_unloads_its_partitions() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        await world.done("PUT", "p/subscription/s")
        assert len(world.service.catalogue.loaded_topics) == 2
        await world.done("PUT", "p/unload")
        assert not world.service.catalogue.loaded_topics

    play(scenario)


@pytest.mark.parametrize(("query", "status"), [("", 404), ("?checkAllowAutoCreation=true", 200)])
def test_partitions_of_a_missing_topic_are_0_only_where_it_would_be_made(query: str, status: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.topic("GET", f"none/partitions{query}")
        assert answer.status == status
        if status == 200:
            assert answer.json == {"partitions": 0, "deleted": False}

    play(scenario)
