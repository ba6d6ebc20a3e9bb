"""Scenarios of a managed ledger: appending, rolling over, owners, failures, restarts."""

import asyncio

import pytest

from managed_ledger.contract import (
    EARLIEST,
    ManagedLedgerError,
    ManagedLedgerFenced,
    ManagedLedgerNotFound,
)
from managed_ledger.ledgers.sequence import LedgerSequence
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from tests.invariants import checked_after_each_step

from .fake_ledgers import batch
from .ledger_world import MANY, NAME, World, append, append_each, numbers, read_all, run, small

checked_machines = checked_after_each_step(LedgerSequence)


def test_a_topic_without_entries_costs_one_metadata_write_and_no_ledger() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        assert world.shared.creates == 0
        assert await world.store.exists(f"/managed-ledgers/{NAME}")
        assert await ledger.read(EARLIEST, 10, MANY) is None
        assert ledger.last_confirmed.entry_id == -1

    run(scenario())


def test_a_managed_ledger_is_not_made_when_that_was_not_asked_for() -> None:
    async def scenario() -> None:
        world = World()
        with pytest.raises(ManagedLedgerNotFound):
            await world.ledgers.open(NAME, create=False)
        assert not await world.ledgers.exists(NAME)

    run(scenario())


def test_a_managed_ledger_is_opened_once_per_name() -> None:
    async def scenario() -> None:
        world = World()
        first, second = await asyncio.gather(world.open(), world.open())
        assert first is second

    run(scenario())


def test_after_a_kill_everything_acknowledged_is_there_and_appending_goes_on() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await append_each(ledger, 13)
        ledger = await world.reopen()
        await append_each(ledger, 13, 13)
        assert await read_all(ledger) == numbers(26)
        ledger = await world.reopen()
        assert await read_all(ledger) == numbers(26)

    run(scenario())


def test_the_last_ledger_is_fenced_when_another_process_opens_the_managed_ledger() -> None:
    async def scenario() -> None:
        world = World()
        old = await world.open()
        await append(old, b"1")
        world.start()
        new = await world.open()
        with pytest.raises(ManagedLedgerFenced):
            await append(old, b"lost")
        with pytest.raises(ManagedLedgerFenced):
            await append(old, b"lost")
        await append(new, b"2")
        assert await read_all(new) == [b"1", b"2"]

    run(scenario())


def test_an_owner_without_an_open_ledger_is_fenced_by_the_version_of_the_node() -> None:
    async def scenario() -> None:
        world = World()
        old = await world.open()
        world.start()
        new = await world.open()
        await append(new, b"1")
        with pytest.raises(ManagedLedgerFenced):
            await append(old, b"lost")
        assert await read_all(new) == [b"1"]
        assert sorted(world.shared.ledgers) == [1], "the ledger that could not be listed is deleted"

    run(scenario())


@pytest.mark.parametrize("is_stored", [False, True])
def test_appends_survive_a_failed_ledger_once_each_and_in_order(is_stored: bool) -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=100))
        ledger = await world.open()
        await append(ledger, b"0")
        world.ledger_store.fail_appends = 1
        world.ledger_store.lose_answers = is_stored
        positions = await append_each(ledger, 5, 1)
        assert positions == sorted(positions)
        assert await read_all(ledger) == numbers(6)
        assert positions[0].ledger_id == (1 if is_stored else 2)
        assert await read_all(await world.reopen()) == numbers(6)

    run(scenario())


def test_a_batch_stored_in_part_fails_what_is_unanswered_and_nothing_that_came_before() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await append(ledger, b"0")
        world.ledger_store.fail_appends = 1
        world.ledger_store.torn_entries = 1
        results = await asyncio.gather(*(ledger.append(batch(b"x", b"y")) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [ManagedLedgerError] * 3
        with pytest.raises(ManagedLedgerError):
            await append(ledger, b"z")
        with pytest.raises(ManagedLedgerError):
            await ledger.close()
        assert await read_all(await world.open()) == [b"0", b"x"]

    run(scenario())


def test_ledgers_that_fail_again_and_again_end_in_an_error_and_not_in_a_loop() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        world.ledger_store.fail_appends = 1000
        with pytest.raises(ManagedLedgerError):
            await append(ledger, b"0")
        assert world.shared.creates < 10

    run(scenario())


def test_appends_wait_for_a_ledger_that_cannot_be_made_only_until_it_fails() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        world.ledger_store.fail_creates = 1
        results = await asyncio.gather(*(ledger.append(batch(b"x")) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [ManagedLedgerError] * 3
        assert await read_all(await world.reopen()) == []

    run(scenario())


def test_appends_are_answered_also_when_the_next_ledger_fails_as_nobody_foresaw(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await append_each(ledger, 1)
        ledger = await world.reopen()
        world.shared.next_id -= 1  # a ledger that is not above the last one of the log
        waiting = asyncio.gather(*(ledger.append(batch(b"x")) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in await asyncio.wait_for(waiting, 60)] == [ManagedLedgerError] * 3
        with pytest.raises(ManagedLedgerError):
            await ledger.close()

    run(scenario())
    assert "is not the newest" in caplog.text


def test_properties_survive_and_replace_one_another() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await ledger.set_properties({"a": "1", "b": "2"})
        await append(ledger, b"1")
        await ledger.set_properties({"b": "3"})
        ledger = await world.reopen()
        assert ledger.properties == {"b": "3"}

    run(scenario())


def test_an_open_with_create_succeeds_although_one_without_create_came_first() -> None:
    async def scenario() -> None:
        world = World()
        first, second = await asyncio.gather(
            world.ledgers.open(NAME, create=False), world.ledgers.open(NAME), return_exceptions=True
        )
        assert isinstance(first, ManagedLedgerNotFound)
        assert isinstance(second, StoredManagedLedger)

    run(scenario())
