"""Segments that cannot be read: an error that names them, or exactly their acknowledgements are unknown."""

from typing import Any

import pytest

from managed_ledger.contract import Skipped
from managed_ledger.cursor.cursor_driver import DurableCursor
from managed_ledger.cursor.holes.segment_save import Segment
from managed_ledger.cursor.holes.segments import HolePages
from managed_ledger.errors import ManagedLedgerError, NonRecoverableLedger
from wire.position import Position

from ...ledger_world import World
from .test_segment_crashes import ENTRIES, acknowledge, acknowledged, durable
from .test_segment_loads import in_one_ledger

SKIPPING = {"auto_skip_non_recoverable_data": True}
ROLLING = {"managed_ledger_cursor_rollover_time_in_seconds": 1}
DAMAGES = ["lost", "garbage"]


def segment_of(cursor: DurableCursor, position: Position) -> Segment:
    [found] = cursor.acknowledgements.segments(position.ledger_id, position.entry_id, position.entry_id)
    return found


def within(cursor: DurableCursor, segment: Segment, positions: list[Position]) -> set[Position]:
    pages = cursor.acknowledgements.holes.pages
    assert pages is not None
    span = pages.span(segment)
    return {position for position in positions if span.start <= position < span.end}


def damage(world: World, ledger_id: int, entry_id: int, how: str) -> None:
    stored = world.shared.ledgers[ledger_id]
    if how == "lost":
        stored.lost.add(entry_id)
        return
    first = 0
    for run in stored.runs:
        if entry_id < first + run.count:
            begin, end = run.offsets[entry_id - first] + run.header_bytes, run.offsets[entry_id - first + 1]
            run.buffer[begin:end] = b"\xff" * (end - begin)  # type: ignore[index]
            return
        first += run.count
    raise AssertionError(f"no entry {entry_id}")


def damage_segment(cursor: DurableCursor, world: World, position: Position, how: str) -> Segment:
    segment = segment_of(cursor, position)
    assert not segment.is_resident
    damage(world, cursor._store.ledger_id, segment.entry_id, how)
    return segment


@pytest.mark.parametrize("how", DAMAGES)
def test_exactly_what_an_unreadable_segment_had_is_delivered_again(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cursor: DurableCursor, world: World, positions: list[Position]) -> None:
        segment = damage_segment(cursor, world, positions[25], how)
        expected = set(positions[1::2]) - within(cursor, segment, positions)
        assert len(expected) < ENTRIES // 2
        assert await acknowledged(cursor, positions) == expected
        assert world.ledgers.skipping.cursor_entries == 1
        assert (await world.open()).skipped == Skipped(cursor_entries=1)
        assert "cursor segment skipped" in caplog.text
        acknowledge(cursor, [positions[25], positions[50]])
        await cursor.flush()
        again = durable(await world.reopen())
        assert await acknowledged(again, positions) == expected | {positions[25], positions[50]}
        assert world.ledgers.skipping.cursor_entries == 0, "it was written anew"

    in_one_ledger(scenario, **SKIPPING)


@pytest.mark.parametrize("how", DAMAGES)
def test_an_unreadable_segment_is_an_error_that_names_it_and_the_remedy(how: str) -> None:
    async def scenario(cursor: DurableCursor, world: World, positions: list[Position]) -> None:
        segment = damage_segment(cursor, world, positions[25], how)
        ledger_id = cursor._store.ledger_id
        where = (
            f"sub: the segment at .* in entry {segment.entry_id} of cursor ledger {ledger_id} .*autoSkipNonRecoverableData=true"
        )
        for _ in range(2):
            with pytest.raises(NonRecoverableLedger, match=where):
                await cursor.load_acknowledged(positions[25].ledger_id, 25, 25)
        rest = [each for each in positions if each not in within(cursor, segment, positions)]
        for position in rest:
            await cursor.load_acknowledged(position.ledger_id, position.entry_id, position.entry_id)
            assert cursor.is_acknowledged(position) == (position in positions[1::2])
        assert world.ledgers.skipping.cursor_entries == 0

    in_one_ledger(scenario)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_topic_opens_without_the_segment_at_mark_delete_only_if_that_is_asked_for(how: str) -> None:
    async def scenario(cursor: DurableCursor, world: World, positions: list[Position]) -> None:
        segment = damage_segment(cursor, world, positions[0], how)
        expected = set(positions[1::2]) - within(cursor, segment, positions)
        if world.settings.auto_skip_non_recoverable_data:
            assert await acknowledged(durable(await world.reopen()), positions) == expected
            return
        await world.restart()
        with pytest.raises(NonRecoverableLedger, match=r"sub: the segment at .*autoSkipNonRecoverableData=true"):
            await world.open()

    in_one_ledger(scenario, **SKIPPING)
    in_one_ledger(scenario)


