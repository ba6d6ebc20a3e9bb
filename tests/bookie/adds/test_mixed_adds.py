"""Adds that alternate among ledgers: what they need, what becomes of them when that changes, what a start makes of them."""

import asyncio

import pytest

from bookie.adds.memtable import Memtable
from bookie.adds.waiting_adds import WaitingAdds
from bookie.journal.format_v1 import LedgerFenced
from bookie.journal.group_commit import GroupCommit
from bookie.ledgers import Ledgers
from bookie.storage.index import Index
from tests.bookie.machines import Machine, on_machine
from tests.bookie.runs import KEY, entries_of, mixed, sealed
from tests.invariants import checked_after_each_step
from wire.bookie.codes import BookieCode, BookieError, NotAsOne
from wire.run import EntryRun

checked_machines = checked_after_each_step(Memtable, WaitingAdds, Ledgers, GroupCommit, Index)


async def with_ledgers(machine: Machine, *ledger_ids: int) -> None:
    """Each has one entry, 0."""
    bookie = await machine.start()
    await asyncio.gather(*[bookie.add(sealed(ledger_id, 0), KEY) for ledger_id in ledger_ids])


def runs(*ledger_ids: int, first: int = 1, size: int = 50) -> list[EntryRun]:
    return [sealed(ledger_id, first, 3, size, fill=7) for ledger_id in ledger_ids]


async def check(machine: Machine, expected: list[EntryRun]) -> None:
    for run in expected:
        found = await machine.bookie.read(run.ledger_id, run.first_entry_id, run.count, 1 << 20)
        assert entries_of(found) == entries_of(run)


@pytest.mark.parametrize("flushed", [False, True])
def test_acknowledged_mixed_adds_survive_a_power_cut(flushed: bool) -> None:
    async def scenario(machine: Machine) -> None:
        await with_ledgers(machine, 1, 2, 3)
        await machine.bookie.add_mix(mixed(runs(3, 1, 2)), KEY)
        await check(machine, runs(1, 2, 3))
        if flushed:
            await machine.bookie.flush()
        machine.crash(power_cut=True)
        await machine.start()
        await check(machine, runs(1, 2, 3))

    on_machine(scenario)


def test_only_ledgers_that_take_any_add_are_writable() -> None:
    async def scenario(machine: Machine) -> None:
        await with_ledgers(machine, 1, 2, 3)
        assert dict(machine.bookie.writable_ledgers) == {1: KEY, 2: KEY, 3: KEY}
        fencing = asyncio.ensure_future(machine.bookie.fence(2, KEY))
        await asyncio.sleep(0)
        assert 2 not in machine.bookie.writable_ledgers, "at once, not when the fence is on disk"
        await fencing
        await machine.bookie.delete([3])
        assert dict(machine.bookie.writable_ledgers) == {1: KEY}
        for power_cut in (False, True):
            machine.crash(power_cut=power_cut)
            bookie = await machine.start()
            assert dict(bookie.writable_ledgers) == {1: KEY}
        bookie.health.turn_read_only("storage", "it is broken")
        assert not bookie.writable_ledgers

    on_machine(scenario)


def test_a_mix_that_waited_is_not_stored_when_a_ledger_of_it_was_fenced_meanwhile() -> None:
    async def scenario(machine: Machine) -> None:
        await with_ledgers(machine, 1, 2, 3)
        bookie = machine.bookie
        large = [bookie.add(sealed(3, entry_id, 1, 50_000), KEY) for entry_id in range(1, 30)]
        assert bookie._admission.waiting
        of_both, of_one = bookie.add_mix(mixed(runs(1, 2)), KEY), bookie.add_mix(mixed(runs(1, 3, first=60)), KEY)
        assert not of_both.done()
        await bookie.fence(2, KEY)
        with pytest.raises(NotAsOne):
            await of_both
        await of_one
        await asyncio.gather(*large)
        for ledger_id in (1, 2):
            with pytest.raises(BookieError) as refused:
                await bookie.read(ledger_id, 1, 1, 100)
            assert refused.value.code is BookieCode.ENOENTRY
        await check(machine, runs(1, 3, first=60))

    on_machine(scenario)


