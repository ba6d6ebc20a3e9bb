"""Scattered entries of a ledger in one run: those that are there, all of them before its end, and none but those asked for."""

import asyncio
from array import array
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from managed_ledger.contract import EARLIEST, ManagedLedgerError
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from managed_ledger.read import picked_reads
from managed_ledger.read.picked_reads import GAP_BYTES, groups, within
from wire.picked_runs import Picked, Picks
from wire.position import Position
from wire.run import EntryRun

from ..ledger_world import MANY, World, append, append_each, run, small

LARGE = {"managed_ledger_max_entries_per_ledger": 10_000}


def found_in(picked: Picked) -> dict[int, bytes]:
    """Entries found in ledger 1, or in the only one."""
    return {entry_id: payload for (_, entry_id), payload in by_place(picked).items()}


def by_place(picked: Picked) -> dict[tuple[int, int], bytes]:
    """Entries by place, in the order in which they came."""
    found: dict[tuple[int, int], bytes] = {}
    for each in picked.runs:
        for entry_id in range(each.first_entry_id, each.last_entry_id + 1):
            if payload := bytes(each.payload(entry_id)):
                found[each.ledger_id, entry_id] = payload
    return found


def gone_in(picked: Picked) -> set[int]:
    return {entry_id for _, entry_ids in picked.gone for entry_id in entry_ids}


def of_one(entry_ids: Iterable[int]) -> Picks:
    return [(1, BitMap(entry_ids))]


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
def test_a_pick_returns_the_wanted_entries_and_nothing_else(
    wanted: set[int], in_memory: bool, is_slow: bool, gap_bytes: int
) -> None:
    async def scenario() -> None:
        world, ledger = await opened(400, in_memory=in_memory)
        world.shared.step_s = 0.001 if is_slow else 0.0
        assert found_in(await ledger.pick(of_one(wanted), MANY)) == expected(wanted)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", gap_bytes)
        run(scenario())


def test_picks_close_together_take_one_read_and_cached_picks_none() -> None:
    async def scenario() -> None:
        world, ledger = await opened(400)
        before = world.shared.reads
        await ledger.pick(of_one(range(0, 400, 7)), MANY)
        assert world.shared.reads == before + 1
        world, ledger = await opened(400, in_memory=True)
        before = world.shared.reads
        await ledger.pick(of_one(range(0, 400, 7)), MANY)
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
        await ledger.pick(of_one([3, 200]), MANY)
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
        assert found_in(await ledger.pick(of_one(wanted), MANY)) == expected(wanted)
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
def test_a_lost_pick_is_skipped_or_ends_the_run_and_other_entries_do_not_suffer(
    wanted: set[int], lost: set[int], skips: bool, gap_bytes: int
) -> None:
    """Lost entries that the caller does not pick change nothing."""

    async def scenario() -> None:
        world, ledger = await opened(100, auto_skip_non_recoverable_data=skips)
        world.shared.ledgers[1].lost |= lost
        if not skips and min(wanted) in lost:
            with pytest.raises(ManagedLedgerError, match="cannot be read"):
                await ledger.pick(of_one(wanted), MANY)
            return
        stop = 100 if skips else min(wanted & lost, default=100)
        picked = await ledger.pick(of_one(wanted), MANY)
        assert found_in(picked) == expected({number for number in wanted - lost if number < stop})
        assert gone_in(picked) == (wanted & lost if skips else set())
        assert ledger.reads.lost.count == (len(wanted & lost) if skips else 0)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", gap_bytes)
        run(scenario())


def test_the_first_ones_come_when_all_would_be_too_many_bytes() -> None:
    assert within(of_one(range(0, 1000, 10)), [100], 450) == of_one([0, 10, 20, 30])
    assert within(of_one([5, 6]), [1000], 1) == of_one([5])
    two = [(1, BitMap([1, 2])), (4, BitMap([7, 8, 9]))]
    assert within(two, [100, 10], 215) == [(1, BitMap([1, 2])), (4, BitMap([7]))]
    assert within(two, [100, 10], 209) == of_one([1, 2])
    assert within(two, [0, 0], 5) == two

    async def scenario() -> None:
        world = World(small(**LARGE))
        ledger = await world.open()
        for _ in range(10):
            await append(ledger, *(bytes(1000) for _ in range(10)))
        found = await ledger.pick(of_one(range(0, 100, 5)), 4500)
        assert list(found_in(found)) == [0, 5, 10, 15]
        assert not found.gone

    run(scenario())


@pytest.mark.parametrize("gap_bytes", [0, GAP_BYTES])
def test_large_entries_among_small_ones_do_not_all_come_at_once(gap_bytes: int) -> None:
    """All entries would fit if they had the mean size. Entries that do not come now can be picked again."""

    async def scenario() -> None:
        world = World(small(**LARGE))
        ledger = await world.open()
        for number in range(1000):
            await append(ledger, bytes(100_000) if number % 50 == 7 else b"x")
        wanted, times = BitMap(range(7, 1000, 50)), 0
        while wanted:
            found = found_in(await ledger.pick(of_one(wanted), 100_000))
            assert found.keys() == set(wanted[: len(found)])
            assert 1 <= len(found) <= picked_reads.FETCHED_OVER_PICKED + picked_reads.FETCHES_MAX
            wanted -= BitMap(found)
            times += 1
        assert times >= 2

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", gap_bytes)
        run(scenario())


