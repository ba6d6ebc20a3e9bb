"""Findings of the fuzz of the admin REST (`python -m tests.fuzz --admin`): refused with a reason, or done, and never a 500."""

from tests.broker.admin.admin_world import AdminWorld, play

NAMESPACE = "/admin/v2/namespaces/public/default"


def test_a_listener_that_there_is_none_of_is_not_our_failure() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        answer = await world.call("GET", "/lookup/v2/topic/persistent/public/default/t?listenerName=x")
        assert answer.refused == (412, "the broker do not have x listener")

    play(scenario)


def test_a_type_of_topics_that_may_not_be_made_is_stored_as_by_apache_and_does_nothing() -> None:
    async def scenario(world: AdminWorld) -> None:
        body = {"allowAutoTopicCreation": False, "topicType": "round"}
        assert (await world.call("POST", f"{NAMESPACE}/autoTopicCreation", body)).status == 204
        assert (await world.call("GET", f"{NAMESPACE}/autoTopicCreation")).json["topicType"] == "round"
        await world.done("PUT", "t")
        assert (
            await world.call("POST", f"{NAMESPACE}/autoTopicCreation", {**body, "allowAutoTopicCreation": True})
        ).status == 412

    play(scenario)
