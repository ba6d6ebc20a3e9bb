"""Scenarios of where and when a cursor is stored: its node, its cursor ledgers, fencing, damage."""

import asyncio

import pytest
from pyroaring import BitMap

from managed_ledger.contract import EARLIEST, ManagedLedgerError, ManagedLedgerFenced
from wire.generated.managed_ledger_pb2 import ManagedCursorInfo

from ..ledger_world import NAME, World, append_each, run, small
from .cursor_steps import cursor_ledgers, node, with_cursor


def test_a_new_cursor_is_one_node_and_no_ledger() -> None:
    async def scenario() -> None:
        world = World()
        await (await world.open()).open_cursor("sub", EARLIEST, {"k": "v"})
        found = await node(world)
        assert found.cursors_ledger_id == -1
        assert found.cursor_properties == {"k": "v"}
        assert world.shared.creates == 0

    run(scenario())


def test_a_mark_is_written_to_a_cursor_ledger_at_the_rate_and_the_last_one_soon_after() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_default_mark_delete_rate_limit=1.0))
        ledger, cursor, positions = await with_cursor(world, 30)
        for position in positions[:20]:
            cursor.acknowledge_cumulative(position)
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.1)
        [ledger_id] = cursor_ledgers(world)
        assert 2 <= world.shared.ledgers[ledger_id].stored_last <= 4
        ledger = await world.reopen()
        assert ledger.cursors["sub"].mark_delete == positions[19]
        assert ledger.cursors["sub"].backlog_entries() == 10

    run(scenario())


def test_the_persistent_mark_is_where_a_kill_goes_back_to() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_default_mark_delete_rate_limit=1.0))
        ledger, cursor, positions = await with_cursor(world, 30)
        assert cursor.persistent_mark_delete == cursor.mark_delete
        assert ledger.open_non_durable_cursor("r", EARLIEST).persistent_mark_delete == EARLIEST
        cursor.acknowledge_cumulative(positions[3])
        await cursor.flush()
        cursor.acknowledge_cumulative(positions[7])
        cursor.acknowledge_entries(positions[9].ledger_id, BitMap([positions[9].entry_id]))
        assert (cursor.persistent_mark_delete, cursor.mark_delete) == (positions[3], positions[7])
        cursor = (await world.reopen()).cursors["sub"]
        assert cursor.persistent_mark_delete == cursor.mark_delete == positions[3]
        cursor.acknowledge_cumulative(positions[12])
        await cursor.set_cursor_properties({"a": "b"})
        assert cursor.persistent_mark_delete == positions[12]
        await cursor.reset(positions[5])
        assert cursor.persistent_mark_delete == positions[4]
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[4]

    run(scenario())


def test_an_acknowledgement_during_a_flush_is_written_soon_after() -> None:
    async def scenario() -> None:
        world = World(step_s=0.01)
        _, cursor, positions = await with_cursor(world, 5)
        cursor.acknowledge_cumulative(positions[0])
        flushing = asyncio.ensure_future(cursor.flush())
        await asyncio.sleep(0.015)
        cursor.acknowledge_cumulative(positions[3])
        await flushing
        await asyncio.sleep(1)
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[3]

    run(scenario())


def test_a_clean_close_writes_the_place_into_the_node_and_drops_the_cursor_ledger() -> None:
    async def scenario() -> None:
        world = World()
        ledger, cursor, positions = await with_cursor(world, 8)
        cursor.acknowledge_entries(positions[0].ledger_id, BitMap([0, 2, 5]))
        await cursor.flush()
        assert len(cursor_ledgers(world)) == 1
        await ledger.close()
        assert cursor_ledgers(world) == []
        found = await node(world)
        assert found.cursors_ledger_id == -1
        assert found.state is not None
        assert found.state.mark_delete == positions[0]
        again = (await world.open()).cursors["sub"]
        assert again.acknowledged_in(positions[0].ledger_id) == BitMap([2, 5])
        assert again.backlog_entries() == 5

    run(scenario())


def test_with_more_holes_than_the_node_may_have_a_clean_close_keeps_the_cursor_ledger() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=2))
        ledger, cursor, positions = await with_cursor(world, 8)
        cursor.acknowledge_entries(positions[0].ledger_id, BitMap([1, 3, 5]))
        await ledger.close()
        assert (await node(world)).cursors_ledger_id in cursor_ledgers(world)
        again = (await world.open()).cursors["sub"]
        assert again.acknowledged_in(positions[0].ledger_id) == BitMap([1, 3, 5])

    run(scenario())


