"""Incidents of Apache's bookies, each under its number: a test shows that our bookie does not have it.

Incidents of the client and of repair are in tests/bookkeeper and in the simulation of several bookies.
"""

import asyncio
import dataclasses
import errno
from collections.abc import Awaitable
from typing import Any

import pytest

from bookie.adds.memtable import cost_bytes
from bookie.bookie import Bookie
from bookie.errors import JournalDamaged, WrongDirectory
from bookie.journal.files import file_name
from bookie.journal.format_v1 import JournalMark
from bookie.settings import MEGABYTE
from bookie.storage.files_v1 import decode_checkpoint
from bookie.storage.storage import CHECKPOINT
from bookie.upkeep.garbage import GarbageCollector
from metadata.memory import MemoryStore
from metadata.store import Versioned
from tests.bookie.machines import SMALL, Machine, SimClock, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError

JOURNAL, LEDGERS = SMALL.journal_directory, SMALL.ledger_directory


async def refused(awaitable: object) -> BookieCode:
    with pytest.raises(BookieError) as caught:
        await awaitable  # type: ignore[misc]
    return caught.value.code


async def outcome(awaitable: Awaitable[Any]) -> Any:
    """Result, or the code of the refusal."""
    try:
        return await awaitable
    except BookieError as error:
        return error.code


async def ten_entries(machine: Machine, *, flushed: bool) -> Bookie:
    bookie = await machine.start()
    for entry_id in range(10):
        await bookie.add(sealed(1, entry_id, 1, 1000), KEY)
    if flushed:
        await bookie.flush()
    return bookie


def test_bookkeeper_2614_what_was_taken_before_a_fence_is_found_after_it_and_nothing_is_taken_then() -> None:
    """An add that is acknowledged after the recovery has read would be one that the recovery never saw."""

    async def scenario(machine: Machine) -> None:
        bookie = await ten_entries(machine, flushed=False)
        before = bookie.add(sealed(1, 10), KEY)
        fence = machine.loop.create_task(bookie.ensure_fenced(1, KEY))
        await asyncio.sleep(0)
        assert await refused(bookie.add(sealed(1, 11), KEY)) is BookieCode.EFENCED
        assert await bookie.last_entry_id(1) == 10
        await fence
        assert before.done()
        assert await refused(bookie.read(1, 11, 1, 1)) is BookieCode.ENOENTRY
        await bookie.add(sealed(1, 11), KEY, recovery=True)

    on_machine(scenario)


@pytest.mark.parametrize("answer", ["entry", "no entry", "no ledger"])
def test_a_fence_is_on_disk_before_a_fencing_read_is_answered_whatever_the_answer(answer: str) -> None:
    """Apache's ReadEntryProcessor answers "no entry" without waiting: a crash right after loses a fence that was counted."""

    async def scenario(machine: Machine) -> None:
        bookie = await ten_entries(machine, flushed=False)
        ledger_id = 2 if answer == "no ledger" else 1
        await bookie.ensure_fenced(ledger_id, KEY)
        machine.crash(power_cut=True)
        bookie = await machine.start()
        entry_id = 0 if answer == "entry" else 10
        assert await refused(bookie.add(sealed(ledger_id, entry_id), KEY)) is BookieCode.EFENCED

    on_machine(scenario)


@pytest.mark.parametrize("emptied", [(JOURNAL,), (LEDGERS,)])
def test_bookkeeper_2612_and_544_and_4812_an_emptied_bookie_does_not_start_under_its_old_name(emptied: tuple[str, ...]) -> None:
    """With both directories empty the cluster's cookie says so: tests/bookie/server/test_registration.py."""

    async def scenario(machine: Machine) -> None:
        await ten_entries(machine, flushed=True)
        machine.crash(power_cut=True)
        for path in machine.disk.paths():
            if path.startswith(emptied):
                await machine.disk.remove(path)
        with pytest.raises(WrongDirectory):
            await machine.start()

    on_machine(scenario)


