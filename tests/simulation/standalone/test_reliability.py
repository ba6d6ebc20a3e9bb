"""Failures that others have had, by their number in the catalogue of scenarios, on a whole server with clients."""

import asyncio
import functools
import logging

import pytest

from bookkeeper.ledger_metadata.paths import ledger_path
from broker.topic.contract import SubscriptionType
from metadata.store import Delete
from simulation.checks.history import Stop
from simulation.clients.consumer import ConsumerShape
from simulation.clients.producer import ProducerShape
from simulation.standalone.faults import PERSIST_SECONDS
from simulation.standalone.plan import QUIET_SETTINGS, Fault, FaultKind, Plan
from simulation.standalone.scenario import Scenario
from wire.position import Position

from ..served import Served, Session
from ..worlds import World, run


def test_f03_a_message_of_a_batch_that_was_acknowledged_is_not_delivered_again_after_a_kill() -> None:
    """P#26498."""

    async def acknowledge_a(client: Session) -> None:
        (position,) = await client.publish((b"A", b"B"))
        await client.subscribe()
        assert await client.receive(1) == {position: [b"A", b"B"]}
        await client.acknowledge(position, left=[1], size=2)

    async def receive_again(client: Session) -> list[list[bytes]]:
        await client.subscribe()
        return list((await client.receive(1)).values())

    async def scenario(world: World) -> None:
        served = Served(world)
        await served.server.start()
        await served.client(acknowledge_a)
        await asyncio.sleep(PERSIST_SECONDS)
        await served.restart(Stop.KILL)
        assert await served.client(receive_again) == [[b"B"]]

    run(scenario)


RESTARTS = (
    (FaultKind.RESTART, FaultKind.RESTART, FaultKind.RESTART),
    (FaultKind.KILL, FaultKind.RESTART, FaultKind.KILL),
    (FaultKind.POWER_CUT, FaultKind.KILL, FaultKind.POWER_CUT),
)


@pytest.mark.parametrize("kinds", RESTARTS, ids=lambda kinds: " ".join(kind.value for kind in kinds))
@pytest.mark.parametrize("seed", range(3))
def test_f04_restarts_of_storage_and_broker_while_acknowledging_lose_and_skip_nothing(
    seed: int, kinds: tuple[FaultKind, ...]
) -> None:
    """P#22709: every published message is delivered, without a gap, and no acknowledgement is ahead of the data.

    The checker says so: it knows every receipt, delivery and acknowledgement, and drains each subscription at the end.
    """
    shapes = [
        ConsumerShape(f"s{int(kind)}", kind, f"c{index}", 10, 0.9, cumulative, 0.3, 0.5, 0.0, 0.0, 0.0, 0.02)
        for kind, cumulative in (
            (SubscriptionType.SHARED, 0.0),
            (SubscriptionType.FAILOVER, 0.5),
            (SubscriptionType.KEY_SHARED, 0.0),
        )
        for index in range(2)
    ]
    plan = Plan(
        seed,
        {**QUIET_SETTINGS, "managedLedgerMaxEntriesPerLedger": "7", "flushInterval": "200"},
        clients=2,
        producers=tuple((number, ProducerShape(f"p{number}", 60, 3, 200, 5, 0.1, 3)) for number in range(2)),
        consumers=tuple((number % 2, shape) for number, shape in enumerate(shapes)),
        faults=tuple(Fault(1.0 + 2 * number, kind, 0.3, 0) for number, kind in enumerate(kinds)),
        sync_seconds=0.002,
    )
    outcome = Scenario(plan).run()
    assert outcome.failure is None
    assert outcome.events["Acknowledged"] >= 120
    assert outcome.events["ServerStopped"] >= 3


