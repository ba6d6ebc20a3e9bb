"""Properties of a cursor: the subscriber's and the broker's own, and the ledgers that some of the latter name."""

import asyncio

import pytest

from managed_ledger.contract import EARLIEST, ManagedLedgerError
from managed_ledger.cursor.properties import apache_bucket_key, bucket_key, bucket_ledgers, public

from ..ledger_world import World, run
from .cursor_steps import node, with_cursor


def test_the_subscriber_changes_nothing_of_the_brokers_own_and_the_broker_nothing_of_the_subscribers() -> None:
    async def scenario() -> None:
        world = World()
        _, cursor, _ = await with_cursor(world, 3)
        await cursor.set_cursor_properties({"a": "1", "b": "2"})
        await cursor.change_cursor_properties({bucket_key(7): "7", apache_bucket_key(3, 4): "8"})
        await cursor.set_cursor_properties({"c": "3"})
        await cursor.change_cursor_properties({bucket_key(9): "9"}, [bucket_key(7)])
        wanted = {apache_bucket_key(3, 4): "8", bucket_key(9): "9", "c": "3"}
        assert (await node(world)).cursor_properties == wanted
        cursor = (await world.reopen()).cursors["sub"]
        assert cursor.cursor_properties == wanted
        assert public(cursor.cursor_properties) == {"c": "3"}
        assert sorted(bucket_ledgers(cursor.cursor_properties).values()) == [8, 9]

    run(scenario())


def test_changes_at_the_same_time_are_all_there() -> None:
    async def scenario() -> None:
        _, cursor, _ = await with_cursor(World(step_s=0.01), 3)
        await asyncio.gather(*(cursor.change_cursor_properties({bucket_key(number): str(number)}) for number in range(5)))
        assert len(bucket_ledgers(cursor.cursor_properties)) == 5

    run(scenario())


@pytest.mark.parametrize("by", ["subscription", "topic"])
def test_with_a_cursor_go_the_ledgers_that_its_properties_name(by: str) -> None:
    async def scenario() -> None:
        world = World()
        ledger, cursor, _ = await with_cursor(world, 3)
        made = [(await world.ledger_store.create({})).ledger_id for _ in range(2)]
        await cursor.change_cursor_properties({bucket_key(made[0]): str(made[0]), apache_bucket_key(1, 2): str(made[1])})
        await cursor.set_cursor_properties({"a": str(made[0])})
        if by == "subscription":
            await ledger.delete_cursor("sub")
        else:
            await ledger.delete()
        assert set(made) <= set(world.shared.deleted)
        with pytest.raises(ManagedLedgerError):
            await cursor.change_cursor_properties({"x": "y"})

    run(scenario())


def test_a_cursor_that_is_closed_takes_no_properties_and_what_is_stored_stays() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST, {"k": "v"})
        await cursor.close()
        with pytest.raises(ManagedLedgerError):
            await cursor.set_cursor_properties({"x": "y"})
        assert (await node(world)).cursor_properties == {"k": "v"}

    run(scenario())
