"""Readers that wait for a ledger's last add confirmed are woken when it goes on, and the records of writers never go back."""

import asyncio

import pytest

from bookie.server import confirmations
from bookie.server.confirmations import NO_RECORD, Confirmations, LacRecord
from tests.simulation.worlds import World, run


def test_a_later_record_replaces_an_earlier_one_and_never_the_reverse() -> None:
    known = Confirmations()
    assert known.record(1) == NO_RECORD
    known.remember(1, LacRecord(5, b"five"))
    known.remember(1, LacRecord(4, b"four"))
    assert known.record(1) == LacRecord(5, b"five")
    known.remember(1, LacRecord(5, b"again"))
    assert known.record(1) == LacRecord(5, b"again")


def test_beyond_the_bound_the_record_that_was_renewed_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmations, "RECORDS_MAX", 2)
    known = Confirmations()
    for ledger_id in (1, 2, 1, 3):
        known.remember(ledger_id, LacRecord(0, b""))
    assert [known.record(ledger_id) is NO_RECORD for ledger_id in (1, 2, 3)] == [False, True, False]


def test_a_reader_waits_until_the_ledger_is_beyond_its_place() -> None:
    async def scenario(world: World) -> None:
        known = Confirmations()
        reader = asyncio.ensure_future(known.wait(1, 5, 60.0))
        await asyncio.sleep(0)
        known.advanced(1, 5)
        known.advanced(2, 9)
        await asyncio.sleep(1)
        assert not reader.done()
        known.remember(1, LacRecord(6, b""))
        await reader
        assert world.loop.time() == pytest.approx(1.0, abs=0.1)

    run(scenario)


def test_a_reader_ends_when_its_time_is_over_and_leaves_nothing() -> None:
    async def scenario(world: World) -> None:
        known = Confirmations()
        await known.wait(1, 5, 2.0)
        assert world.loop.time() == pytest.approx(2.0, abs=0.1)
        assert not known.are_waited_for

    run(scenario)


def test_readers_of_one_ledger_end_each_by_itself() -> None:
    async def scenario(world: World) -> None:
        known = Confirmations()
        near, far = (asyncio.ensure_future(known.wait(1, beyond, 60.0)) for beyond in (5, 9))
        await asyncio.sleep(0)
        known.advanced(1, 6)
        await near
        assert known.is_waited_for(1)
        far.cancel()
        await asyncio.wait([far])
        assert not known.is_waited_for(1)

    run(scenario)


def test_beyond_the_bound_a_further_reader_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmations, "WAITS_MAX", 1)

    async def scenario(world: World) -> None:
        known = Confirmations()
        first = asyncio.ensure_future(known.wait(1, 5, 2.0))
        await asyncio.sleep(0)
        await known.wait(1, 5, 60.0)
        assert not first.done()
        await first
        await known.wait(1, 5, 3.0)
        assert world.loop.time() == pytest.approx(5.0, abs=0.1), "the place of the first one is free again"

    run(scenario)
