"""End of the ledger that is written, and the fate of one that nothing was stored in."""

import asyncio
import logging

import pytest

from managed_ledger.append.append_driver import FRUITLESS_LEDGERS_MAX
from managed_ledger.append.settling import settle
from managed_ledger.contract import ManagedLedgerError
from wire.position import Position

from ..ledger_world import World, append, append_each, numbers, read_all, run, trimming


def test_a_full_ledger_is_closed_by_its_last_receipt_though_nobody_appends_after_it() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger = await world.open()
        await append_each(ledger, 9)
        assert ledger.sequence.open_ledger_id == 1
        await append(ledger, b"9")
        await asyncio.sleep(1)
        assert not any(span.is_open for span in ledger.sequence)
        assert await ledger.trim() == [1]

    run(scenario())


def test_a_ledger_in_which_the_first_append_failed_is_deleted() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        world.ledger_store.fail_appends = 1
        stored = await append(ledger, b"1")
        await asyncio.sleep(1)
        assert (stored, world.shared.deleted) == (Position(2, 0), [1])
        await ledger.close()
        assert list(world.shared.ledgers) == [2]

    run(scenario())


@pytest.mark.parametrize(("failures", "is_stored"), [(FRUITLESS_LEDGERS_MAX - 1, True), (FRUITLESS_LEDGERS_MAX, False)])
def test_an_append_is_tried_in_so_many_ledgers_and_no_more(failures: int, is_stored: bool) -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        world.ledger_store.fail_appends = failures
        if is_stored:
            await append(ledger, b"0")
            assert await read_all(ledger) == numbers(1)
        else:
            with pytest.raises(ManagedLedgerError, match="the write failed"):
                await append(ledger, b"0")
        assert world.shared.creates == failures + is_stored

    run(scenario())


def test_closing_waits_for_a_trim_that_was_begun() -> None:
    async def scenario() -> None:
        world = World(trimming())
        await append_each(await world.open(), 20)
        await world.restart()
        world.store = world.slow_store()
        world.ledgers = world.factory()
        ledger = await world.open()
        ledger._trimming.trim_soon()
        await asyncio.sleep(0)
        await ledger.close()
        assert ledger._trimming._task is None

    run(scenario())


def test_a_ledger_that_cannot_be_deleted_now_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger = await world.open()
        await append_each(ledger, 10)
        await asyncio.sleep(1)
        world.ledger_store.fail_deletes = 1
        await ledger.trim()
        await asyncio.sleep(1)

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert [text for text in caplog.messages if "ledger not deleted" in text and "ledger=1" in text and "not now" in text]


def test_a_ledger_that_lost_what_it_had_confirmed_is_told_with_both_ends() -> None:
    with pytest.raises(ManagedLedgerError, match="recovered up to 2, but 4 is confirmed"):
        settle(7, 5, [], 2)


def test_a_new_ledger_trims_the_consumed_ledgers_before_it() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger = await world.open()
        await append_each(ledger, 10)
        await append(ledger, b"10")
        await asyncio.sleep(1)
        assert world.shared.deleted == [1]
        assert await read_all(ledger) == [b"10"]

    run(scenario())