@pytest.mark.parametrize("part", [".log", ".index"])
@pytest.mark.parametrize("place", range(0, 12_000, 397))
def test_bookkeeper_2908_damage_is_never_no_entry(part: str, place: int) -> None:
    """A recovery takes "no entry" for the end of the ledger and cuts off what was acknowledged."""

    async def scenario(machine: Machine) -> None:
        await ten_entries(machine, flushed=True)
        machine.crash(power_cut=True)
        (path,) = [path for path in machine.disk.paths() if path.endswith(part)]
        machine.disk.contents(path).flip_bit(place % machine.disk.contents(path).size, place % 8)
        bookie = await machine.start()
        for entry_id in range(10):
            run = await outcome(bookie.read(1, entry_id, 1, 1))  # its payload is for the reader's digest to judge
            assert run is BookieCode.EIO or list(entries_of(run)) == [entry_id]
        assert await outcome(bookie.last_entry_id(1)) in (9, BookieCode.EUNKNOWNLEDGERSTATE)

    on_machine(scenario)


def test_bookkeeper_4462_a_writer_does_not_write_on_after_its_ledger_was_fenced_and_deleted() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await ten_entries(machine, flushed=False)
        await bookie.fence(1, KEY)
        await bookie.delete([1])
        for _ in range(2):
            assert await refused(bookie.add(sealed(1, 10), KEY)) is BookieCode.EFENCED
            assert await refused(bookie.read(1, 0, 1, 1)) is BookieCode.ENOLEDGER
            machine.crash(power_cut=True)
            bookie = await machine.start()

    on_machine(scenario)


