"""Decommission: when it may begin, what it tells, and that the cookie goes last."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.decommission import decommission
from bookkeeper.repair.errors import RepairError, RepairRefused
from bookkeeper.repair.recover import RepairProgress
from bookkeeper.repair.settings import RepairSettings
from metadata.memory import MemoryStore
from tests.bookkeeper.fake_bookies import FixedClock, run
from tests.bookkeeper.repair.repair_world import RepairWorld
from tests.bookkeeper.repair.test_auto_recovery import QUICK, in_virtual_time
from tests.bookkeeper.repair.underreplication.test_store import Marks

METADATA = LedgerMetadata(2, 2, 2, (Segment(0, ("b1:3181", "b2:3181")),))


async def clients(marks: Marks) -> tuple[RepairClient, LedgerRegistry, MemoryStore]:
    session = marks.session()
    client = RepairClient(session, RepairSettings(), FixedClock(), Random(1), "shell", {})
    await client.open()
    return client, client.registry, session


def test_a_bookie_that_is_up_or_that_nobody_would_replace_is_not_decommissioned() -> None:
    async def scenario() -> None:
        marks = Marks()
        client, registry, session = await clients(marks)
        await session.put("/ledgers/cookies/b1:3181", b"cookie")
        for parent in ("/ledgers/available", "/ledgers/available/readonly"):
            await session.put(f"{parent}/b1:3181", b"")
            with pytest.raises(RepairRefused, match="is up"):
                await decommission(client, "b1:3181")
            await session.delete(f"{parent}/b1:3181")
        await registry.create(METADATA)
        with pytest.raises(RepairRefused, match="runs nowhere"):
            await decommission(client, "b1:3181")
        await client.marks.disable()
        with pytest.raises(RepairRefused, match="disabled"):
            await decommission(client, "b1:3181")
        assert await session.exists("/ledgers/cookies/b1:3181")
        assert await decommission(client, "b9:3181") is False, "no ledger names it, and it has no cookie"
        await client.close()

    run(scenario())


def test_progress_tells_what_the_rest_may_take() -> None:
    assert RepairProgress(10, 10, 5.0).eta_seconds is None
    assert RepairProgress(10, 5, 5.0).eta_seconds == 5.0
    assert RepairProgress(10, 0, 5.0).eta_seconds == 0.0
    assert RepairProgress(0, 0, 0.0).eta_seconds == 0.0


def test_a_decommissioned_bookie_is_in_no_ledger_and_has_no_cookie_and_each_look_tells_how_long_it_takes() -> None:
    async def scenario() -> None:
        world = RepairWorld(6, QUICK)
        await world.up()
        ids = [await world.closed_ledger((3, 3, 2), number) for number in range(15)]
        session = world.session()
        await session.put("/ledgers/cookies/b0:1", b"cookie")
        await world.auto_recovery()
        await asyncio.sleep(1)
        await world.repair_client().marks.set_lost_bookie_recovery_delay(100_000)
        await world.down("b0:1")
        client = world.repair_client("shell")
        await client.open()
        told: list[RepairProgress] = []
        assert await decommission(client, "b0:1", told.append)
        assert not await session.exists("/ledgers/cookies/b0:1")
        assert not any("b0:1" in segment.bookies for each in ids for segment in world.metadata(each).segments)
        left = [progress.ledgers_left for progress in told]
        assert left[0] > left[-1] == 0
        assert left == sorted(left, reverse=True)
        assert told[0].eta_seconds is None
        await world.until_whole(*ids)
        await world.close()

    in_virtual_time(scenario)


def test_a_decommission_ends_when_the_bookie_comes_back_or_nothing_moves_any_more_and_keeps_the_cookie() -> None:
    async def scenario() -> None:
        world = RepairWorld(3, QUICK)
        await world.up()
        await world.closed_ledger((3, 3, 2), 5)
        session = world.session()
        await session.put("/ledgers/cookies/b0:1", b"cookie")
        await world.auto_recovery()
        await asyncio.sleep(1)
        await world.down("b0:1")
        client = world.repair_client("shell")
        await client.open()
        with pytest.raises(RepairError, match="1 ledgers still name it"):
            await decommission(client, "b0:1", stalled_seconds_max=100.0)
        going_on = asyncio.ensure_future(decommission(client, "b0:1"))
        await asyncio.sleep(10)
        await world.up("b0:1")
        with pytest.raises(RepairRefused, match="is up"):
            await going_on
        assert await session.exists("/ledgers/cookies/b0:1")
        await world.close()

    in_virtual_time(scenario)


def test_the_cookie_stays_until_a_look_at_all_ledgers_has_found_none_that_names_the_bookie() -> None:
    async def scenario() -> None:
        world = RepairWorld(6, QUICK)
        await world.up()
        ids = [await world.closed_ledger((3, 3, 2), 5) for _ in range(5)]
        session = world.session()
        await world.auto_recovery()
        await asyncio.sleep(1)
        await world.down("b0:1")
        client = world.repair_client("shell")
        await client.open()
        late: list[int] = []

        async def name_it_again() -> None:
            """A ledger that was restored, or imported, while the others were copied."""
            metadata = replace(world.metadata(ids[0]), segments=(Segment(0, ("b0:1", "b1:1", "b2:1")),), last_entry_id=-1)
            late.append((await client.registry.create(metadata)).ledger_id)

        naming: list[asyncio.Future[None]] = []

        def report(progress: RepairProgress) -> None:
            if not naming:
                naming.append(asyncio.ensure_future(name_it_again()))

        await decommission(client, "b0:1", report)
        await naming[0]
        assert late != []
        assert not any("b0:1" in segment.bookies for each in (*ids, *late) for segment in world.metadata(each).segments)
        assert not await session.exists("/ledgers/cookies/b0:1")
        await world.close()

    in_virtual_time(scenario)
