"""Answers of a bookie: keys, fences, misses, full memtables, bounds of a read."""

import asyncio

import pytest

from bookie.bookie import Bookie
from bookie.settings import MEGABYTE
from bookkeeper.ports import BookieClient
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

OTHER_KEY = b"\x02" * 20


async def refused(awaitable: object) -> BookieCode:
    with pytest.raises(BookieError) as caught:
        await awaitable  # type: ignore[misc]
    return caught.value.code


def test_a_bookie_is_a_bookie_client() -> None:
    async def scenario(machine: Machine) -> None:
        client: BookieClient = await machine.start()
        await client.add(sealed(1, 0), KEY)

    on_machine(scenario)


def test_another_master_key_is_refused_by_adds_and_fences() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        assert await refused(bookie.add(sealed(1, 1), OTHER_KEY)) is BookieCode.EUA
        assert await refused(bookie.fence(1, OTHER_KEY)) is BookieCode.EUA
        for flush in (False, True):
            if flush:
                await machine.bookie.flush()
            machine.crash(power_cut=True)
            bookie = await machine.start()
            assert await refused(bookie.add(sealed(1, 1), OTHER_KEY)) is BookieCode.EUA
        await bookie.add(sealed(1, 1), KEY)

    on_machine(scenario)


def test_an_entry_never_added_is_enoentry_and_an_unknown_ledger_is_enoledger() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 5, 2), KEY)
        for flush in (False, True):
            if flush:
                await bookie.flush()
            assert await refused(bookie.read(1, 4, 1, 100)) is BookieCode.ENOENTRY
            assert await refused(bookie.read(1, 7, 1, 100)) is BookieCode.ENOENTRY
            assert await refused(bookie.read(2, 0, 1, 100)) is BookieCode.ENOLEDGER
            assert await refused(bookie.last_entry_id(2)) is BookieCode.ENOLEDGER
            assert await bookie.last_entry_id(1) == 6

    on_machine(scenario)


def test_a_fence_of_a_ledger_never_seen_makes_it_and_stays() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        assert await bookie.fence(9, KEY) == b""
        assert await bookie.last_entry_id(9) == -1
        for flush in (False, True):
            if flush:
                await machine.bookie.flush()
            machine.crash(power_cut=True)
            bookie = await machine.start()
            assert await refused(bookie.add(sealed(9, 0), KEY)) is BookieCode.EFENCED
            assert await refused(bookie.add(sealed(9, 0), OTHER_KEY, recovery=True)) is BookieCode.EUA
        await bookie.add(sealed(9, 0), KEY, recovery=True)

    on_machine(scenario)


def test_a_fence_answers_what_the_last_entry_knows_as_confirmed() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for first in range(0, 40, 4):
            await bookie.add(sealed(1, first, 4), KEY)
        assert int.from_bytes((await bookie.fence(1, KEY))[16:24]) == 35
        await bookie.flush()
        assert int.from_bytes((await bookie.fence(1, KEY))[16:24]) == 35

    on_machine(scenario)


def test_adds_before_a_fence_are_acknowledged_before_it_answers_and_adds_after_are_refused() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        before = [bookie.add(sealed(1, entry_id), KEY) for entry_id in range(3)]
        fence = asyncio.ensure_future(bookie.fence(1, KEY))
        await asyncio.sleep(0)
        after = bookie.add(sealed(1, 3), KEY)
        assert int.from_bytes((await fence)[16:24]) == 1
        assert all(future.done() for future in before)
        assert await refused(after) is BookieCode.EFENCED
        assert await bookie.last_entry_id(1) == 2

    on_machine(scenario)


def test_a_refused_add_does_not_overtake_those_before_it() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        order: list[int] = []
        futures = [bookie.add(sealed(1, entry_id), OTHER_KEY if entry_id == 1 else KEY) for entry_id in range(3)]
        for entry_id, future in enumerate(futures):
            future.add_done_callback(lambda done, entry_id=entry_id: order.append(entry_id))  # type: ignore[misc]
        await asyncio.wait(futures)
        assert order == [0, 1, 2]
        assert isinstance(futures[1].exception(), BookieError)

    on_machine(scenario)


async def fill(bookie: Bookie, count: int, size: int = 50_000) -> "list[tuple[EntryRun, asyncio.Future[None]]]":
    runs = [sealed(1, entry_id, 1, size) for entry_id in range(count)]
    return [(run, bookie.add(run, KEY)) for run in runs]


