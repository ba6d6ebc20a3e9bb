"""Segments through the drivers: a crash between any two writes of a save, a roll-over, the switch, the way back; lazy loading.

A save is atomic: after a crash the cursor is as it was before the save or as it is after it, never anything else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from pyroaring import BitMap

from bookkeeper.ledgers import LedgerWriter
from managed_ledger.cursor import cursor_ledger, cursor_store
from managed_ledger.cursor.cursor_driver import DurableCursor
from managed_ledger.cursor.cursor_ledger import append_entries
from managed_ledger.cursor.holes.segment_format_v1 import MAGIC, encode_marker
from managed_ledger.cursor.holes.segment_save import SavePlan
from managed_ledger.errors import ManagedLedgerError
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from wire.generated.managed_ledger_pb2 import PositionInfo
from wire.position import Position

from ...ledger_world import World, run, small
from ..cursor_steps import cursor_ledgers, with_cursor
from .segment_model import tiny

STEP_S = 0.001
ENTRIES = 60


def world_of(**changes: Any) -> World:
    """Every hole that is not stored as it is in memory goes at once; a mark is written when a flush asks for it."""
    fields = {
        "managed_ledger_max_unacked_ranges_to_persist": 3,
        "managed_ledger_max_unacked_ranges_to_persist_in_metadata_store": 1,
        "managed_cursor_hole_cache_size_mb": 0,
        "managed_ledger_default_mark_delete_rate_limit": 0.001,
        "managed_ledger_cursor_position_flush_seconds": 5000,
        **changes,
    }
    return World(small(**fields), STEP_S)


def durable(ledger: StoredManagedLedger) -> DurableCursor:
    cursor = ledger.cursors["sub"]
    assert isinstance(cursor, DurableCursor)
    return cursor


def acknowledge(cursor: DurableCursor, positions: Sequence[Position]) -> None:
    for ledger_id in sorted({position.ledger_id for position in positions}):
        cursor.acknowledge_entries(ledger_id, BitMap([p.entry_id for p in positions if p.ledger_id == ledger_id]))


async def acknowledged(cursor: DurableCursor, positions: Sequence[Position]) -> set[Position]:
    found = set()
    for position in positions:
        await cursor.load_acknowledged(position.ledger_id, position.entry_id, position.entry_id)
        if cursor.is_acknowledged(position):
            found.add(position)
    cursor.acknowledgements.check_invariants()
    assert cursor.backlog_entries() == len(positions) - len(found)
    return found


Before = Callable[[DurableCursor, Sequence[Position]], Awaitable[None]]
Change = Callable[[Sequence[Position]], Sequence[Position]]


async def few(cursor: DurableCursor, positions: Sequence[Position]) -> None:
    acknowledge(cursor, positions[1:4:2])
    await cursor.flush()
    assert not cursor.hole_stats().is_segmented


async def many(cursor: DurableCursor, positions: Sequence[Position]) -> None:
    await few(cursor, positions)
    acknowledge(cursor, positions[1::2])
    await cursor.flush()
    assert cursor.hole_stats().is_segmented
    assert cursor.hole_stats().segments > 5
    assert cursor.hole_stats().resident_segments == 0


def every_second(positions: Sequence[Position]) -> Sequence[Position]:
    return positions[5::2]


def some_more(positions: Sequence[Position]) -> Sequence[Position]:
    return positions[2::10]


def nearly_all(positions: Sequence[Position]) -> Sequence[Position]:
    return [*positions[:30], *positions[32:59]]


CASES: dict[str, tuple[Before, Change, dict[str, Any]]] = {
    "the switch": (few, every_second, {}),
    "a save": (many, some_more, {}),
    "a roll-over": (many, some_more, {"managed_ledger_cursor_rollover_time_in_seconds": 1}),
    "the way back": (many, nearly_all, {}),
}


async def crash_after(case: str, steps: int) -> bool:
    """Kill it so many half steps into the save; whether the save was answered before."""
    prepare, change, settings = CASES[case]
    world = world_of(**settings)
    ledger, _, positions = await with_cursor(world, ENTRIES)
    cursor = durable(ledger)
    await prepare(cursor, positions)
    before = await acknowledged(cursor, positions)
    if settings:
        await asyncio.sleep(2)
    expected = before | set(change(positions))
    acknowledge(cursor, change(positions))
    saving = asyncio.ensure_future(cursor.flush())
    await asyncio.sleep(steps * STEP_S / 2 + STEP_S / 4)
    is_answered = saving.done()
    again = durable(await world.reopen())
    saving.cancel()
    found = await acknowledged(again, positions)
    assert found in (before, expected), f"{case}, {steps}: neither before nor after"
    assert not is_answered or found == expected, f"{case}, {steps}: answered and forgotten"
    acknowledge(again, positions[:20])
    await again.flush()
    once_more = durable(await world.reopen())
    assert await acknowledged(once_more, positions) == found | set(positions[:20])
    assert len(cursor_ledgers(world)) <= 3
    return is_answered


def crash_everywhere(case: str) -> None:
    answered = False
    steps = 0
    while not answered:
        with tiny():
            answered = run(crash_after(case, steps))
        steps += 1
        assert steps < 200, "the save never ends"
    assert steps > 4, "there were writes to crash between"


@pytest.mark.parametrize("case", CASES)
def test_a_crash_between_any_two_writes_leaves_what_was_before_or_what_is_after(case: str) -> None:
    crash_everywhere(case)


def test_a_marker_that_is_written_before_its_segments_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def too_early(name: str, writer: LedgerWriter, plan: SavePlan, _: object) -> tuple[list[int], int]:
        first = writer.next_entry_id
        entry_ids = [first + 1 + place for place in range(len(plan.writes))]
        marker = encode_marker(name, plan.state, plan.rows(entry_ids))
        await append_entries(writer, [marker])
        await append_entries(writer, [write.payload or b"" for write in plan.writes])
        return entry_ids, 0

    monkeypatch.setattr(cursor_store, "append_save", too_early)
    with pytest.raises((AssertionError, ManagedLedgerError)):
        crash_everywhere("the switch")
    assert cursor_ledger.append_save is not too_early


def test_the_switch_and_the_way_back_are_shown_and_apaches_format_is_written_again() -> None:
    async def scenario() -> None:
        world = world_of()
        ledger, _, positions = await with_cursor(world, ENTRIES)
        cursor = durable(ledger)
        await many(cursor, positions)
        assert (cursor.hole_stats().switches, cursor.hole_stats().returns) == (1, 0)
        assert await last_entry(world) == MAGIC
        acknowledge(cursor, nearly_all(positions))
        await cursor.flush()
        assert (cursor.hole_stats().switches, cursor.hole_stats().returns) == (1, 1)
        assert PositionInfo.FromString(await last_entry(world, None)).entry_id >= 0

    async def last_entry(world: World, length: int | None = len(MAGIC)) -> bytes:
        [ledger_id] = cursor_ledgers(world)
        stored = world.shared.ledgers[ledger_id].runs[-1]
        return bytes(stored.payload(stored.last_entry_id))[:length]

    with tiny():
        run(scenario())


def test_a_save_whose_ledger_fails_goes_whole_to_a_new_one() -> None:
    async def scenario() -> None:
        world = world_of()
        ledger, _, positions = await with_cursor(world, ENTRIES)
        cursor = durable(ledger)
        await many(cursor, positions)
        acknowledge(cursor, some_more(positions))
        world.ledger_store.fail_appends, world.ledger_store.torn_entries = 1, 1
        await cursor.flush()
        assert len(cursor_ledgers(world)) == 1
        again = durable(await world.reopen())
        assert await acknowledged(again, positions) == {*positions[1::2], *positions[2::10]}

    with tiny():
        run(scenario())


def test_a_clean_close_keeps_segments_and_reopening_loads_few_of_them() -> None:
    async def scenario() -> None:
        world = world_of(managed_cursor_hole_cache_size_mb=1)
        ledger, _, positions = await with_cursor(world, ENTRIES)
        await few(durable(ledger), positions)
        acknowledge(durable(ledger), positions[1::2])
        await ledger.close()
        again = durable(await world.open())
        assert again.hole_stats().is_segmented
        assert again.hole_stats().resident_segments <= 2
        assert again.backlog_entries() == ENTRIES // 2
        assert await acknowledged(again, positions) == set(positions[1::2])

    with tiny():
        run(scenario())


def test_an_acknowledgement_in_a_segment_on_disk_is_kept_and_counted_once_it_is_loaded() -> None:
    async def scenario() -> None:
        world = world_of()
        ledger, _, positions = await with_cursor(world, ENTRIES)
        await many(durable(ledger), positions)
        again = durable(await world.reopen())
        acknowledge(again, positions[41:46])
        await asyncio.sleep(1)
        assert again.backlog_entries() == ENTRIES // 2 - 2
        await again.flush()
        once_more = durable(await world.reopen())
        assert await acknowledged(once_more, positions) == {*positions[1::2], *positions[41:46]}

    with tiny():
        run(scenario())


def test_a_segment_that_cannot_be_read_is_an_error_that_names_it_and_nothing_is_given_up() -> None:
    async def scenario() -> None:
        world = world_of()
        ledger, _, positions = await with_cursor(world, ENTRIES)
        await many(durable(ledger), positions)
        again = durable(await world.reopen())
        [ledger_id] = cursor_ledgers(world)
        kept = world.shared.ledgers.pop(ledger_id)
        with pytest.raises(ManagedLedgerError, match=f"sub: the segment at .* of cursor ledger {ledger_id}"):
            await again.load_acknowledged(positions[50].ledger_id, 0, 9)
        world.shared.ledgers[ledger_id] = kept
        assert await acknowledged(again, positions) == set(positions[1::2])

    with tiny():
        run(scenario())


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_apaches_parser_takes_no_entry_of_ours_for_a_position(kind: int) -> None:
    with pytest.raises(Exception, match="Error parsing message"):
        PositionInfo.FromString(MAGIC + bytes([1, kind, 0, 0, 8, 1, 16, 2]))