def test_nothing_is_written_at_the_close_of_a_cursor_that_did_not_move() -> None:
    async def scenario() -> None:
        world = World()
        ledger, _, _ = await with_cursor(world, 3)
        stored = await world.store.get(f"/managed-ledgers/{NAME}/sub")
        await ledger.close()
        assert await world.store.get(f"/managed-ledgers/{NAME}/sub") == stored

    run(scenario())


def test_a_full_cursor_ledger_is_replaced_and_then_deleted() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_cursor_max_entries_per_ledger=2))
        _, cursor, positions = await with_cursor(world, 9)
        seen = []
        for position in positions[:5]:
            cursor.acknowledge_cumulative(position)
            await cursor.flush()
            [ledger_id] = cursor_ledgers(world)
            seen.append(ledger_id)
        assert len(set(seen)) == 3
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[4]

    run(scenario())


def test_an_old_cursor_ledger_is_replaced() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_cursor_rollover_time_in_seconds=100))
        _, cursor, positions = await with_cursor(world, 3)
        cursor.acknowledge_cumulative(positions[0])
        await cursor.flush()
        before = cursor_ledgers(world)
        await asyncio.sleep(101)
        cursor.acknowledge_cumulative(positions[1])
        await cursor.flush()
        assert cursor_ledgers(world) != before
        assert len(cursor_ledgers(world)) == 1

    run(scenario())


def test_a_cursor_ledger_that_fails_is_replaced_and_nothing_is_lost() -> None:
    async def scenario() -> None:
        world = World()
        _, cursor, positions = await with_cursor(world, 3)
        cursor.acknowledge_cumulative(positions[0])
        await cursor.flush()
        world.ledger_store.fail_appends = 1
        cursor.acknowledge_cumulative(positions[1])
        await cursor.flush()
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[1]

    run(scenario())


def test_a_mark_that_could_not_be_written_is_written_later() -> None:
    async def scenario() -> None:
        nothing_in_nodes = {"managed_ledger_max_unacked_ranges_to_persist_in_metadata_store": 0}
        world = World(small(managed_ledger_default_mark_delete_rate_limit=1.0, **nothing_in_nodes))
        _, cursor, positions = await with_cursor(world, 3)
        world.ledger_store.fail_creates = 2
        cursor.acknowledge_entries(positions[1].ledger_id, BitMap([positions[1].entry_id]))
        await asyncio.sleep(5)
        assert world.ledger_store.fail_creates == 0
        assert (await world.reopen()).cursors["sub"].is_acknowledged(positions[1])

    run(scenario())


def test_an_owner_whose_cursor_was_written_by_another_is_fenced() -> None:
    async def scenario() -> None:
        world = World()
        old, old_cursor, positions = await with_cursor(world, 3)
        world.start()
        new = await world.open()
        new.cursors["sub"].acknowledge_cumulative(positions[0])
        await new.cursors["sub"].flush()
        old_cursor.acknowledge_cumulative(positions[2])
        told: list[str] = []
        old.on_fenced(lambda: told.append("old"))
        new.on_fenced(lambda: told.append("new"))
        end = old.on_fenced(lambda: told.append("nobody any more"))
        end()
        with pytest.raises(ManagedLedgerFenced):
            await old_cursor.flush()
        await asyncio.sleep(0)
        assert told == ["old"]
        with pytest.raises(ManagedLedgerFenced):
            await append_each(old, 1)
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[0]

    run(scenario())


def test_the_writer_of_a_cursor_ledger_is_fenced_by_its_recovery() -> None:
    async def scenario() -> None:
        world = World()
        _, cursor, positions = await with_cursor(world, 5)
        cursor.acknowledge_cumulative(positions[0])
        await cursor.flush()
        world.start()
        await world.open()
        cursor.acknowledge_cumulative(positions[3])
        with pytest.raises(ManagedLedgerFenced):
            await cursor.flush()

    run(scenario())


