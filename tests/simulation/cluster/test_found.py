"""Defects of brokers that seeds of whole clusters have found: for each a scenario that explains it."""

import asyncio

import pytest

from managed_ledger.contract import EARLIEST
from managed_ledger.errors import ManagedLedgerFenced
from metadata.claim_driver import acquire_lock
from metadata.memory import MemoryStore, OneSession
from metadata.store import StoreClosed
from simulation.world.clock import SimClock
from tests.managed_ledger import ledger_world
from tests.managed_ledger.fake_ledgers import batch
from tests.simulation.worlds import World, run
from wire.position import Position


def test_an_owner_before_that_has_no_ledger_open_can_begin_none() -> None:
    """Seed 877 of 734421c. With nothing to fence it listed a new ledger and had a message acknowledged, of which the next owner
    heard only when it appended itself: until then no consumer of it got the message."""

    async def scenario(_: World) -> None:
        world = ledger_world.World()
        before = await world.open()
        after = await world.factory().open(ledger_world.NAME)
        with pytest.raises(ManagedLedgerFenced):
            await before.append(batch(b"0"))
        assert (await after.append(batch(b"1"))).first_entry_id == 0

    run(scenario)


def test_an_owner_before_answers_no_acknowledgement_that_the_next_one_does_not_know() -> None:
    """Seed 193 of b944633. A cursor without a ledger has nothing to fence: the owner before stored its mark in the node
    that the next one had read already, and answered it; the messages came again."""

    async def scenario(_: World) -> None:
        world = ledger_world.World()
        before = await world.open()
        cursor = await before.open_cursor("sub", EARLIEST)
        first = await before.append(batch(b"0"))
        after = await world.factory().open(ledger_world.NAME)
        cursor.acknowledge_cumulative(Position(first.ledger_id, 0))
        with pytest.raises(ManagedLedgerFenced):
            await cursor.stored()
        assert after.cursors["sub"].backlog_entries() == 1

    run(scenario)


def test_a_lock_that_is_asked_for_of_a_closed_store_is_not_waited_for() -> None:
    """Seed 876 of 734421c: a bundle was being split while the broker stopped, and went on to ask once a second for ever."""

    async def scenario(world: World) -> None:
        store = MemoryStore(SimClock(world.loop))
        await store.close()
        async with asyncio.timeout(10):
            with pytest.raises(StoreClosed):
                await acquire_lock(store, OneSession(), "/lock", b"me", lambda: None)
        assert len(asyncio.all_tasks()) == 1

    run(scenario)
