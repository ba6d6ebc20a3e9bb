"""Scattered entries of a ledger in one run: those that are there, all of them before its end, and none but those asked for."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from managed_ledger.contract import EARLIEST, ManagedLedgerError
from managed_ledger.ledger import picked_reads
from managed_ledger.ledger.picked_reads import GAP_BYTES, groups, within
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from wire.run import EntryRun

from .ledger_world import MANY, World, append, append_each, run, small

LARGE = {"managed_ledger_max_entries_per_ledger": 10_000}


def found_in(picked: EntryRun | None) -> dict[int, bytes]:
    if picked is None:
        return {}
    ids = range(picked.first_entry_id, picked.last_entry_id + 1)
    return {entry_id: payload for entry_id in ids if (payload := bytes(picked.payload(entry_id)))}


def expected(wanted: set[int] | BitMap) -> dict[int, bytes]:
    return {number: b"%d" % number for number in wanted}


async def opened(count: int, *, in_memory: bool = False, **changes: Any) -> tuple[World, StoredManagedLedger]:
    world = World(small(**LARGE, **changes))
    ledger = await world.open()
    if in_memory:
        ledger.open_non_durable_cursor("s", EARLIEST)
    await append_each(ledger, count)
    if not in_memory:
        ledger = await world.reopen()
        ledger.open_non_durable_cursor("s", EARLIEST)
    return world, ledger


@given(st.sets(st.integers(0, 3000), min_size=1), st.integers(0, 300))
def test_groups_have_all_that_is_wanted_and_no_gap_that_is_too_large(wanted: set[int], gap_max: int) -> None:
    found = groups(BitMap(wanted), gap_max)
    for (_, last), (first, _) in pairwise(found):
        assert first - last - 1 > gap_max
    for first, last in found:
        inside = sorted(entry_id for entry_id in wanted if first <= entry_id <= last)
        assert (inside[0], inside[-1]) == (first, last)
        assert all(after - before - 1 <= gap_max for before, after in pairwise(inside))
    assert sum(first <= entry_id <= last for entry_id in wanted for first, last in found) == len(wanted)


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.integers(0, 399), min_size=1, max_size=60), st.booleans(), st.booleans(), st.sampled_from([0, 700, GAP_BYTES])
)
def test_what_is_wanted_comes_and_nothing_else(wanted: set[int], in_memory: bool, is_slow: bool, gap_bytes: int) -> None:
    async def scenario() -> None:
        world, ledger = await opened(400, in_memory=in_memory)
        world.shared.step_s = 0.001 if is_slow else 0.0
        assert found_in(await ledger.pick(1, BitMap(wanted), MANY)) == expected(wanted)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", gap_bytes)
        run(scenario())


def test_what_lies_close_together_is_one_read_and_what_is_in_memory_none() -> None:
    async def scenario() -> None:
        world, ledger = await opened(400)
        before = world.shared.reads
        await ledger.pick(1, BitMap(range(0, 400, 7)), MANY)
        assert world.shared.reads == before + 1
        world, ledger = await opened(400, in_memory=True)
        before = world.shared.reads
        await ledger.pick(1, BitMap(range(0, 400, 7)), MANY)
        assert world.shared.reads == before

    run(scenario())


def test_a_pick_is_no_place_from_which_a_reader_goes_on() -> None:
    """Else a later read that begins where a pick ended would fetch megabytes."""

    async def scenario() -> None:
        world = World(small(**LARGE))
        ledger = await world.open()
        for _ in range(5):
            await append(ledger, *(bytes(1000) for _ in range(100)))
        ledger = await world.reopen()
        await ledger.pick(1, BitMap([3, 200]), MANY)
        assert (world.ledgers.cached_bytes, ledger.reads._places.slowest(EARLIEST)) == (0, None)

    run(scenario())


def test_reads_of_one_pick_are_under_way_at_once_but_only_so_many() -> None:
    async def scenario() -> None:
        _, ledger = await opened(400)
        under_way = at_once = 0
        fetch = ledger.reads._fetch

        async def counted(*arguments: Any) -> EntryRun:
            nonlocal under_way, at_once
            under_way += 1
            at_once = max(at_once, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            return await fetch(*arguments)

        ledger.reads._fetch = counted  # type: ignore[method-assign, assignment]
        wanted = BitMap(range(0, 400, 11))
        assert found_in(await ledger.pick(1, wanted, MANY)) == expected(wanted)
        assert at_once == picked_reads.FETCHES_MAX

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", 0)
        run(scenario())


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.integers(0, 99), min_size=1, max_size=30),
    st.sets(st.integers(0, 99), max_size=20),
    st.booleans(),
    st.sampled_from([0, GAP_BYTES]),
)
def test_what_is_lost_is_skipped_or_ends_the_run_before_it_and_nobody_else_suffers(
    wanted: set[int], lost: set[int], skips: bool, gap_bytes: int
) -> None:
    """Lost entries that nobody wants matter to nobody."""

    async def scenario() -> None:
        world, ledger = await opened(100, auto_skip_non_recoverable_data=skips)
        world.shared.ledgers[1].lost |= lost
        if not skips and min(wanted) in lost:
            with pytest.raises(ManagedLedgerError, match="cannot be read"):
                await ledger.pick(1, BitMap(wanted), MANY)
            return
        stop = 100 if skips else min(wanted & lost, default=100)
        found = found_in(await ledger.pick(1, BitMap(wanted), MANY))
        assert found == expected({number for number in wanted - lost if number < stop})
        assert ledger.reads.lost.count == (len(wanted & lost) if skips else 0)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", gap_bytes)
        run(scenario())


def test_the_first_ones_come_when_all_would_be_too_many_bytes() -> None:
    assert within(BitMap(range(0, 1000, 10)), 100, 450) == BitMap([0, 10, 20, 30])
    assert within(BitMap([5, 6]), 1000, 1) == BitMap([5])

    async def scenario() -> None:
        world = World(small(**LARGE))
        ledger = await world.open()
        for _ in range(10):
            await append(ledger, *(bytes(1000) for _ in range(10)))
        found = await ledger.pick(1, BitMap(range(0, 100, 5)), 4500)
        assert found is not None
        assert (found.first_entry_id, found.last_entry_id) == (0, 15)

    run(scenario())


@pytest.mark.parametrize("gap_bytes", [0, GAP_BYTES])
def test_large_entries_among_small_ones_do_not_all_come_at_once(gap_bytes: int) -> None:
    """The mean says that all would fit. What does not come now can be asked for again."""

    async def scenario() -> None:
        world = World(small(**LARGE))
        ledger = await world.open()
        for number in range(1000):
            await append(ledger, bytes(100_000) if number % 50 == 7 else b"x")
        wanted, times = BitMap(range(7, 1000, 50)), 0
        while wanted:
            found = found_in(await ledger.pick(1, wanted, 100_000))
            assert found.keys() == set(wanted[: len(found)])
            assert 1 <= len(found) <= picked_reads.FETCHED_OVER_PICKED + picked_reads.FETCHES_MAX
            wanted -= BitMap(found)
            times += 1
        assert times >= 2

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", gap_bytes)
        run(scenario())


def test_of_a_ledger_that_is_trimmed_nothing_comes() -> None:
    async def scenario() -> None:
        _, ledger = await opened(10)
        assert await ledger.pick(77, BitMap([1]), MANY) is None
        assert await ledger.pick(1, BitMap([10, 11]), MANY) is None

    run(scenario())
