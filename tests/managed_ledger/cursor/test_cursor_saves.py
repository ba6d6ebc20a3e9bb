"""CursorSaves: when cursors are stored, and which of them together."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from managed_ledger.contract import EARLIEST
from managed_ledger.cursor import cursor_saves
from managed_ledger.cursor.cursor_saves import AT_ONCE_MAX, GRID_SECONDS, CursorSaves, PlainSave
from tests.managed_ledger.ledger_world import World, append_each, run, small
from tests.simulation import worlds


class Cursor:
    """Notes when its time came. It takes care of itself."""

    def __init__(self) -> None:
        self.begun: list[float] = []

    def begin_save(self) -> PlainSave | None:
        self.begun.append(asyncio.get_running_loop().time())
        return None

    def save_ended(self, save: PlainSave, error: BaseException | None) -> None:
        raise AssertionError("nothing was begun")


def play(scenario: Callable[[CursorSaves], Awaitable[Any]]) -> None:
    async def played(_: Any) -> None:
        await scenario(CursorSaves())

    worlds.run(played)


def test_cursors_that_are_due_at_about_the_same_time_are_stored_together_and_none_too_early() -> None:
    async def scenario(saves: CursorSaves) -> None:
        now = asyncio.get_running_loop().time()
        cursors = {now + offset: Cursor() for offset in (1.0, 0.301, 0.302, 0.32, 0.5, 2.0)}
        for at, cursor in cursors.items():
            saves.plan(cursor, at)
        await asyncio.sleep(3)
        times = {begun for cursor in cursors.values() for begun in cursor.begun}
        assert len(times) < len(cursors)
        for at, cursor in cursors.items():
            (begun,) = cursor.begun
            assert at <= begun + 1e-9 <= at + GRID_SECONDS + 1e-6

    play(scenario)


def test_a_cursor_that_is_due_now_does_not_wait() -> None:
    async def scenario(saves: CursorSaves) -> None:
        cursor, now = Cursor(), asyncio.get_running_loop().time()
        saves.plan(cursor, now)
        assert cursor.begun == [], "never in the stack of an acknowledgement"
        await asyncio.sleep(0.001)
        assert len(cursor.begun) == 1

    play(scenario)


@pytest.mark.parametrize("offset", [0.0, 0.7])
def test_a_forgotten_cursor_is_not_stored(offset: float) -> None:
    async def scenario(saves: CursorSaves) -> None:
        at = asyncio.get_running_loop().time() + offset
        first, second = Cursor(), Cursor()
        key = saves.plan(first, at)
        saves.plan(second, at)
        saves.forget(first, key)
        await asyncio.sleep(1)
        assert (len(first.begun), len(second.begun)) == (0, 1)
        saves.forget(second, key)

    play(scenario)


def test_very_many_cursors_are_stored_some_in_a_turn() -> None:
    async def scenario(saves: CursorSaves) -> None:
        cursors = [Cursor() for _ in range(2 * AT_ONCE_MAX + 1)]
        for cursor in cursors:
            saves.plan(cursor, asyncio.get_running_loop().time())
        for turn in (1, 2, 3):
            await asyncio.sleep(0)
            assert sum(len(cursor.begun) for cursor in cursors) == min(turn * AT_ONCE_MAX, len(cursors))

    play(scenario)


def test_the_marks_of_many_cursors_are_stored_without_a_task_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = World(small())
        log = await world.open()
        positions = await append_each(log, 4)
        cursors = [await log.open_cursor(f"c{number}", EARLIEST) for number in range(20)]
        for cursor in cursors:
            cursor.acknowledge_cumulative(positions[0])
        await asyncio.sleep(1)
        together: list[int] = []
        plain = cursor_saves._append

        def noted(saves: Any, now: float) -> None:
            together.append(len(saves))
            plain(saves, now)

        monkeypatch.setattr(cursor_saves, "_append", noted)
        for cursor in cursors:
            assert cursor.acknowledge_entry(*positions[1])
        await asyncio.sleep(1)
        assert together == [20]
        assert {cursor.persistent_mark_delete for cursor in cursors} == {positions[1]}
        log = await world.reopen()
        assert {cursor.mark_delete for cursor in log.cursors.values()} == {positions[1]}

    run(scenario())


def test_a_cursor_whose_ledger_fails_in_a_common_save_gets_another_and_holds_up_nobody() -> None:
    async def scenario() -> None:
        world = World(small())
        log = await world.open()
        positions = await append_each(log, 4)
        cursors = [await log.open_cursor(f"c{number}", EARLIEST) for number in range(3)]
        for cursor in cursors:
            cursor.acknowledge_cumulative(positions[0])
        await asyncio.sleep(1)
        before = [cursor.hole_stats().ledger_id for cursor in cursors]
        world.ledger_store.fail_appends = 1
        for cursor in cursors:
            assert cursor.acknowledge_entry(*positions[1])
        closing = asyncio.ensure_future(cursors[2].close())
        await asyncio.sleep(1)
        assert closing.done()
        assert cursors[0].hole_stats().ledger_id > max(before), "the first append was the one that failed"
        assert cursors[1].hole_stats().ledger_id == before[1]
        assert {cursor.persistent_mark_delete for cursor in cursors} == {positions[1]}
        log = await world.reopen()
        assert {cursor.mark_delete for cursor in log.cursors.values()} == {positions[1]}

    run(scenario())