@pytest.mark.parametrize("end", ["unload", "restart", "kill"])
def test_f21_of_delayed_messages_the_acknowledged_ones_do_not_come_again(end: str) -> None:
    """P#20099, P#20638. Whether they come at once or when their time is there."""
    delay_seconds, count = 5, 6

    async def acknowledge_every_second(client: Session) -> None:
        await client.subscribe()
        texts = [(b"%d" % number,) for number in range(count)]
        positions = await client.publish(*texts, deliver_at_ms=client.served.now_ms() + delay_seconds * 1000)
        received = await client.receive(delay_seconds + 2)
        assert sorted(received) == positions
        for position in positions[::2]:
            await client.acknowledge(position)

    async def receive_again(client: Session) -> list[list[bytes]]:
        await client.subscribe()
        return list((await client.receive(delay_seconds + 2)).values())

    async def scenario(world: World) -> None:
        served = Served(world)
        await served.server.start()
        await served.client(acknowledge_every_second)
        if end == "unload":
            await served.unload()
        elif end == "restart":
            await served.restart(Stop.CLEAN)
        else:
            await asyncio.sleep(PERSIST_SECONDS)
            await served.restart(Stop.KILL)
        assert await served.client(receive_again) == [[b"1"], [b"3"], [b"5"]]

    run(scenario)


CHECKS = {"messageExpiryCheckIntervalInMinutes": "1", "managedLedgerMaxEntriesPerLedger": "300"}


async def subscribe_and_publish(client: Session, count: int) -> None:
    await client.subscribe(permits=1)
    await client.publish(*[(b"%d" % number,) for number in range(count)])


async def backlog(client: Session) -> list[bytes]:
    await client.subscribe()
    return [text for texts in (await client.receive(1)).values() for text in texts]


def test_f08_three_checks_of_a_time_to_live_that_nothing_has_reached_acknowledge_nothing() -> None:
    """P#5579, P#6211: each check dropped one message."""

    async def scenario(world: World) -> None:
        served = Served(world, {**CHECKS, "ttlDurationDefaultInSeconds": "3600"})
        await served.server.start()
        await served.client(functools.partial(subscribe_and_publish, count=5))
        await asyncio.sleep(3 * 61)
        assert await served.client(backlog) == [b"%d" % number for number in range(5)]

    run(scenario)


def test_f09_a_thousand_expired_messages_go_in_one_check() -> None:
    """P#8975. They are in four ledgers, of which three are closed."""

    async def scenario(world: World) -> None:
        served = Served(world, {**CHECKS, "ttlDurationDefaultInSeconds": "30"})
        await served.server.start()
        await served.client(functools.partial(subscribe_and_publish, count=1000))
        assert world.loop.time() < 25
        assert len(await served.client(backlog)) == 1000
        await asyncio.sleep(65 - world.loop.time())
        assert await served.client(backlog) == []

    run(scenario)


def test_f10_expiry_passes_over_a_ledger_that_is_gone_and_says_what_it_skipped(caplog: pytest.LogCaptureFixture) -> None:
    """P#19131, with autoSkipNonRecoverableData. The ledger in the middle was closed too late to be skipped unread."""
    settings = {**CHECKS, "ttlDurationDefaultInSeconds": "90", "autoSkipNonRecoverableData": "true"}

    async def publish(client: Session, first: int, count: int) -> list[Position]:
        return await client.publish(*[(b"%d" % number,) for number in range(first, first + count)])

    async def scenario(world: World) -> None:
        served = Served(world, {**settings, "managedLedgerMaxEntriesPerLedger": "10"})
        await served.server.start()
        await served.client(functools.partial(subscribe_and_publish, count=15))
        await asyncio.sleep(50)
        young = await served.client(functools.partial(publish, first=15, count=10))
        gone, kept = young[0].ledger_id, young[-1].ledger_id
        assert (young[0].entry_id, young[-1].entry_id) == (5, 4), "five old ones, five young ones; then another ledger"
        await served.server.stop()
        served.server.tree.apply([Delete(ledger_path(gone))], 0, served.now_ms())
        await served.server.start()
        await served.client(functools.partial(publish, first=25, count=1))
        assert served.mark_delete("sub") < Position(gone, 0)
        await asyncio.sleep(61)
        assert Position(gone, 9) <= served.mark_delete("sub") < Position(kept, 0)
        assert await served.client(backlog) == [b"%d" % number for number in range(20, 26)]

    with caplog.at_level(logging.ERROR):
        run(scenario)
    [told] = [record.getMessage() for record in caplog.records if "skipped" in record.getMessage()]
    assert "first_entry=0" in told
    assert "last_entry=9" in told
