"""Policies of a namespace that are judged by the broker's own settings."""

from broker.service.settings import BrokerSettings
from tests.broker.admin.admin_world import AdminWorld, play

AUTO = "/admin/v2/namespaces/public/default/autoTopicCreation"


def test_topics_to_come_get_no_more_partitions_than_a_topic_may_have() -> None:
    async def scenario(world: AdminWorld) -> None:
        def of(partitions: int) -> dict[str, object]:
            return {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": partitions}

        assert (await world.call("POST", AUTO, of(10))).status == 204
        refused = (await world.call("POST", AUTO, of(11))).refused
        assert refused == (406, "Number of partitions should be less than or equal to 10")
        assert (await world.call("GET", AUTO)).json["defaultNumPartitions"] == 10

    play(scenario, BrokerSettings(max_num_partitions_per_partitioned_topic=10))
