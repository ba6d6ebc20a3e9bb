"""Receipts of acknowledgements: a receipt promises that the acknowledgement is stored."""

import asyncio

import pytest
from pyroaring import BitMap

from managed_ledger.errors import ManagedLedgerError

from ..ledger_world import World, run, small
from .cursor_steps import cursor_ledgers, with_cursor


def test_answered_acknowledgements_survive_a_crash_at_a_low_rate_limit_and_share_writes() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_default_mark_delete_rate_limit=0.001), step_s=0.001)
        _, cursor, positions = await with_cursor(world, 30)
        waiting = []
        for position in positions[:20]:
            cursor.acknowledge_cumulative(position)
            waiting.append(asyncio.ensure_future(cursor.stored()))
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        [ledger_id] = cursor_ledgers(world)
        assert world.shared.ledgers[ledger_id].stored_last + 1 <= 2, "the first one, and one for all that came meanwhile"
        cursor.acknowledge_cumulative(positions[25])
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[19]

    run(scenario())


def test_an_acknowledgement_that_cannot_be_stored_is_answered_with_an_error() -> None:
    async def scenario() -> None:
        nothing_in_nodes = {"managed_ledger_max_unacked_ranges_to_persist_in_metadata_store": 0}
        world = World(small(managed_ledger_default_mark_delete_rate_limit=0.001, **nothing_in_nodes))
        ledger, cursor, positions = await with_cursor(world, 3)
        world.ledger_store.fail_creates = 1
        cursor.acknowledge_entries(positions[1].ledger_id, BitMap([positions[1].entry_id]))
        with pytest.raises(ManagedLedgerError, match="no bookies"):
            await cursor.stored()
        await ledger.delete_cursor("sub")
        cursor.acknowledge_cumulative(positions[1])
        with pytest.raises(ManagedLedgerError, match="closed before"):
            await cursor.stored()

    run(scenario())


def test_a_cursor_is_stored_in_its_node_while_no_bookie_takes_entries() -> None:
    """Disks may be too full for a message, not for an acknowledgement, as in Apache."""

    async def scenario() -> None:
        world = World(small())
        _, cursor, positions = await with_cursor(world, 10)
        cursor.acknowledge_cumulative(positions[0])
        await cursor.stored()
        assert len(cursor_ledgers(world)) == 1
        world.ledger_store.fail_appends = 1
        world.ledger_store.fail_creates = 1
        cursor.acknowledge_entries(positions[2].ledger_id, BitMap([positions[2].entry_id, positions[4].entry_id]))
        await cursor.stored()
        assert cursor_ledgers(world) == []
        found = (await world.reopen()).cursors["sub"]
        assert found.mark_delete == positions[0]
        assert [found.is_acknowledged(each) for each in positions[1:6]] == [False, True, False, True, False]
        found.acknowledge_cumulative(positions[5])
        await found.stored()
        assert len(cursor_ledgers(world)) == 1, "bookies take entries again, and get the cursor"

    run(scenario())
