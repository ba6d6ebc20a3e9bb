"""Scenarios of the ends: of a ledger (old, trimmed), of a managed ledger (closed, terminated, deleted)."""

import asyncio

import pytest

from managed_ledger.contract import (
    EARLIEST,
    ManagedLedgerError,
    ManagedLedgerTerminated,
)
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from wire.position import Position

from .fake_ledgers import batch, payloads
from .ledger_world import NAME, World, append, append_each, numbers, read_all, run, trimming


async def consumed(world: World) -> tuple[StoredManagedLedger, list[Position]]:
    ledger = await world.open()
    cursor = await ledger.open_cursor("sub", EARLIEST)
    positions = await append_each(ledger, 35)
    cursor.acknowledge_cumulative(positions[24])
    return ledger, positions


def test_terminated_for_ever() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        last = await append(ledger, b"1", b"2")
        assert await ledger.terminate() == last
        with pytest.raises(ManagedLedgerTerminated):
            await append(ledger, b"3")
        ledger = await world.reopen()
        assert ledger.is_terminated
        with pytest.raises(ManagedLedgerTerminated):
            await append(ledger, b"3")
        assert await read_all(ledger) == [b"1", b"2"]

    run(scenario())


def test_the_last_ledger_of_a_terminated_managed_ledger_stays_though_all_is_consumed() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST)
        positions = await append_each(ledger, 35)
        assert await ledger.terminate() == positions[-1]
        cursor.acknowledge_cumulative(positions[-1])
        reader = ledger.open_non_durable_cursor("reader", EARLIEST)
        await ledger.delete_cursor("sub")
        await reader.close()
        await ledger.trim(despite_retention=True)
        assert await read_all(ledger) == numbers(5, 30)
        ledger = await world.reopen()
        await ledger.trim(despite_retention=True)
        assert await read_all(ledger) == numbers(5, 30)
        assert ledger.last_confirmed == positions[-1]

    run(scenario())


def test_close_answers_what_was_appended() -> None:
    async def scenario() -> None:
        world = World(step_s=0.001)
        ledger = await world.open()
        futures = [ledger.append(batch(text)) for text in numbers(25)]
        await ledger.close()
        assert [payloads(await future)[0] for future in futures] == numbers(25)
        with pytest.raises(ManagedLedgerError):
            await append(ledger, b"late")
        assert await read_all(await world.open()) == numbers(25)

    run(scenario())


def test_delete_leaves_no_ledger_and_no_node() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST)
        positions = await append_each(ledger, 25)
        cursor.acknowledge_cumulative(positions[3])
        await cursor.flush()
        await ledger.delete()
        assert world.shared.ledgers == {}
        assert not await world.ledgers.exists(NAME)
        again = await world.open()
        assert again is not ledger
        assert await read_all(again) == []

    run(scenario())


@pytest.mark.parametrize("milliseconds", range(0, 10, 3))
def test_delete_in_the_middle_of_trimming_leaves_no_ledger_either(milliseconds: int) -> None:
    async def scenario() -> None:
        world = World(trimming(), step_s=0.002)
        ledger, _ = await consumed(world)
        await asyncio.sleep(milliseconds / 1000)
        await ledger.delete()
        assert world.shared.ledgers == {}
        assert not await world.ledgers.exists(NAME)

    run(scenario())


def test_a_deletion_that_fails_says_so_and_can_be_done_again() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await append_each(ledger, 15)
        world.ledger_store.fail_deletes = 2
        with pytest.raises(ManagedLedgerError):
            await ledger.delete()
        again = await world.open()
        assert await read_all(again) == []
        await again.delete()
        assert world.shared.ledgers == {}

    run(scenario())


def test_ledgers_consumed_by_every_durable_cursor_are_trimmed_and_the_open_one_never() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger, positions = await consumed(world)
        slow = await ledger.open_cursor("slow", EARLIEST)
        assert slow.backlog_entries() >= 15
        cursor = ledger.cursors["sub"]
        cursor.acknowledge_cumulative(positions[-1])
        await ledger.trim()
        slow.acknowledge_cumulative(positions[-1])
        await ledger.trim()
        assert [span.ledger_id for span in ledger.sequence] == [4]
        await ledger.close()
        assert sorted(world.shared.ledgers) == [4]

    run(scenario())


