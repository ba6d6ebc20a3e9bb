"""Work for each cursor of a managed ledger is done in slices, or costs the same however many there are."""

import asyncio

from managed_ledger.contract import EARLIEST
from ports.loop.slices import SLICE
from tests.cost import Counter, steps
from wire.position import Position

from ..ledger_world import World, append_each, numbers, read_all, run, small

COUNT = 8 * SLICE
LOST = 3


async def settle() -> None:
    for _ in range(40):
        await asyncio.sleep(0)


async def damaged(lost: int = LOST) -> World:
    """Ten entries in a ledger, of which one is gone."""
    world = World(small(auto_skip_non_recoverable_data=True))
    await append_each(await world.open(), 10)
    await world.restart()
    world.shared.ledgers[1].lost.add(lost)
    return world


def test_a_change_of_the_rate_of_saves_costs_the_same_for_many_cursors_and_holds_for_each() -> None:
    found = list[int]()

    async def scenario(count: int) -> None:
        ledger = await World().open()
        cursors = [await ledger.open_cursor(f"c{number}", EARLIEST) for number in range(count)]
        found.append(steps(lambda: ledger._cursors.limit_marks(0.5)))
        later = await ledger.open_cursor("later", EARLIEST)
        assert {each._throttle._rate.interval_s for each in (*cursors, later)} == {2.0}  # type: ignore[attr-defined]

    run(scenario(2))
    run(scenario(16))
    assert found[0] == found[1]


def test_a_turn_of_the_loop_acknowledges_lost_entries_on_some_cursors() -> None:
    async def scenario() -> None:
        ledger = await (await damaged()).open()
        cursors = [ledger.open_non_durable_cursor(f"c{number}", EARLIEST) for number in range(COUNT)]
        with Counter() as counter:
            await ledger.read(Position(1, LOST), 1, 1000)
            await settle()
        assert all(each.is_acknowledged(Position(1, LOST)) for each in cursors)
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario())


def test_cursors_that_come_go_back_or_end_while_others_pass_lost_entries_wait_for_none_and_are_not_touched() -> None:
    async def scenario() -> None:
        ledger = await (await damaged()).open()
        cursors = [ledger.open_non_durable_cursor(f"c{number}", EARLIEST) for number in range(COUNT)]
        lost = Position(1, LOST)
        await ledger.read(lost, 1, 1000)
        last = cursors[-1]
        assert not last.is_acknowledged(lost), "its turn has not come"
        first = cursors[0]
        first.acknowledge_cumulative(Position(1, 5))
        await first.reset(Position(1, 0))
        await last.close()
        later, durable = ledger.open_non_durable_cursor("later", EARLIEST), await ledger.open_cursor("durable", EARLIEST)
        await settle()
        assert all(each.is_acknowledged(lost) for each in (*cursors[:-1], later, durable))
        assert not last.is_acknowledged(lost)

    run(scenario())


def test_a_cursor_that_comes_after_an_entry_was_found_lost_gets_over_it() -> None:
    async def scenario() -> None:
        ledger = await (await damaged()).open()
        assert await read_all(ledger) == [each for at, each in enumerate(numbers(10)) if at != LOST]
        cursor = await ledger.open_cursor("later", EARLIEST)
        for entry in range(10):
            if entry != LOST:
                cursor.acknowledge_cumulative(Position(1, entry)) if entry < LOST else cursor.acknowledge_batch_indexes(
                    Position(1, entry), (0,), 1
                )
        assert cursor.mark_delete == Position(1, 9)

    run(scenario())