@pytest.mark.parametrize("how", DAMAGES)
def test_a_lost_addition_costs_no_more_than_what_it_had(how: str) -> None:
    async def scenario(cursor: DurableCursor, world: World, positions: list[Position]) -> None:
        acknowledge(cursor, [positions[24]])
        await cursor.flush()
        segment = segment_of(cursor, positions[24])
        assert segment.addition_id >= 0
        damage(world, cursor._store.ledger_id, segment.addition_id, how)
        assert await acknowledged(cursor, positions) == set(positions[1::2])
        assert world.ledgers.skipping.cursor_entries == 1

    in_one_ledger(scenario, **SKIPPING)


@pytest.mark.parametrize("damaged", [[25], [9, 25, 26, 40, 41, 58]])
def test_a_roll_over_goes_on_without_what_it_cannot_copy(damaged: list[int]) -> None:
    async def scenario(cursor: DurableCursor, world: World, positions: list[Position]) -> None:
        expected = set(positions[1::2])
        segments = {segment.start: segment for segment in (segment_of(cursor, positions[at]) for at in damaged)}
        for segment in segments.values():
            expected -= within(cursor, segment, positions)
            damage(world, cursor._store.ledger_id, segment.entry_id, "lost")
        old = cursor._store.ledger_id
        await rolled_over(cursor, positions)
        assert cursor._store.ledger_id != old
        assert world.ledgers.skipping.cursor_entries == len(segments)
        assert len(world.shared.ledgers) == 2, "the log and one cursor ledger"
        again = durable(await world.reopen())
        assert await acknowledged(again, positions) == expected | {positions[2]}

    in_one_ledger(scenario, **SKIPPING, **ROLLING)


async def rolled_over(cursor: DurableCursor, positions: list[Position]) -> None:
    cursor._store._opened_at -= 2.0
    acknowledge(cursor, [positions[2]])
    await cursor.flush()


def test_a_roll_over_that_may_not_go_on_without_it_is_an_error_and_the_old_ledger_stays() -> None:
    async def scenario(cursor: DurableCursor, world: World, positions: list[Position]) -> None:
        segment = damage_segment(cursor, world, positions[25], "lost")
        ledger_id = cursor._store.ledger_id
        with pytest.raises(ManagedLedgerError, match=r"sub: the segment at .*autoSkipNonRecoverableData=true"):
            await rolled_over(cursor, positions)
        assert cursor._store.ledger_id == ledger_id
        world.shared.ledgers[ledger_id].lost.discard(segment.entry_id)
        await cursor.flush()
        assert await acknowledged(durable(await world.reopen()), positions) == {*positions[1::2], positions[2]}

    in_one_ledger(scenario, **ROLLING)


def test_a_segment_of_which_only_a_part_was_read_and_that_is_not_written_anew_is_found(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = HolePages.loaded

    def careless(self: HolePages, *arguments: Any, is_whole: bool) -> Any:
        return real(self, *arguments, is_whole=True)

    monkeypatch.setattr(HolePages, "loaded", careless)
    with pytest.raises(AssertionError):
        test_exactly_what_an_unreadable_segment_had_is_delivered_again("lost", caplog)
