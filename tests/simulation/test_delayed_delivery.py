"""Delayed delivery in simulation: the broker, its storage and its clients over a network, with restarts in between."""

import asyncio

import pytest

from broker.topic.contract import SubscriptionType
from simulation.clock import START_MS
from simulation.history import Stop

from .served import Served, Session
from .worlds import World, run

STRICT = {"isDelayedDeliveryDeliverAtTimeStrict": "true"}
PERSIST_SECONDS = 2.0
KINDS = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)


def texts(number: int) -> tuple[bytes]:
    return (b"%d" % number,)


@pytest.mark.parametrize("kind", KINDS)
def test_in_strict_mode_nothing_comes_before_its_time_and_all_within_a_tick_of_it(kind: SubscriptionType) -> None:
    async def work(client: Session) -> None:
        await client.subscribe(kind=kind)
        now_ms = client.served.now_ms()
        positions = await client.publish(*map(texts, range(5)), deliver_at_ms=now_ms + 5000)
        early = await client.receive((now_ms + 4990 - client.served.now_ms()) / 1000)
        assert early == {}
        assert sorted(await client.receive(1.02)) == positions
        assert client.deliveries == 5

    async def scenario(world: World) -> None:
        served = Served(world, STRICT)
        await served.server.start()
        await served.client(work)

    run(scenario)


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER])
def test_other_types_of_subscriptions_get_delayed_messages_at_once_as_with_apache(kind: SubscriptionType) -> None:
    async def work(client: Session) -> None:
        await client.subscribe(kind=kind)
        positions = await client.publish(texts(1), deliver_at_ms=client.served.now_ms() + 3_600_000)
        assert sorted(await client.receive(1)) == positions

    async def scenario(world: World) -> None:
        served = Served(world, STRICT)
        await served.server.start()
        await served.client(work)

    run(scenario)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["unload", "restart", "kill", "power"])
def test_f21_what_waits_over_a_restart_comes_once_at_its_time_and_nothing_is_lost(kind: SubscriptionType, end: str) -> None:
    """Acknowledged ones are mixed with those that wait: they do not come again (P#20099, P#20638)."""
    due_ms = START_MS + 40_000

    async def before(client: Session) -> None:
        await client.subscribe(kind=kind)
        at_once = await client.publish(*map(texts, range(4)))
        assert sorted(await client.receive(1)) == at_once
        for position in at_once[1:]:
            await client.acknowledge(position)

    async def publish(client: Session) -> None:
        await client.subscribe(kind=kind)
        await client.publish(*map(texts, range(10, 16)), deliver_at_ms=due_ms)
        await client.receive(1)

    async def after(client: Session) -> None:
        await client.subscribe(kind=kind)
        came = await client.receive(1)
        assert list(came.values()) == [[b"0"]]
        await client.receive((due_ms - 20 - client.served.now_ms()) / 1000)
        assert client.deliveries == 1
        await client.receive(1.1)
        assert client.deliveries == 7
        assert [text for group in list(client.received.values())[1:] for text in group] == [b"%d" % n for n in range(10, 16)]

    async def scenario(world: World) -> None:
        served = Served(world, STRICT)
        await served.server.start()
        await served.client(before)
        await served.client(publish)
        if end == "unload":
            await served.unload()
        else:
            await asyncio.sleep(PERSIST_SECONDS)
            await served.restart({"restart": Stop.CLEAN, "kill": Stop.KILL, "power": Stop.POWER_CUT}[end])
        await served.client(after)

    run(scenario)


def test_a_clock_that_is_set_forward_is_noticed_within_ten_seconds() -> None:
    async def work(client: Session) -> None:
        await client.subscribe()
        await client.publish(texts(1), deliver_at_ms=client.served.now_ms() + 3_600_000)
        assert await client.receive(1) == {}
        client.served.server.clock.offset_ms += 3_600_000
        assert len(await client.receive(11)) == 1

    async def scenario(world: World) -> None:
        served = Served(world, STRICT)
        await served.server.start()
        await served.client(work)

    run(scenario)
