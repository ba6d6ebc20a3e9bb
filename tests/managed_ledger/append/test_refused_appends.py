"""Appends that no bookie takes: they are refused, in order, and the managed ledger goes on for those who can live with that."""

import asyncio

import pytest

from managed_ledger.append.append_driver import FRUITLESS_LEDGERS_MAX
from managed_ledger.contract import AppendRefused, ManagedLedgerError
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from wire.position import Position
from wire.run import EntryRun

from ..fake_ledgers import batch
from ..ledger_world import World, append, append_each, numbers, read_all, run
from .test_entry_metadata import append as append_messages
from .test_entry_metadata import message, stamps
from .test_entry_metadata import world as world_with_indexes


async def refused(ledger: StoredManagedLedger, *texts: bytes) -> list[type]:
    """Results of appends of one entry each."""
    found = await asyncio.gather(*(ledger.append(batch(text)) for text in texts), return_exceptions=True)
    return [type(each) for each in found]


async def opened(world: World) -> StoredManagedLedger:
    """Opens a ledger with a listener that ignores refused appends."""
    ledger = await world.open()
    ledger.on_refused(lambda: None)
    return ledger


def test_appends_without_a_ledger_are_refused_and_the_next_one_is_stored_while_reading_goes_on() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await opened(world)
        await append_each(ledger, 3)
        world.ledger_store.fail_appends, world.ledger_store.fail_creates = 1, 2
        for _ in range(2):
            assert await refused(ledger, b"a", b"b", b"c") == [AppendRefused] * 3
            assert await read_all(ledger) == numbers(3)
        await append_each(ledger, 10, 3)
        assert await read_all(ledger) == numbers(13)
        await ledger.close()
        assert await read_all(await world.reopen()) == numbers(13)

    run(scenario())


def test_appends_that_ledger_after_ledger_does_not_take_are_refused_and_the_next_one_is_stored() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await opened(world)
        world.ledger_store.fail_appends = FRUITLESS_LEDGERS_MAX
        with pytest.raises(AppendRefused, match="3 ledgers in a row took nothing, the last one: the write failed"):
            await append(ledger, b"refused")
        assert world.shared.creates == FRUITLESS_LEDGERS_MAX
        await append_each(ledger, 2)
        assert await read_all(ledger) == numbers(2)

    run(scenario())


def test_entries_that_the_failed_ledger_has_stored_are_confirmed_and_the_rest_refused() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await opened(world)
        await append_each(ledger, 1)
        store = world.ledger_store
        store.fail_appends, store.fail_creates, store.lose_answers = 1, 1, True
        assert await refused(ledger, b"1", b"x") == [EntryRun, AppendRefused]
        await append_each(ledger, 2, 2)
        assert await read_all(await world.reopen()) == numbers(4)

    run(scenario())


def test_appends_of_whom_nobody_is_told_fail_with_the_managed_ledger() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        world.ledger_store.fail_creates = 1
        assert await refused(ledger, b"a", b"b") == [ManagedLedgerError] * 2
        assert await refused(ledger, b"c") == [ManagedLedgerError], "it has to be opened again"

    run(scenario())


def test_a_ledger_of_which_cannot_be_known_what_it_stored_fails_the_managed_ledger() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await opened(world)
        world.ledger_store.fail_appends, world.ledger_store.fail_opens = 1, 1
        assert await refused(ledger, b"a", b"b") == [ManagedLedgerError] * 2

    run(scenario())


def test_the_refusal_listener_is_called_before_the_first_append_fails() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        told: list[bool] = []
        world.ledger_store.fail_creates = 1
        appends = [ledger.append(batch(b"a")), ledger.append(batch(b"b"))]
        ledger.on_refused(lambda: told.extend(each.done() for each in appends))
        await asyncio.wait(appends)
        assert told == [False, False]

    run(scenario())


def test_closing_and_terminating_refuse_what_waits_for_a_ledger_and_keep_what_is_stored() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await opened(world)
        await append_each(ledger, 10)  # a full ledger
        world.ledger_store.fail_creates = 1
        waiting = ledger.append(batch(b"x"))
        assert await ledger.terminate() == Position(1, 9)
        with pytest.raises(AppendRefused):
            await waiting
        assert await read_all(await world.reopen()) == numbers(10)

    run(scenario())


def test_the_indexes_of_refused_messages_are_given_again() -> None:
    async def scenario() -> None:
        world = world_with_indexes()
        ledger = await opened(world)
        await append_messages(ledger, 2)
        world.ledger_store.fail_appends, world.ledger_store.fail_creates = 1, 1
        for waiting in [ledger.append(batch(message(5))) for _ in range(3)]:
            with pytest.raises(AppendRefused):
                await waiting
        await append_messages(ledger, 3)
        assert [index for _, _, index in await stamps(ledger)] == [1, 4]

    run(scenario())