def test_adds_wait_when_both_memtables_are_full_and_are_readable_while_flushing() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        futures = await fill(bookie, 35)
        assert len(bookie._admission.waiting) > 5
        tables = sum(table.size_bytes for table in bookie._flusher.tables)
        assert tables <= SMALL.db_storage_write_cache_max_size_mb * MEGABYTE
        held = 0
        while len(bookie._flusher.tables) == 2:
            held = max(held, len(bookie._admission.waiting))
            assert entries_of(await bookie.read(1, 0, 1, 1)) == entries_of(futures[0][0])
            await asyncio.sleep(0.0001)
        assert held
        await asyncio.gather(*[future for _, future in futures])
        for run, _ in futures:
            assert entries_of(await bookie.read(1, run.first_entry_id, 1, 1)) == entries_of(run)

    on_machine(scenario)


def test_a_small_add_does_not_overtake_a_large_one_that_waits() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        order: list[int] = []
        sizes = [50_000] * 22 + [10] * 3
        futures = [bookie.add(sealed(1, entry_id, 1, size), KEY) for entry_id, size in enumerate(sizes)]
        assert len(bookie._admission.waiting) >= 4
        for entry_id, future in enumerate(futures):
            future.add_done_callback(lambda _, entry_id=entry_id: order.append(entry_id))  # type: ignore[misc]
        await asyncio.gather(*futures)
        assert order == list(range(len(sizes)))

    on_machine(scenario)


def test_waiting_adds_are_bounded_and_the_rest_are_refused_in_their_turn() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        futures = await fill(bookie, 100)
        done: list[int] = []
        for run, future in futures:
            future.add_done_callback(lambda _, entry_id=run.first_entry_id: done.append(entry_id))  # type: ignore[misc]
        results = await asyncio.gather(*[future for _, future in futures], return_exceptions=True)
        assert done == list(range(100))
        errors = [error for error in results if error is not None]
        assert errors
        assert len(errors) < 70
        assert all(isinstance(error, BookieError) and error.code is BookieCode.ETOOMANYREQUESTS for error in errors)
        await bookie.add(sealed(1, 100), KEY)

    on_machine(scenario)


def test_a_run_larger_than_a_memtable_is_taken_alone() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        large = sealed(1, 1, 1, 2 * MEGABYTE)
        await asyncio.gather(bookie.add(sealed(1, 0), KEY), bookie.add(large, KEY), bookie.add(sealed(1, 2), KEY))
        await bookie.flush()
        assert entries_of(await bookie.read(1, 1, 1, 1)) == entries_of(large)
        machine.crash(power_cut=True)
        assert await (await machine.start()).last_entry_id(1) == 2

    on_machine(scenario)


def test_memtables_are_flushed_by_time() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        await asyncio.sleep(SMALL.flush_interval / 1000 + 5)
        assert not bookie._flusher.active
        assert (await bookie.read(1, 0, 1, 1)).count == 1

    on_machine(scenario)


def test_small_runs_in_a_memtable_are_read_together_and_large_ones_without_a_copy() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for entry_id in range(20):
            await bookie.add(sealed(1, entry_id, 1, 100), KEY)
        assert (await bookie.read(1, 3, 10, 1 << 20)).count == 10
        assert (await bookie.read(1, 3, 100, 136 * 4)).count == 4
        assert (await bookie.read(1, 3, 100, 1)).count == 1
        assert (await bookie.read(1, 3, 100, 1 << 20)).count == 17
        large = sealed(2, 0, 100, 1000)
        await bookie.add(large, KEY)
        found = await bookie.read(2, 10, 80, 1 << 20)
        assert (found.first_entry_id, found.count) == (10, 80)
        assert found.buffer is large.buffer

    on_machine(scenario)


def test_an_entry_in_the_memtable_hides_the_same_entry_in_an_entry_log() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 10), KEY)
        await bookie.flush()
        again = sealed(1, 4, 2, fill=9)
        await bookie.add(again, KEY, recovery=True)
        for flush in (False, True):
            if flush:
                await bookie.flush()
            whole = await bookie.read(1, 1, 10, 1 << 20)
            assert entries_of(whole) == entries_of(sealed(1, 0, 10).entries(1, 9)) | entries_of(again)
            assert entries_of(await bookie.read(1, 4, 2, 1 << 20)) == entries_of(again)
            assert (await bookie.read(1, 6, 10, 1 << 20)).last_entry_id == 9

    on_machine(scenario)


def test_reads_of_an_entry_log_keep_the_bounds_asked_for() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 100, 1000), KEY)
        await bookie.flush()
        for first, count_max, bytes_max, expected in (
            (0, 10, 1 << 20, 10),
            (95, 10, 1 << 20, 5),
            (5, 100, 1036 * 3 + 5, 3),
            (5, 9, 1, 1),
        ):
            run = await bookie.read(1, first, count_max, bytes_max)
            assert (run.first_entry_id, run.count) == (first, expected)
            assert entries_of(run).items() <= entries_of(sealed(1, 0, 100, 1000)).items()

    on_machine(scenario)
