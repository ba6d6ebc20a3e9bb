"""A time to live is exact to a second, on a whole server with clients and at whatever phase messages come (Apache looks each
messageExpiryCheckIntervalInMinutes, which are whole minutes)."""

import asyncio
import functools

import pytest

from broker.topic.contract import SubscriptionType
from wire.position import Position

from ..served import Served, Session
from ..worlds import World, run

TTL_SECONDS = 7
LATE_SECONDS_MAX = 1.0
STEP_SECONDS = 0.01


async def subscribed(client: Session, kind: SubscriptionType) -> None:
    """Subscribes a consumer that takes one message and acknowledges none."""
    await client.subscribe(kind=kind, permits=1)


async def published(client: Session, text: bytes) -> Position:
    (position,) = await client.publish((text,))
    return position


@pytest.mark.parametrize("kind", list(SubscriptionType))
@pytest.mark.parametrize("pauses", [(0.0, 0.35, 3.6), (2.5, 0.01, 8.2)], ids=str)
def test_each_message_is_there_for_its_time_to_live_and_gone_within_a_second_after_it(
    kind: SubscriptionType, pauses: tuple[float, ...]
) -> None:
    async def scenario(world: World) -> None:
        served = Served(world, {"ttlDurationDefaultInSeconds": str(TTL_SECONDS)})
        await served.server.start()
        await served.client(functools.partial(subscribed, kind=kind))
        born: dict[Position, tuple[float, float]] = {}
        gone: dict[Position, float] = {}

        def look() -> None:
            mark = served.mark_delete("sub")
            for position in born:
                if position <= mark:
                    gone.setdefault(position, world.loop.time())

        async def passed(seconds: float) -> None:
            end = world.loop.time() + seconds
            while world.loop.time() < end:
                await asyncio.sleep(STEP_SECONDS)
                look()

        for index, pause in enumerate(pauses):
            await passed(pause)
            before = world.loop.time()
            position = await served.client(functools.partial(published, text=b"%d" % index))
            born[position] = before, world.loop.time()
        await passed(TTL_SECONDS + 2)
        for position, (before, after) in born.items():
            assert before + TTL_SECONDS <= gone[position] <= after + TTL_SECONDS + LATE_SECONDS_MAX + STEP_SECONDS

    run(scenario)
