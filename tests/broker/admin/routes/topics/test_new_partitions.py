"""Subscriptions of new partitions: those of the first one, from the earliest message on."""

from tests.broker.admin.admin_world import AdminWorld, play


def test_new_partitions_have_the_subscriptions_of_the_first_from_the_earliest_message_on() -> None:
    """AdminApi2Test.testIncrementPartitionsOfTopic: what was sent to a new partition was in nobody's backlog."""

    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 1)
        await world.done("PUT", "p-partition-0/subscription/s%2Fencoded", {"ledgerId": -1, "properties": {"a": "b"}})
        await world.done("POST", "p/partitions", 3)
        for index in (1, 2):
            [(name, found)] = (await world.topic("GET", f"p-partition-{index}/stats")).json["subscriptions"].items()
            assert (name, found["subscriptionProperties"]) == ("s/encoded", {"a": "b"})
        await world.done("PUT", "p-partition-0/subscription/second")
        await world.done("POST", "p/partitions", 3)
        assert set((await world.topic("GET", "p-partition-2/stats")).json["subscriptions"]) == {"s/encoded", "second"}

    play(scenario)