def test_nothing_is_trimmed_while_cursors_leave_at_the_end() -> None:
    """Without cursors everything would look consumed. Found by a generated schedule."""

    async def scenario() -> None:
        world = World(trimming(), step_s=0.001)
        ledger = await world.open()
        await ledger.open_cursor("sub", EARLIEST)
        await append_each(ledger, 9)
        futures = [ledger.append(batch(b"%d" % number)) for number in range(9, 30)]
        trim = asyncio.ensure_future(ledger.trim())
        await ledger.close()
        await asyncio.gather(trim, *futures, return_exceptions=True)
        again = await world.open()
        assert again.cursors["sub"].backlog_entries() == 30
        assert await read_all(again) == numbers(30)

    run(scenario())


def test_a_crash_between_the_two_steps_of_trimming_leaves_no_orphan() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger, _ = await consumed(world)
        world.ledger_store.fail_deletes = 2
        await ledger.trim()
        await asyncio.sleep(0.01)
        ledger = await world.reopen()
        await asyncio.sleep(0.01)
        assert await read_all(ledger) == numbers(15, 20)
        names = [ledger_id for ledger_id in world.shared.ledgers if ledger_id < 3]
        assert names == []

    run(scenario())


def test_a_ledger_that_grew_old_is_closed_without_any_append_and_can_be_trimmed() -> None:
    async def scenario() -> None:
        world = World(trimming(managed_ledger_max_ledger_rollover_time_minutes=10))
        ledger = await world.open()
        last = await append(ledger, b"1")
        await asyncio.sleep(601)
        assert ledger.sequence.open_ledger_id is None
        assert await ledger.trim() == [last.ledger_id]
        assert await read_all(ledger) == []
        assert ledger.last_confirmed == last
        cursor = await ledger.open_cursor("sub", EARLIEST)
        ledger = await world.reopen()
        cursor = ledger.cursors["sub"]
        assert cursor.backlog_entries() == 0
        following = await append(ledger, b"2")
        assert following > last
        assert cursor.backlog_entries() == 1
        assert cursor.first_unacknowledged() == following

    run(scenario())


def test_a_ledger_that_nobody_adds_to_is_closed_and_one_that_is_in_use_is_not() -> None:
    async def scenario() -> None:
        world = World(trimming(managed_ledger_inactive_ledger_rollover_time_seconds=10))
        ledger = await world.open()
        first = await append(ledger, b"1")
        for _ in range(5):
            await asyncio.sleep(9)
            assert (await append(ledger, b"2")).ledger_id == first.ledger_id
        await asyncio.sleep(21)
        assert ledger.sequence.open_ledger_id is None
        assert await ledger.trim() == [first.ledger_id]
        following = await append(ledger, b"3")
        assert following.ledger_id > first.ledger_id
        assert await read_all(ledger) == [b"3"]
        await ledger.close()
        await asyncio.sleep(100)

    run(scenario())


def test_a_ledger_is_not_closed_for_being_idle_unless_that_is_asked_for() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger = await world.open()
        position = await append(ledger, b"1")
        await asyncio.sleep(9000)
        assert ledger.sequence.open_ledger_id == position.ledger_id

    run(scenario())


def test_an_end_that_fails_as_nobody_foresaw_keeps_nobody_from_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> None:
        raise RuntimeError("not foreseen")

    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await append(ledger, b"0")
        monkeypatch.setattr(ledger.reads, "close", fails)
        with pytest.raises(RuntimeError):
            await ledger.close()
        assert await read_all(await asyncio.wait_for(world.open(), 60)) == [b"0"]

    run(scenario())


def test_opening_waits_for_the_end_that_was_begun() -> None:
    async def scenario() -> None:
        world = World(step_s=0.001)
        old = await world.open()
        await append(old, b"1")
        _, new = await asyncio.gather(old.close(), world.open())
        assert new is not old
        assert await read_all(new) == [b"1"]

    run(scenario())
