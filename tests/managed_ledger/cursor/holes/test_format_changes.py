"""Changes from Apache's format to segments and back over restarts: whatever limit the one before had, nothing is forgotten."""

import pytest
from pyroaring import BitMap

from managed_ledger.cursor.holes.segment_format_v1 import MAGIC
from wire.generated.managed_ledger_pb2 import PositionInfo

from ...ledger_world import World, run, small
from ..cursor_steps import cursor_ledgers, with_cursor
from .segment_model import tiny
from .test_segment_crashes import ENTRIES, STEP_S, acknowledge, acknowledged, durable

MANY, FEW = 1000, 3


def limited(ranges: int, *, is_array: bool = True) -> World:
    return World(
        small(
            managed_ledger_max_unacked_ranges_to_persist=ranges,
            managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=1,
            managed_ledger_persist_individual_ack_as_long_array=is_array,
            managed_cursor_hole_cache_size_mb=0,
        ),
        STEP_S,
    )


async def restarted(world: World, ranges: int) -> World:
    """Another process, with another limit, on the same storage."""
    await world.kill()
    other = limited(ranges)
    other.tree, other.shared = world.tree, world.shared
    other.start()
    return other


def last_entry(world: World) -> bytes:
    [ledger_id] = cursor_ledgers(world)
    stored = world.shared.ledgers[ledger_id].runs[-1]
    return bytes(stored.payload(stored.last_entry_id))


@pytest.mark.parametrize("is_array", [True, False])
def test_more_ranges_in_apaches_format_than_the_limit_become_segments_with_the_next_save(is_array: bool) -> None:
    """A broker of Apache's with a higher limit wrote them."""

    async def scenario() -> None:
        world = limited(MANY, is_array=is_array)
        ledger, _, positions = await with_cursor(world, ENTRIES)
        acknowledge(durable(ledger), positions[1::2])
        await durable(ledger).flush()
        assert PositionInfo.FromString(last_entry(world))
        world = await restarted(world, FEW)
        cursor = durable(await world.open())
        assert await acknowledged(cursor, positions) == set(positions[1::2])
        acknowledge(cursor, positions[2:3])
        await cursor.flush()
        assert cursor.hole_stats().switches == 1
        assert last_entry(world).startswith(MAGIC)
        again = durable(await world.reopen())
        assert await acknowledged(again, positions) == {*positions[1::2], positions[2]}

    with tiny():
        run(scenario())


def test_segments_become_apaches_format_with_the_next_save_when_the_limit_allows_it() -> None:
    async def scenario() -> None:
        world = limited(FEW)
        ledger, _, positions = await with_cursor(world, ENTRIES)
        acknowledge(durable(ledger), positions[1::2])
        await durable(ledger).flush()
        assert last_entry(world).startswith(MAGIC)
        world = await restarted(world, MANY)
        cursor = durable(await world.open())
        acknowledge(cursor, positions[2:3])
        await cursor.flush()
        assert (cursor.hole_stats().is_segmented, cursor.hole_stats().returns) == (False, 1)
        assert PositionInfo.FromString(last_entry(world)).entry_id == positions[0].entry_id - 1
        again = durable(await world.reopen())
        assert await acknowledged(again, positions) == {*positions[1::2], positions[2]}

    with tiny():
        run(scenario())


def test_batches_and_properties_are_in_the_marker_and_survive_a_restart() -> None:
    async def scenario() -> None:
        world = limited(FEW)
        ledger, _, positions = await with_cursor(world, ENTRIES)
        cursor = durable(ledger)
        cursor.acknowledge_cumulative(positions[1], properties={"p": -7})
        cursor.acknowledge_batch_indexes(positions[30], (0b101,), 3)
        acknowledge(cursor, positions[11::2])
        await cursor.flush()
        assert cursor.hole_stats().is_segmented
        again = durable(await world.reopen())
        assert again.properties == {"p": -7}
        assert again.unacknowledged_batch_indexes(positions[30]) == (0b101,)
        assert again.acknowledge_batch_indexes(positions[30], (0b010,), 3)
        again.acknowledge_entries(positions[31].ledger_id, BitMap([positions[31].entry_id]))
        await again.flush()
        once_more = durable(await world.reopen())
        assert await acknowledged(once_more, positions) == {*positions[:2], *positions[11::2], positions[30]}

    with tiny():
        run(scenario())
