"""Scenarios of cursors: acknowledging, resets, deletion, trimmed ledgers, restarts."""

import asyncio

import pytest
from pyroaring import BitMap

from managed_ledger.contract import EARLIEST, LATEST
from managed_ledger.cursor.acknowledgements import Acknowledgements
from ports.loop.slices import SLICE
from tests.cost import Counter
from tests.invariants import checked_after_each_step

from ..ledger_world import World, append_each, read_all, run, trimming
from .cursor_steps import with_cursor

checked_machines = checked_after_each_step(Acknowledgements)


def test_a_part_of_a_batch_acknowledged_before_a_crash_is_not_forgotten() -> None:
    """Apache #26498: ack A of batch [A, B], idle, kill."""

    async def scenario() -> None:
        world = World()
        _, cursor, positions = await with_cursor(world, 3)
        cursor.acknowledge_batch_indexes(positions[1], (0b10,), 2)
        await asyncio.sleep(2)
        again = (await world.reopen()).cursors["sub"]
        assert again.unacknowledged_batch_indexes(positions[1]) == (0b10,)
        assert again.has_batch_indexes()
        assert again.acknowledge_batch_indexes(positions[1], (0b01,), 2)
        assert again.is_acknowledged(positions[1])

    run(scenario())


def test_a_reset_is_durable_when_it_returns_forwards_and_backwards() -> None:
    async def scenario() -> None:
        world = World()
        _, cursor, positions = await with_cursor(world, 25)
        cursor.acknowledge_entries(positions[20].ledger_id, BitMap([3]))
        await cursor.reset(positions[12])
        assert cursor.first_unacknowledged() == positions[12]
        assert cursor.backlog_entries() == 13
        ledger = await world.reopen()
        cursor = ledger.cursors["sub"]
        assert cursor.first_unacknowledged() == positions[12]
        await cursor.reset(EARLIEST)
        assert cursor.backlog_entries() == 25
        await cursor.reset(LATEST)
        assert cursor.backlog_entries() == 0
        cursor = (await world.reopen()).cursors["sub"]
        assert cursor.backlog_entries() == 0

    run(scenario())


def test_cursors_asked_for_at_once_are_one() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        first, second = await asyncio.gather(ledger.open_cursor("sub"), ledger.open_cursor("sub"))
        assert first is second

    run(scenario())


def test_a_cursor_made_while_ledgers_are_trimmed_points_to_none_that_is_gone() -> None:
    """Apache #24855: backlog below zero, mark-delete in a deleted ledger."""

    async def scenario() -> None:
        world = World(trimming(), step_s=0.001)
        ledger, cursor, positions = await with_cursor(world, 35)
        cursor.acknowledge_cumulative(positions[24])
        late, _ = await asyncio.gather(ledger.open_cursor("late", EARLIEST), ledger.trim())
        assert ledger.sequence.span(late.mark_delete.ledger_id) is not None
        assert late.backlog_entries() == ledger.entry_count
        late.acknowledge_cumulative(positions[-1])
        assert late.backlog_entries() == 0
        await late.flush()
        again = await world.reopen()
        assert again.cursors["late"].backlog_entries() == 0
        assert len(await read_all(again)) == again.entry_count

    run(scenario())


def test_a_non_durable_cursor_leaves_nothing_behind_and_holds_its_place_while_it_is_there() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger, cursor, positions = await with_cursor(world, 35)
        reader = ledger.open_non_durable_cursor("reader", positions[3])
        assert reader.backlog_entries() == 32
        reader.acknowledge_entries(positions[12].ledger_id, BitMap([5]))
        cursor.acknowledge_cumulative(positions[19])
        await ledger.trim()
        assert reader.first_unacknowledged() == positions[3]
        assert reader.backlog_entries() == 31
        reader.acknowledge_cumulative(positions[19])
        await ledger.trim()
        assert ledger.first_position() == positions[20]
        assert reader.first_unacknowledged() == positions[20]
        assert reader.backlog_entries() == 15
        await reader.close()
        assert "reader" not in (await world.reopen()).cursors

    run(scenario())


def test_a_turn_of_the_loop_moves_some_of_the_cursors_out_of_the_ledgers_that_are_trimmed() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger, cursor, positions = await with_cursor(world, 35)
        readers = [ledger.open_non_durable_cursor(f"reader-{number}", positions[19]) for number in range(8 * SLICE)]
        for reader in readers:
            reader.acknowledge_cumulative(positions[19])
        with Counter() as counter:
            cursor.acknowledge_cumulative(positions[19])
            await asyncio.sleep(1)
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"
        assert ledger.first_position() == positions[20]
        assert {reader.mark_delete for reader in readers} == {positions[20]._replace(entry_id=-1)}
        assert {reader.backlog_entries() for reader in readers} == {15}

    run(scenario())


def test_a_cursor_whose_turn_has_not_come_after_a_trim_acknowledges_as_usual() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger, cursor, positions = await with_cursor(world, 35)
        readers = [ledger.open_non_durable_cursor(f"reader-{number}", positions[19]) for number in range(3 * SLICE)]
        for reader in readers:
            reader.acknowledge_cumulative(positions[19])
        cursor.acknowledge_cumulative(positions[19])
        for _ in range(100):
            if ledger.first_position() == positions[20]:
                break
            await asyncio.sleep(0)
        last = readers[-1]
        assert ledger.sequence.span(last.mark_delete.ledger_id) is None
        assert (last.first_unacknowledged(), last.backlog_entries()) == (positions[20], 15)
        last.acknowledge_entries(positions[21].ledger_id, BitMap([positions[21].entry_id]))
        last.acknowledge_entries(positions[20].ledger_id, BitMap([positions[20].entry_id]))
        assert (last.mark_delete, last.backlog_entries()) == (positions[21], 13)
        await readers[-2].close()
        await asyncio.sleep(1)
        assert (last.mark_delete, last.backlog_entries()) == (positions[21], 13)

    run(scenario())


@pytest.mark.parametrize("milliseconds", range(0, 12, 2))
def test_a_caller_that_is_cancelled_in_the_middle_of_a_write_does_not_fence_its_own_topic(milliseconds: int) -> None:
    async def scenario() -> None:
        world = World(step_s=0.002)
        world.store = world.slow_store()
        world.ledgers = world.factory()
        ledger, cursor, positions = await with_cursor(world, 5)
        for call in (
            lambda: cursor.reset(positions[2]),
            lambda: cursor.set_cursor_properties({"a": "b"}),
            lambda: ledger.set_properties({"a": "b"}),
            lambda: ledger.open_cursor("other"),
            lambda: ledger.delete_cursor("other"),
        ):
            task = asyncio.ensure_future(call())
            await asyncio.sleep(milliseconds / 1000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(0.1)
        cursor.acknowledge_cumulative(positions[3])
        await cursor.flush()
        await ledger.set_properties({"c": "d"})
        await append_each(ledger, 20)
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[3]

    run(scenario())