def test_mixes_and_adds_are_done_in_the_order_of_the_calls() -> None:
    async def scenario(machine: Machine) -> None:
        await with_ledgers(machine, 1, 2)
        bookie, order = machine.bookie, list[int]()
        futures = []
        for number in range(40):
            each = runs(1, 2, first=1 + 3 * number, size=12_000)
            future = bookie.add_mix(mixed(each), KEY) if number % 3 else bookie.add(each[0], KEY)
            future.add_done_callback(lambda _, number=number: order.append(number))  # type: ignore[misc]
            futures.append(future)
        assert bookie._admission.waiting
        await asyncio.gather(*futures, return_exceptions=True)
        assert order == list(range(40))

    on_machine(scenario)


def test_a_mix_that_is_replayed_gives_nothing_back_of_a_ledger_that_was_deleted() -> None:
    """bookkeeper#4462: a ledger that was fenced and deleted stays fenced."""

    async def scenario(machine: Machine) -> None:
        await with_ledgers(machine, 1, 2)
        bookie = machine.bookie
        await bookie.fence(2, KEY)
        await bookie.delete([2])
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        bookie._journal.append(mixed(runs(1, 2)), 1000, future)  # as if it were after the deletion's checkpoint
        await future
        machine.crash(power_cut=True)
        await machine.start()
        await check(machine, runs(1))
        with pytest.raises(BookieError) as refused:
            await machine.bookie.read(2, 1, 1, 100)
        assert refused.value.code is BookieCode.ENOLEDGER

    on_machine(scenario)


def test_a_failed_journal_fails_the_whole_mix() -> None:
    async def scenario(machine: Machine) -> None:
        await with_ledgers(machine, 1, 2)
        machine.bookie._journal._fail(OSError(5, "broken"), [])
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        machine.bookie._journal.append(mixed(runs(1, 2)), 1000, future)
        with pytest.raises(BookieError) as refused:
            await future
        assert refused.value.code is BookieCode.EREADONLY
        machine.bookie._journal.append(LedgerFenced(1), 10, None)

    on_machine(scenario)


@pytest.mark.parametrize("flushed", [False, True])
def test_entries_that_came_alone_and_in_mixes_are_one_answer_and_one_block(flushed: bool) -> None:
    """Header sizes are known or not by the way an entry came: a reader that catches up does not pay for that."""

    async def scenario(machine: Machine) -> None:
        await with_ledgers(machine, 1, 2)
        bookie = machine.bookie
        written = [sealed(1, 0)]
        for first in range(1, 41, 4):
            written += [sealed(1, first, 3, 40), sealed(1, first + 3, 1, 40)]
            await bookie.add_mix(mixed([written[-2], sealed(2, first, 3)]), KEY)
            await bookie.add(written[-1], KEY)
        if flushed:
            await bookie.flush()
            assert len(bookie._storage.index.spans_between(1, 0, 41)) == 1
        found = await bookie.read(1, 0, 1000, 1 << 20)
        assert entries_of(found) == {entry_id: data for run in written for entry_id, data in entries_of(run).items()}

    on_machine(scenario)


def test_an_answer_goes_from_block_to_block_and_into_the_memtable_within_its_bounds() -> None:
    async def scenario(machine: Machine) -> None:
        await with_ledgers(machine, 1)
        bookie = machine.bookie
        for first in range(1, 21, 5):
            await bookie.add(sealed(1, first, 5, 40), KEY)
            if first < 15:
                await bookie.flush()
        assert (await bookie.read(1, 0, 1000, 1 << 20)).last_entry_id == 20
        assert (await bookie.read(1, 3, 12, 1 << 20)).last_entry_id == 14
        assert (await bookie.read(1, 1, 1000, 76 * 7)).last_entry_id == 7, "in the middle of the second block"
        assert (await bookie.read(1, 20, 1000, 1)).count == 1

    on_machine(scenario)
