"""Trimming: a prefix, never under a cursor or a reader, by retention, and retention that changes while the log is open."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from managed_ledger.contract import EARLIEST, LATEST
from managed_ledger.ledgers.sequence import LedgerSequence
from managed_ledger.ledgers.trimming import Retention, trimmable
from managed_ledger.settings import MEGABYTE
from tests.managed_ledger.ledger_world import World, append_each, numbers, read_all, run, small, trimming
from wire.position import Position

ledgers = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 50), st.integers(0, 100)), min_size=1, max_size=8)
marks = st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 5)), max_size=3)
bounds = st.sampled_from([-1, 0, 1, 20, 60])


@given(ledgers, marks, bounds, bounds, st.booleans())
def test_the_trimmed_ledgers_are_those_of_apache_and_only_a_consumed_prefix(
    sizes: list[tuple[int, int, int]], places: list[tuple[int, int]], age: int, size: int, is_open: bool
) -> None:
    """The twin is ManagedLedgerImpl.internalTrimLedgers: ledger by ledger, the total without those that go already."""
    sequence = LedgerSequence()
    for ledger_id, (entries, size_bytes, closed_at) in enumerate(sizes):
        sequence.add_closed(ledger_id, entries, size_bytes, closed_at)
    if is_open:
        sequence.open(len(sizes))
    cursors = [Position(*place) for place in places]
    gone = trimmable(sequence, cursors, Retention(age, size), 100)
    assert gone == list(range(len(gone)))
    total, expected = sum(each[1] for each in sizes), []
    for ledger_id, (entries, size_bytes, closed_at) in enumerate(sizes):
        total -= size_bytes
        is_consumed = all(mark >= Position(ledger_id, entries - 1) for mark in cursors)
        is_expired, is_over = age >= 0 and 100 - closed_at >= age, size >= 0 and total >= size
        if not is_consumed or not (is_expired or is_over):
            break
        expected.append(ledger_id)
    assert gone == expected


def test_a_reader_holds_what_it_has_not_read_while_it_is_there() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger = await world.open()
        reader = ledger.open_non_durable_cursor("reader", EARLIEST)
        positions = await append_each(ledger, 35)
        assert await ledger.trim() == []
        reader.acknowledge_cumulative(positions[24])
        await ledger.trim()
        assert [span.ledger_id for span in ledger.sequence] == [3, 4]
        assert await read_all(ledger) == numbers(15, 20)
        await reader.close()
        await asyncio.sleep(0.01)
        assert [span.ledger_id for span in ledger.sequence] == [4]

    run(scenario())


def test_retention_that_is_taken_back_lets_go_at_once_and_by_age_in_time() -> None:
    async def scenario() -> None:
        world = World(small())
        ledger = await world.open()
        await append_each(ledger, 35)
        assert await ledger.trim() == []
        ledger.set_retention(60_000, -1)
        await asyncio.sleep(0.01)
        assert len(ledger.ledgers()) == 4
        world.clock.ms += 60_000
        assert await ledger.trim() == [1, 2, 3]
        await append_each(ledger, 34)
        ledger.set_retention(-1, MEGABYTE)
        await asyncio.sleep(0.01)
        assert len(ledger.ledgers()) > 1
        ledger.set_retention(0, 0)
        await asyncio.sleep(0.01)
        (last,) = ledger.ledgers()
        assert last.is_open
        assert (last.ledger_id, last.closed_at_ms) == (ledger.last_confirmed.ledger_id, 0)

    run(scenario())


def test_trimming_despite_retention_leaves_the_open_ledger_and_what_is_not_consumed() -> None:
    async def scenario() -> None:
        world = World(small())
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST)
        positions = await append_each(ledger, 35)
        cursor.acknowledge_cumulative(positions[19])
        assert await ledger.trim() == []
        assert await ledger.trim(despite_retention=True) == [1, 2]
        cursor.acknowledge_cumulative(positions[-1])
        assert await ledger.trim(despite_retention=True) == [3]
        assert [facts.ledger_id for facts in ledger.ledgers()] == [4]
        late = ledger.open_non_durable_cursor("late", LATEST)
        assert late.backlog_entries() == 0

    run(scenario())


def test_a_crash_at_any_moment_of_trimming_leaves_no_orphan_and_no_hole() -> None:
    async def scenario(crash_ms: int) -> None:
        world = World(small(), step_s=0.002)
        ledger = await world.open()
        await append_each(ledger, 35)
        trim = asyncio.ensure_future(ledger.trim(despite_retention=True))
        await asyncio.sleep(crash_ms / 1000)
        await world.kill()
        trim.cancel()
        world.start()
        ledger = await world.open()
        await asyncio.sleep(1)
        there = [facts.ledger_id for facts in ledger.ledgers()]
        assert sorted(world.shared.ledgers) == there
        assert there == list(range(there[0], 5))
        assert len(await read_all(ledger)) == ledger.entry_count

    for crash_ms in range(12):
        run(scenario(crash_ms))


def test_trimming_a_ledger_forgets_its_lost_entries() -> None:
    async def scenario() -> None:
        world = World(trimming(auto_skip_non_recoverable_data=True))
        ledger = await world.open()
        await append_each(ledger, 10)
        await asyncio.sleep(1)
        lost = ledger.reads.lost
        lost.add(1, 3, 4, "nobody has it")
        assert lost.after(Position(1, 3)) == Position(1, 4)
        assert await ledger.trim() == [1]
        assert lost.after(Position(1, 3)) == Position(1, 3)

    run(scenario())