class MarkWatch:
    """Looks at the checkpoint before every single call of the disk; `wrong` is what must not be."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.acknowledged: list[tuple[int, int, int]] = []
        """Journal frame, ledger, entry."""
        self.marks = [JournalMark()]
        self.wrong: list[str] = []
        machine.disk.on_step = self._look

    def _look(self, step: int) -> None:
        disk, storage = self._machine.disk, self._machine.bookie._storage
        path = f"{LEDGERS}/{CHECKPOINT}"
        if path not in disk.paths():
            return
        content = disk.contents(path)
        mark = decode_checkpoint(bytes(content.read(0, content.size))).mark
        if mark < self.marks[-1]:
            self.wrong.append(f"{mark} after {self.marks[-1]}")
        self.marks.append(mark)
        if mark.sequence and f"{JOURNAL}/{file_name(mark.file_id)}" not in disk.paths():
            self.wrong.append(f"the file of {mark} is gone")
        if storage.checkpoint.mark == mark:
            covered = [(ledger, entry) for sequence, ledger, entry in self.acknowledged if sequence <= mark.sequence]
            self.wrong += [f"{place} is not stored at {mark}" for place in covered if storage.index.find(*place) is None]


def test_bookkeeper_3329_4105_4740_4844_the_mark_never_passes_what_is_stored_never_goes_back_and_keeps_its_file() -> None:
    """A mark that goes back names a journal that is gone (1255, 2087)."""

    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        watch = MarkWatch(machine)
        for number in range(60):
            ledger_id, entry_id = 1 + number % 2, number // 2
            if number % 20 == 15:
                machine.disk.fail("sync", errno.EIO, "checkpoint")
            if await outcome(bookie.add(sealed(ledger_id, entry_id, 1, 60_000), KEY)) is BookieCode.EREADONLY:
                await asyncio.sleep(30)
                await bookie.add(sealed(ledger_id, entry_id, 1, 60_000), KEY)
            watch.acknowledged.append((bookie._journal.durable.sequence, ledger_id, entry_id))
        machine.disk.heal()
        await bookie.flush()
        assert watch.wrong == []
        assert len(set(watch.marks)) > 3

    on_machine(scenario)


@pytest.mark.parametrize("kept_sectors", range(12))
def test_bookkeeper_2220_and_3956_a_torn_end_of_the_journal_is_its_end(kept_sectors: int) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await ten_entries(machine, flushed=False)
        end = bookie._journal.durable
        await bookie.add(sealed(1, 10, 1, 3000), KEY)
        machine.crash(power_cut=True)
        journal = machine.disk.contents(f"{JOURNAL}/{file_name(end.file_id)}")
        size = journal.size
        journal.resize(end.offset + 512 * kept_sectors)
        journal.resize(size)
        bookie = await machine.start()
        assert await bookie.last_entry_id(1) in (9, 10)
        for entry_id in range(10):
            assert entries_of(await bookie.read(1, entry_id, 1, 1)) == entries_of(sealed(1, entry_id, 1, 1000))

    on_machine(scenario)


@pytest.mark.parametrize("place", range(600, 4096, 500))
def test_bookkeeper_3949_and_2485_damage_in_the_middle_of_the_journal_is_told_and_not_skipped(place: int) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await ten_entries(machine, flushed=False)
        file_id = bookie._journal.durable.file_id
        machine.crash(power_cut=True)
        machine.disk.contents(f"{JOURNAL}/{file_name(file_id)}").flip_bit(4096 * 3 + place % 700, 1)
        with pytest.raises(JournalDamaged, match="damaged"):
            await machine.start()

    on_machine(scenario)


class ForgetfulStore(MemoryStore):
    """Store whose listings lack nodes that exist, or with an unreadable node."""

    readable = True

    async def children(self, path: str) -> list[str]:
        return [name for name in await super().children(path) if name != "L1"]

    async def get(self, path: str) -> Versioned | None:
        if not self.readable:
            raise TimeoutError("connection loss")
        return await super().get(path)


@pytest.mark.parametrize("readable", [True, False])
def test_bookkeeper_870_and_4668_a_listing_alone_deletes_nothing_and_what_cannot_be_read_proves_nothing(readable: bool) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await ten_entries(machine, flushed=True)
        store = ForgetfulStore(SimClock(machine.loop))
        for name in ("L1", "L2"):
            await store.put(f"/ledgers/{name}", b"")
        store.readable = readable
        collector = GarbageCollector(bookie, store, lambda ledger_id: f"/ledgers/L{ledger_id}", "/ledgers", 900)
        for _ in range(3):
            assert await collector.run_round() == []
        assert bookie.ledger_ids() == [1]

    on_machine(scenario)


def test_bookkeeper_3408_and_3497_and_2269_what_comes_faster_than_the_disk_is_bounded_by_default() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        machine.disk.stall(3600)
        runs = [sealed(1, entry_id, 1, 50_000) for entry_id in range(200)]
        futures = [bookie.add(run, KEY) for run in runs]
        await asyncio.sleep(1)
        held = sum(table.size_bytes for table in bookie._flusher.tables) + bookie._admission.waiting._bytes
        assert held <= 2 * SMALL.db_storage_write_cache_max_size_mb * MEGABYTE + 2 * cost_bytes(runs[0])
        machine.disk.heal()
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        refusals = [error for error in outcomes if isinstance(error, BookieError)]
        assert 0 < len(refusals) < len(runs)
        assert {error.code for error in refusals} == {BookieCode.ETOOMANYREQUESTS}

    on_machine(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_bookkeeper_2706_and_2936_without_journal_sync_an_add_is_still_acknowledged_after_its_fsync(seed: int) -> None:
    """Apache's bookie runs without, and then does not know after a crash what it had acknowledged."""

    async def scenario(machine: Machine) -> None:
        bookie = await ten_entries(machine, flushed=False)
        machine.crash(power_cut=True)
        bookie = await machine.start()
        assert bookie.entry_ranges(1) == [(0, 9)]

    on_machine(scenario, seed, dataclasses.replace(SMALL, journal_sync_data=False))
