"""Delayed delivery in simulation: the broker, its storage and its clients over a network, with restarts in between."""

import asyncio
from random import Random

import pytest

from broker.topic.contract import SubscriptionType
from simulation.checks.history import Stop
from simulation.world.clock import START_MS
from wire.position import Position

from ..served import Served, Session
from ..worlds import World, run

STRICT = {"isDelayedDeliveryDeliverAtTimeStrict": "true"}
PERSIST_SECONDS = 2.0
MANY = 400
SMALL_LEDGERS = {"managedLedgerMaxEntriesPerLedger": "150", "managedLedgerMinLedgerRolloverTimeMinutes": "0"}
KINDS = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)


def texts(number: int) -> tuple[bytes]:
    return (b"%d" % number,)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_in_strict_mode_come_not_before_their_time_and_within_a_tick_of_it(kind: SubscriptionType) -> None:
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tick_ms", [100, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_times_in_random_order_are_kept_to_the_tick_by_each_message(kind: SubscriptionType, tick_ms: int, seed: int) -> None:
    """Messages due together are scattered over several ledgers: nothing early, nothing more than a tick late, each once."""
    rng = Random(seed)

    async def work(client: Session) -> None:
        await client.subscribe(kind=kind)
        start_ms = client.served.now_ms() + 2000
        times = [start_ms + rng.randrange(20_000) for _ in range(MANY)]
        positions = await client.publish(*map(texts, range(MANY)), deliver_at_ms=times)
        came = await client.receive(25)
        assert sorted(came) == sorted(positions)
        late = [client.arrived_ms[position] - at_ms for position, at_ms in zip(positions, times, strict=True)]
        assert min(late) >= 0, "early"
        assert max(late) <= tick_ms, "late"
        assert client.deliveries == MANY

    async def scenario(world: World) -> None:
        served = Served(world, {**STRICT, "delayedDeliveryTickTimeMillis": str(tick_ms), **SMALL_LEDGERS})
        await served.server.start()
        await served.client(work)

    run(scenario, seed)


def test_f20_who_waits_in_receive_gets_it_in_time_though_nothing_else_happens() -> None:
    """P#25996: strict, no publish after it, no other command of the consumer: the broker has to wake up by itself."""

    async def work(client: Session) -> None:
        await client.subscribe()
        times = [client.served.now_ms() + delay_ms for delay_ms in (50, 999, 5000, 31_000)]
        positions = await client.publish(*map(texts, range(4)), deliver_at_ms=times)
        await client.receive(35)
        late = [client.arrived_ms[position] - at_ms for position, at_ms in zip(positions, times, strict=True)]
        assert all(0 <= each <= 1000 for each in late), late

    async def scenario(world: World) -> None:
        served = Served(world, STRICT)
        await served.server.start()
        await served.client(work)

    run(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_kill_what_is_due_comes_while_the_rest_is_read_again(kind: SubscriptionType) -> None:
    """Half of it acknowledged: that does not come again. All that was due meanwhile comes at once, the rest in its time."""
    rng = Random(5)
    delays_ms = [rng.randrange(1000, 30_000) for _ in range(MANY)]

    async def before(client: Session) -> dict[Position, int]:
        await client.subscribe(kind=kind)
        times = [client.served.now_ms() + delay_ms for delay_ms in delays_ms]
        positions = await client.publish(*map(texts, range(MANY)), deliver_at_ms=times)
        done = await client.receive(15)
        for position in done:
            await client.acknowledge(position)
        left = {position: at_ms for position, at_ms in zip(positions, times, strict=True) if position not in done}
        assert MANY // 4 < len(left) < MANY
        return left

    async def after(client: Session, left: dict[Position, int]) -> None:
        await client.subscribe(kind=kind)
        since_ms = client.served.now_ms()
        came = await client.receive(32)
        assert came.keys() == left.keys()
        late = [client.arrived_ms[position] - max(at_ms, since_ms) for position, at_ms in left.items()]
        assert min(late) >= 0, "early"
        assert max(late) <= 1000, "late"
        assert client.deliveries == len(left)

    async def scenario(world: World) -> None:
        served = Served(world, {**STRICT, **SMALL_LEDGERS})
        await served.server.start()
        left = await served.client(before)
        await asyncio.sleep(PERSIST_SECONDS)
        await served.restart(Stop.KILL)
        await served.client(lambda client: after(client, left))

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