def test_picks_of_a_trimmed_ledger_are_gone() -> None:
    async def scenario() -> None:
        _, ledger = await opened(10)
        assert await ledger.pick([(77, BitMap([1]))], MANY) == Picked([], [(77, BitMap([1]))])
        assert await ledger.pick(of_one([10, 11]), MANY) == Picked([], of_one([10, 11]))
        picked = await ledger.pick([(1, BitMap([3, 10])), (77, BitMap([1]))], MANY)
        assert (found_in(picked), picked.gone) == (expected({3}), [(1, BitMap([10])), (77, BitMap([1]))])

    run(scenario())


LEDGER_ENTRIES = 40


@settings(max_examples=80, deadline=None)
@given(
    st.sets(st.integers(0, 199), min_size=1, max_size=40),
    st.sets(st.integers(0, LEDGER_ENTRIES), max_size=40),
    st.sets(st.integers(0, 199), max_size=10),
    st.booleans(),
    st.sampled_from([0, GAP_BYTES]),
)
def test_picks_of_many_ledgers_come_in_order_up_to_the_first_that_cannot_be_read_however_they_are_had(
    wanted: set[int], at_once: set[int], lost: set[int], skips: bool, gap_bytes: int
) -> None:
    """Entries of one fetch, entries fetched alone, and those of a ledger that is written make no difference."""

    async def scenario() -> None:
        world = World(
            small(managed_ledger_max_entries_per_ledger=LEDGER_ENTRIES, auto_skip_non_recoverable_data=skips),
        )
        ledger = await world.open()
        await append_each(ledger, 200)
        if len(wanted) % 2:
            ledger = await world.reopen()
        ledgers = [each.ledger_id for each in ledger.ledgers() if each.entries]
        place = {number: (ledgers[number // LEDGER_ENTRIES], number % LEDGER_ENTRIES) for number in range(200)}
        world.shared.at_once = at_once
        for number in lost:
            world.shared.ledgers[place[number][0]].lost.add(place[number][1])
        picks = [(each, BitMap(place[n][1] for n in wanted if place[n][0] == each)) for each in ledgers]
        picks = [each for each in picks if each[1]]
        stop = 200 if skips else min(wanted & lost, default=200)
        if stop == min(wanted):
            with pytest.raises(ManagedLedgerError, match="cannot be read"):
                await ledger.pick(picks, MANY)
            return
        picked = await ledger.pick(picks, MANY)
        came = [number for number in sorted(wanted - lost) if number < stop]
        assert by_place(picked) == {place[number]: b"%d" % number for number in came}
        assert list(by_place(picked)) == [place[number] for number in came]
        gone = {(each, entry_id) for each, ids in picked.gone for entry_id in ids}
        assert gone == {place[number] for number in wanted & lost if skips}

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", gap_bytes)
        run(scenario())


def test_lone_picks_in_many_ledgers_take_one_request() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=LEDGER_ENTRIES))
        await append_each(await world.open(), 200)
        ledger = await world.reopen()
        world.shared.at_once = range(LEDGER_ENTRIES)
        before = world.shared.reads, world.shared.picks
        picks = [(each.ledger_id, BitMap([1, 30])) for each in ledger.ledgers() if each.entries]
        assert len(by_place(await ledger.pick(picks, MANY))) == 10
        assert (world.shared.reads, world.shared.picks) == (before[0], before[1] + 1)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(picked_reads, "GAP_BYTES", 0)
        run(scenario())


def test_with_what_fills_the_bytes_exactly_picking_ends() -> None:
    asked: list[Position] = []

    async def fetch(position: Position, entries_max: int) -> EntryRun:
        asked.append(position)
        return EntryRun(1, position.entry_id, bytes(10 * entries_max), array("I", range(0, 10 * entries_max + 1, 10)))

    pick = picked_reads._Pick(
        of_one([0, 1, 1000, 1001]), [picked_reads.Group(1, 0, 1), picked_reads.Group(1, 1000, 1001)], fetch, 20
    )
    run(pick.work())
    assert asked == [Position(1, 0)]


def test_a_pick_of_cached_entries_needs_no_task_and_any_other_entry_refuses_it() -> None:
    async def scenario() -> None:
        _, ledger = await opened(400, in_memory=True)
        wanted = BitMap(range(3, 400, 9))
        found = ledger.pick_cached([(1, wanted)], MANY)
        assert found is not None
        assert found_in(found) == expected(wanted)
        assert ledger.pick_cached([(1, wanted)], 200) is None, "more than the bytes that were asked for"
        assert ledger.pick_cached([(1, wanted), (77, BitMap([1]))], MANY) is None, "`pick` says which ledgers are gone"
        _, ledger = await opened(400)
        assert ledger.pick_cached([(1, wanted)], MANY) is None

    run(scenario())


def test_entries_that_a_reader_asks_for_again_stay_cached_until_it_does_not() -> None:
    async def scenario() -> None:
        _, ledger = await opened(40, in_memory=True)
        reader = object()
        ledger.keep_from(reader, Position(1, 10))
        for position in range(0, 40, 10):
            await ledger.read(Position(1, position), 10, MANY)
        assert ledger.pick_cached(of_one([2]), MANY) is None, "every reader has passed it"
        assert ledger.pick_cached(of_one([10, 30]), MANY) is not None
        ledger.keep_from(reader, None)
        await append(ledger, b"40")
        await ledger.read(Position(1, 40), 10, MANY)
        assert ledger.pick_cached(of_one([10, 30]), MANY) is None

    run(scenario())
