"""Effects of policies on a loaded topic: a changed policy reaches the part that it concerns, an unchanged one does not."""

from dataclasses import replace

from bookkeeper.ledgers import Quorums
from broker.policies.policies import PersistencePolicy, PublishRate, RetentionPolicy, TopicPolicies
from tests.broker.topic.topic_world import TopicWorld, run

POLICIES = TopicPolicies(retention=RetentionPolicy(10, 2), persistence=PersistencePolicy(3, 2, 2, 0.5))
RETENTION = (600_000, 2 << 20)
PERSISTENCE = (Quorums(3, 2, 2), 0.5)


def test_changed_policies_reach_the_log() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(POLICIES)
        assert (world.ledger.retention, world.ledger.persistence) == (RETENTION, PERSISTENCE)

    run(scenario)


def test_unchanged_policies_are_not_set_again() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(POLICIES)
        world.ledger.set_retention(1, 1)
        world.ledger.set_persistence(Quorums(1, 1, 1), 1.0)
        world.topic.upkeep.apply(replace(POLICIES, publish_rate=PublishRate(5, 0)))
        assert (world.ledger.retention, world.ledger.persistence) == ((1, 1), (Quorums(1, 1, 1), 1.0))

    run(scenario)


def test_persistence_that_is_no_longer_set_goes_back_to_the_defaults_of_ledgers() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(POLICIES)
        world.topic.upkeep.apply(replace(POLICIES, persistence=None))
        assert world.ledger.persistence == (Quorums(), None)

    run(scenario)


def test_policies_of_a_topic_take_effect_before_those_of_its_namespace() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(POLICIES, TopicPolicies(retention=RetentionPolicy(1, 1)))
        assert (world.ledger.retention, world.ledger.persistence) == ((60_000, 1 << 20), PERSISTENCE)

    run(scenario)
