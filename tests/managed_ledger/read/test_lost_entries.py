"""autoSkipNonRecoverableData: exactly what is lost is skipped, logged and counted; and only when that is asked for."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from managed_ledger.contract import EARLIEST, ManagedLedgerError
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from wire.position import Position

from ..fake_ledgers import payloads
from ..ledger_world import MANY, World, append_each, numbers, read_all, run, small


async def damaged(skips: bool, lost: set[int], count: int = 30) -> tuple[World, StoredManagedLedger]:
    """Ledgers of ten entries, of which these (counted over all) are gone."""
    world = World(small(auto_skip_non_recoverable_data=skips))
    await append_each(await world.open(), count)
    ledger = await world.reopen()
    for number in lost:
        world.shared.ledgers[1 + number // 10].lost.add(number % 10)
    return world, ledger


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 29)), st.integers(1, 12))
def test_exactly_the_lost_entries_are_skipped_and_no_cursor_waits_for_them(lost: set[int], entries_max: int) -> None:
    async def scenario() -> None:
        _, ledger = await damaged(True, lost)
        cursor = ledger.open_non_durable_cursor("s", EARLIEST)
        assert await read_all(ledger, entries_max=entries_max) == [b"%d" % number for number in range(30) if number not in lost]
        assert ledger.reads.lost.count == len(lost)
        assert cursor.backlog_entries() == 30 - len(lost)
        again = await read_all(ledger, entries_max=entries_max)
        assert len(again) == 30 - len(lost)
        assert ledger.reads.lost.count == len(lost), "counted once"

    run(scenario())


def test_a_range_is_logged_once_with_its_bounds(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        _, ledger = await damaged(True, {3, 4, 5, 8})
        with caplog.at_level(logging.ERROR):
            await read_all(ledger)

    run(scenario())
    told = [record.getMessage() for record in caplog.records if "skipped" in record.getMessage()]
    assert len(told) == 2
    assert "first_entry=3" in told[0]
    assert "last_entry=5" in told[0]
    assert "first_entry=8" in told[1]
    assert "skipped_so_far=4" in told[1]


def test_a_ledger_that_is_gone_is_skipped_as_a_whole() -> None:
    async def scenario() -> None:
        world, ledger = await damaged(True, set())
        del world.shared.ledgers[2]
        assert await read_all(ledger) == numbers(10) + numbers(10, 20)
        assert ledger.reads.lost.count == 10

    run(scenario())


def test_without_the_setting_nothing_is_skipped() -> None:
    async def scenario() -> None:
        _, ledger = await damaged(False, {3})
        found = await ledger.read(EARLIEST, 10, MANY)
        assert found is not None
        assert payloads(found) == numbers(3)
        with pytest.raises(ManagedLedgerError, match="cannot be read"):
            await ledger.read(Position(1, 3), 10, MANY)
        assert ledger.reads.lost.count == 0

    run(scenario())


def test_an_entry_that_is_only_unreadable_for_now_is_not_skipped() -> None:
    async def scenario() -> None:
        world, ledger = await damaged(True, set())
        world.shared.ledgers[2].is_away = True
        with pytest.raises(ManagedLedgerError, match="cannot be read"):
            await read_all(ledger)
        assert ledger.reads.lost.count == 0
        world.shared.ledgers[2].is_away = False
        assert await read_all(ledger) == numbers(30)

    run(scenario())


def test_entries_behind_one_that_is_known_to_be_lost_are_picked_with_those_before_it() -> None:
    async def scenario() -> None:
        _, ledger = await damaged(True, {3})
        await read_all(ledger)
        picked = await ledger.pick([(1, BitMap([2, 3, 4, 5]))], MANY)
        assert [text for each in picked.runs for text in payloads(each) if text] == [b"2", b"4", b"5"]
        assert picked.gone == [(1, BitMap([3]))]

    run(scenario())
