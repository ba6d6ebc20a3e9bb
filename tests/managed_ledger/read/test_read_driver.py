"""Scenarios of reading a managed ledger: runs, catching up, the cache, positions, searching, listeners."""

import asyncio
import itertools

from managed_ledger.contract import (
    EARLIEST,
    LATEST,
)
from wire.position import Position

from ..fake_ledgers import payloads
from ..ledger_world import MANY, World, append, append_each, numbers, read_all, run, small


def test_appended_entries_are_read_in_order_over_many_ledgers() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await append_each(ledger, 35)
        assert len(ledger.sequence) == 4
        assert ledger.entry_count == 35
        assert await read_all(ledger) == numbers(35)
        ledger.sequence.check_invariants()

    run(scenario())


def test_confirmed_listeners_hear_once_of_many_runs_and_no_more_after_they_end() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        heard: list[Position] = []
        end = ledger.on_confirmed(lambda: heard.append(ledger.last_confirmed))
        await append_each(ledger, 5)
        await asyncio.sleep(0)
        assert heard
        assert heard[-1] == Position(1, 4)
        end()
        count = len(heard)
        await append(ledger, b"x")
        await asyncio.sleep(0)
        assert len(heard) == count

    run(scenario())


def test_find_first_is_the_first_position_for_which_it_holds() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        positions = await append_each(ledger, 35)
        for number in (0, 9, 10, 17, 34):
            found = await ledger.find_first(lambda run, n=number: [int(text) >= n for text in payloads(run)])  # type: ignore[misc]
            assert found == positions[number]
        assert await ledger.find_first(lambda run: [False] * run.count) is None

    run(scenario())


def test_positions_go_over_the_ends_of_ledgers() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        positions = await append_each(ledger, 25)
        for before, after in itertools.pairwise(positions):
            assert ledger.next_position(before) == after
            assert ledger.previous_position(after) == before
        assert ledger.first_position() == positions[0]
        assert ledger.count_between(positions[3], positions[21]) == 19
        assert ledger.count_between(positions[4], positions[3]) == 0

    run(scenario())


def test_many_small_appends_are_read_as_one_run() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=1000))
        ledger = await world.open()
        ledger.open_non_durable_cursor("reader", EARLIEST)
        await append_each(ledger, 100)
        found = await ledger.read(EARLIEST, 100, MANY)
        assert found is not None
        assert found.count == 100
        assert payloads(found) == numbers(100)
        assert world.shared.reads == 0

    run(scenario())


def test_catching_up_reads_the_ledger_once_per_megabyte() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=100_000))
        ledger = await world.open()
        for first in range(0, 5000, 100):
            await append(ledger, *(b"%1000d" % number for number in range(first, first + 100)))
        ledger = await world.reopen()
        assert [int(text) for text in await read_all(ledger)] == list(range(5000))
        assert world.shared.reads <= 7

    run(scenario())


def test_entries_read_ahead_by_a_catch_up_do_not_stay_in_memory() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=1000))
        await append_each(await world.open(), 300)
        ledger = await world.reopen()
        assert len(await read_all(ledger, entries_max=50)) == 300
        assert world.shared.reads == 2
        assert world.ledgers.cached_bytes > 0
        await asyncio.sleep(1.1)
        assert world.ledgers.cached_bytes == 0

    run(scenario())


def test_a_cursor_at_the_end_reads_only_what_comes() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await append_each(ledger, 12)
        cursor = await ledger.open_cursor("late", LATEST)
        assert cursor.backlog_entries() == 0
        positions = await append_each(ledger, 3, 12)
        assert cursor.first_unacknowledged() == positions[0]
        assert cursor.backlog_entries() == 3

    run(scenario())


def test_entries_that_one_reader_has_still_to_read_stay_cached_while_another_is_ahead() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=1000))
        ledger = await world.open()
        ledger.open_non_durable_cursor("reader", EARLIEST)
        await append(ledger, b"0")
        for _ in range(2):
            await ledger.read(EARLIEST, 1, MANY)
        for number in range(1, 5):
            await append(ledger, b"%d" % number)
            assert await ledger.read(Position(1, number), 10, MANY) is not None
        assert await read_all(ledger, Position(1, 1)) == numbers(4, 1)
        assert world.shared.reads == 0

    run(scenario())


def test_cached_entries_are_read_at_once_and_no_others() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        ledger.open_non_durable_cursor("reader", EARLIEST)
        await append_each(ledger, 15)
        found = ledger.read_cached(EARLIEST, 100, MANY)
        assert found is not None
        assert payloads(found) == numbers(10)
        assert ledger.read_cached(Position(2, 5), 100, MANY) is None, "nothing there yet"
        ledger = await world.reopen()
        assert ledger.read_cached(EARLIEST, 100, MANY) is None, "not in memory"
        assert await ledger.read(EARLIEST, 100, MANY) is not None

    run(scenario())
