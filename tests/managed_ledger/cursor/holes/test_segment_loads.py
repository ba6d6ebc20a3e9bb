"""Segments that are loaded while others are saved, evicted, reset or closed: schedules of many calls at once."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from managed_ledger.cursor.cursor_driver import DurableCursor
from managed_ledger.cursor.holes.holes_driver import StoredHoles
from managed_ledger.cursor.holes.segment_cache import HoleCache
from managed_ledger.cursor.holes.segment_save import Segment
from managed_ledger.cursor.holes.segments import HolePages
from managed_ledger.errors import ManagedLedgerError
from simulation.world.loop import SimulationFailure
from tests.invariants import checked_after_each_step

from ...ledger_world import run, small
from ..cursor_steps import with_cursor
from .segment_model import tiny
from .segment_schedule import play
from .test_segment_crashes import ENTRIES, acknowledge, acknowledged, durable, many, some_more, world_of

checked_machines = checked_after_each_step(HoleCache)

SCHEDULES = int(os.environ.get("INTERPULSE_SCHEDULES", "2500")) // 25
"""With INTERPULSE_SCHEDULES=50000, as for the pure machine, 2,000."""


def test_two_cursors_that_share_a_cache_are_sets_of_acknowledged_messages_whatever_is_under_way() -> None:
    for seed in range(SCHEDULES):
        try:
            play(seed)
        except BaseException as error:
            error.add_note(f"schedule {seed}")
            raise


@pytest.mark.parametrize("seed", [1787, 1826, 2227, 3964, 4178, 4439, 5085, 5750, 6499])
def test_a_segment_that_mark_delete_passed_before_it_was_read_is_no_error(seed: int) -> None:
    """Such a segment was read all the same, from the ledger after a roll-over, where its entry is missing or another's."""
    play(seed)


def in_one_ledger(scenario: Callable[[DurableCursor, Any, list[Any]], Any], **settings: Any) -> None:
    """With a cursor all of whose holes are on disk only, in 8 segments, and no room for any in the cache."""

    async def whole() -> None:
        world = world_of(managed_ledger_max_entries_per_ledger=ENTRIES, **settings)
        ledger, _, positions = await with_cursor(world, ENTRIES)
        cursor = durable(ledger)
        await many(cursor, positions)
        await asyncio.wait_for(scenario(cursor, world, positions), 10)

    with tiny():
        run(whole())


def test_a_segment_read_before_a_roll_over_is_not_taken_for_one_of_the_new_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """The segment has the same entry id in both ledgers. Acknowledgements in between were forgotten, and saved so."""

    async def scenario(cursor: DurableCursor, _: Any, positions: list[Any]) -> None:
        await rolled_over(cursor, positions[50])
        store, is_read, may_go_on = cursor._store, asyncio.Event(), asyncio.Event()
        read = store.read_segment

        async def slow(segment: Segment) -> Any:
            monkeypatch.setattr(store, "read_segment", read)
            found = await read(segment)
            is_read.set()
            await may_go_on.wait()
            return found

        monkeypatch.setattr(store, "read_segment", slow)
        [missing] = cursor.acknowledgements.missing(positions[8].ledger_id, 8, 8)
        entry_id = missing.entry_id
        loading = asyncio.ensure_future(cursor.load_acknowledged(positions[8].ledger_id, 8, 8))
        await is_read.wait()
        await rolled_over(cursor, positions[8])
        assert (missing.entry_id, missing.addition_id, missing.is_resident) == (entry_id, -1, False)
        may_go_on.set()
        await loading
        assert cursor.is_acknowledged(positions[8])
        assert await acknowledged(cursor, positions) == {*positions[1::2], positions[8], positions[50]}

    async def rolled_over(cursor: DurableCursor, position: Any) -> None:
        await asyncio.sleep(2)
        acknowledge(cursor, [position])
        await cursor.flush()

    in_one_ledger(scenario, managed_ledger_cursor_rollover_time_in_seconds=1)


def test_a_load_over_many_segments_ends_although_the_cache_holds_none() -> None:
    async def scenario(cursor: DurableCursor, _: Any, positions: list[Any]) -> None:
        ledger_id = positions[0].ledger_id
        for first, last, segments in ((20, 20, 1), (8, 30, 3), (40, 40, 1), (0, ENTRIES - 1, 8), (50, 50, 8)):
            await cursor.load_acknowledged(ledger_id, first, last)
            assert set(cursor.acknowledged_in(ledger_id)) >= set(range(first | 1, last + 1, 2))
            assert cursor.hole_stats().resident_segments == segments, "what was asked for, and no more"

    in_one_ledger(scenario)


def test_segments_that_a_save_needs_stay_until_they_are_written() -> None:
    """Loads for the way back to Apache's format pushed out resident segments, and those the others, round and round.

    Nor does a delivery that loads meanwhile push any of it out.
    """

    async def scenario(cursor: DurableCursor, _: Any, positions: list[Any]) -> None:
        await cursor.load_acknowledged(positions[0].ledger_id, 24, 24)
        acknowledge(cursor, [*positions[:16], *positions[40:59]])
        saving = asyncio.ensure_future(cursor.flush())
        while not saving.done():
            for entry_id in (16, 24, 32):
                await cursor.load_acknowledged(positions[0].ledger_id, entry_id, entry_id)
            await asyncio.sleep(0.0001)
        assert not cursor.hole_stats().is_segmented
        assert await acknowledged(cursor, positions) == {*positions[:16], *positions[17:40:2], *positions[40:]}

    in_one_ledger(scenario, managed_ledger_max_unacked_ranges_to_persist=15)


