"""What a receipt of an acknowledgement promises: that it is stored."""

import asyncio

import pytest

from managed_ledger.errors import ManagedLedgerError

from .cursor_steps import cursor_ledgers, with_cursor
from .ledger_world import World, run, small


def test_what_was_answered_survives_a_crash_whatever_the_rate_and_waiters_share_writes() -> None:
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


def test_what_cannot_be_stored_is_not_answered_as_if_it_were() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_default_mark_delete_rate_limit=0.001))
        ledger, cursor, positions = await with_cursor(world, 3)
        world.ledger_store.fail_creates = 1
        cursor.acknowledge_cumulative(positions[0])
        with pytest.raises(ManagedLedgerError, match="no bookies"):
            await cursor.stored()
        await ledger.delete_cursor("sub")
        cursor.acknowledge_cumulative(positions[1])
        with pytest.raises(ManagedLedgerError, match="closed before"):
            await cursor.stored()

    run(scenario())