def test_cursor_properties_are_durable_wherever_the_place_is() -> None:
    async def scenario() -> None:
        world = World()
        _, cursor, positions = await with_cursor(world, 3)
        await cursor.set_cursor_properties({"a": "1"})
        cursor.acknowledge_cumulative(positions[0])
        await cursor.flush()
        await cursor.set_cursor_properties({"b": "2"})
        again = (await world.reopen()).cursors["sub"]
        assert again.cursor_properties == {"b": "2"}
        assert again.mark_delete == positions[0]

    run(scenario())


def test_a_deleted_cursor_leaves_neither_node_nor_ledger() -> None:
    async def scenario() -> None:
        world = World()
        ledger, cursor, positions = await with_cursor(world, 3)
        cursor.acknowledge_cumulative(positions[0])
        await cursor.flush()
        await ledger.delete_cursor("sub")
        assert dict(ledger.cursors) == {}
        assert cursor_ledgers(world) == []
        assert dict((await world.reopen()).cursors) == {}
        with pytest.raises(ManagedLedgerError):
            await ledger.delete_cursor("sub")

    run(scenario())


@pytest.mark.parametrize("milliseconds", range(12))
def test_a_cursor_deleted_while_it_is_written_stays_deleted_and_harms_nobody(milliseconds: int) -> None:
    async def scenario() -> None:
        world = World(step_s=0.003)
        ledger, cursor, positions = await with_cursor(world, 5)
        for position in positions[:3]:
            cursor.acknowledge_cumulative(position)
            await asyncio.sleep(0.001)
        await asyncio.sleep(milliseconds / 1000)
        await asyncio.gather(ledger.delete_cursor("sub"), cursor.flush())
        cursor.acknowledge_cumulative(positions[4])
        await asyncio.sleep(2)
        await append_each(ledger, 1)
        assert cursor_ledgers(world) == []
        assert dict((await world.reopen()).cursors) == {}

    run(scenario())


def test_an_empty_cursor_ledger_falls_back_to_the_place_in_the_node_or_says_so() -> None:
    async def scenario() -> None:
        world = World()
        _, cursor, positions = await with_cursor(world, 3)
        cursor.acknowledge_cumulative(positions[0])
        await cursor.flush()
        [ledger_id] = cursor_ledgers(world)
        world.shared.ledgers[ledger_id].runs.clear()
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[0]
        path = f"/managed-ledgers/{NAME}/sub"
        found = await world.store.get(path)
        assert found is not None
        info = ManagedCursorInfo.FromString(found.value)
        for name in ("mark_delete_ledger_id", "mark_delete_entry_id"):
            info.ClearField(name)
        await world.restart()
        await world.store.put(path, info.SerializeToString())
        with pytest.raises(ManagedLedgerError, match="is empty"):
            await world.open()

    run(scenario())


@pytest.mark.parametrize("value", [b"\x08", b"\xff"])
def test_a_node_with_garbage_is_an_error_of_this_topic_only(value: bytes) -> None:
    async def scenario() -> None:
        world = World()
        await with_cursor(world, 3)
        await world.restart()
        await world.store.put(f"/managed-ledgers/{NAME}/sub", value)
        with pytest.raises(ManagedLedgerError, match="sub"):
            await world.open()
        await world.open("public/default/persistent/other")

    run(scenario())


def test_a_managed_ledger_with_garbage_is_an_error_of_this_topic_only() -> None:
    async def scenario() -> None:
        world = World()
        await world.store.put(f"/managed-ledgers/{NAME}", b"\xff\xff")
        with pytest.raises(ManagedLedgerError, match=NAME):
            await world.open()
        await world.store.put(f"/managed-ledgers/{NAME}", b"")
        await world.open()

    run(scenario())


def test_more_properties_than_a_node_holds_stay_in_the_cursor_ledger_at_the_end() -> None:
    async def scenario() -> None:
        world = World()
        ledger, cursor, positions = await with_cursor(world, 2)
        names = {f"producer-{number}": number for number in range(1001)}
        cursor.acknowledge_cumulative(positions[0], properties=names)
        await ledger.close()
        found = await node(world)
        assert found.cursors_ledger_id in cursor_ledgers(world)
        cursor = (await world.reopen()).cursors["sub"]
        assert (cursor.mark_delete, dict(cursor.properties)) == (positions[0], names)

    run(scenario())