def test_a_segment_that_is_used_again_and_again_stays_in_the_cache() -> None:
    async def scenario(cursor: DurableCursor, world: Any, positions: list[Any]) -> None:
        ledger_id, cache = positions[0].ledger_id, world.ledgers._around.holes
        cache._bytes_max = 3 * max(segment.weight for segment in cursor.acknowledgements.segments(ledger_id, 0, ENTRIES - 1))
        for entry_id in range(10, ENTRIES, 4):
            await cursor.load_acknowledged(ledger_id, 5, 5)
            await cursor.load_acknowledged(ledger_id, entry_id, entry_id)
            assert cursor.is_loaded(ledger_id, 5, 5)
        loads = cursor.hole_stats().loads
        assert cursor.is_loaded(ledger_id, 5, 5)
        assert loads <= cursor.hole_stats().segments, "each once"
        assert cache.evictions > 0

    in_one_ledger(scenario)


def test_segments_that_mark_delete_has_passed_leave_the_cache_at_once() -> None:
    async def scenario(cursor: DurableCursor, world: Any, positions: list[Any]) -> None:
        ledger_id, cache = positions[0].ledger_id, world.ledgers._around.holes
        cache._bytes_max = 1 << 20
        await cursor.load_acknowledged(ledger_id, 0, ENTRIES - 1)
        segments = cursor.acknowledgements.segments(ledger_id, 0, ENTRIES - 1)
        assert cache.size_bytes == sum(segment.weight for segment in segments) > 0
        cursor.acknowledge_cumulative(positions[30])
        left = cursor.acknowledgements.segments(ledger_id, 31, ENTRIES - 1)
        assert len(left) < len(segments)
        assert (len(cache), cache.size_bytes) == (len(left), sum(segment.weight for segment in left))
        saving = asyncio.ensure_future(acknowledge_and_save(cursor, positions[50:55]))
        await asyncio.sleep(0.0005)
        cursor.acknowledge_cumulative(positions[57])
        await saving
        assert len(cache) == 1, "a save that was under way does not bring them back"

    in_one_ledger(scenario)


async def acknowledge_and_save(cursor: DurableCursor, positions: list[Any]) -> None:
    acknowledge(cursor, positions)
    await cursor.flush()


@pytest.mark.parametrize("megabytes", [-1, -32])
def test_a_negative_size_of_the_cache_is_refused(megabytes: int) -> None:
    with pytest.raises(ValueError, match=f"managedCursorHoleCacheSizeMB: {megabytes} is negative; expected"):
        small(managed_cursor_hole_cache_size_mb=megabytes)


def test_a_closed_cursor_leaves_nothing_in_the_cache_even_while_it_loads() -> None:
    async def scenario(cursor: DurableCursor, world: Any, positions: list[Any]) -> None:
        cache = world.ledgers._around.holes
        cache._bytes_max = 1 << 20
        loading = asyncio.ensure_future(cursor.load_acknowledged(positions[0].ledger_id, 0, ENTRIES - 1))
        await asyncio.sleep(0.0015)
        await cursor.close()
        with pytest.raises(ManagedLedgerError, match="sub: closed"):
            await loading
        assert (len(cache), cache.size_bytes) == (0, 0)

    in_one_ledger(scenario)


@pytest.mark.parametrize("milliseconds", range(0, 24, 2))
def test_a_load_or_a_save_in_flight_does_nothing_to_what_comes_after_a_reset(milliseconds: int) -> None:
    async def scenario(cursor: DurableCursor, _: Any, positions: list[Any]) -> None:
        loading = asyncio.ensure_future(cursor.load_acknowledged(positions[0].ledger_id, 0, ENTRIES - 1))
        acknowledge(cursor, some_more(positions))
        saving = asyncio.ensure_future(cursor.flush())
        await asyncio.sleep(milliseconds / 1000)
        resetting = asyncio.ensure_future(cursor.reset(positions[0]))
        await asyncio.sleep(0)
        acknowledge(cursor, positions[1:40:3])
        await asyncio.gather(loading, saving, resetting)
        await cursor.flush()
        assert cursor.hole_stats().is_segmented
        assert await acknowledged(cursor, positions) == set(positions[1:40:3])

    in_one_ledger(scenario)


# bugs that this has to find


def test_a_load_that_takes_over_what_is_no_longer_so_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredHoles, "_place", lambda _, segment: (segment.entry_id, segment.addition_id))
    with pytest.raises(AssertionError):
        test_a_segment_read_before_a_roll_over_is_not_taken_for_one_of_the_new_ledger(monkeypatch)


def test_eviction_of_what_is_not_stored_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = HolePages.evict

    def careless(self: HolePages, start: Any) -> bool:
        self._unsaved.clear()
        return real(self, start)

    monkeypatch.setattr(HolePages, "evict", careless)
    with pytest.raises((AssertionError, SimulationFailure)):
        test_two_cursors_that_share_a_cache_are_sets_of_acknowledged_messages_whatever_is_under_way()


def test_a_save_that_does_not_hold_what_it_needs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HolePages, "is_held", property(lambda _: False, lambda _, value: None), raising=False)
    with pytest.raises((AssertionError, TimeoutError)):
        test_segments_that_a_save_needs_stay_until_they_are_written()


def test_a_cache_that_keeps_nothing_of_what_was_just_asked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = HoleCache.shrink
    monkeypatch.setattr(HoleCache, "shrink", lambda self, keep=0: real(self, 0))
    with pytest.raises(TimeoutError):
        test_a_load_over_many_segments_ends_although_the_cache_holds_none()
