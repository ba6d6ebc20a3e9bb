"""A subscription through its driver against the naive model, on a ledger in memory: random schedules, slow reads."""

import random

import pytest

from broker.topic.contract import SubscriptionType
from tests.broker.topic.subscription.subscription_model import Model
from tests.broker.topic.topic_world import TopicWorld, run

SCHEDULES = 60
STEPS = 60


@pytest.mark.parametrize("subscription_type", list(SubscriptionType))
@pytest.mark.parametrize("block", range(4))
def test_the_subscription_behaves_as_the_naive_model(subscription_type: SubscriptionType, block: int) -> None:
    for schedule in range(SCHEDULES // 4):
        rng = random.Random(f"{subscription_type} {block} {schedule}")

        async def scenario(rng: random.Random = rng) -> None:
            world = TopicWorld()
            world.ledger.read_seconds = lambda: rng.choice((0.0, 0.0, 0.001, 0.02))
            model = Model(world, rng, subscription_type)
            await model.join()
            for _ in range(STEPS):
                await model.step()
                if rng.random() < 0.05:
                    world.ledger.roll_over()
            await model.finish()

        run(scenario, rng.getrandbits(30))
