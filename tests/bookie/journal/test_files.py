"""The files of a journal: which is written, which is prepared, how much of each is reserved, and what is counted."""

import asyncio
import dataclasses
import errno
from typing import Any

import pytest

from bookie.journal.files import JournalFiles, journal_ids
from bookie.journal.stats import JournalStats
from tests.bookie.journal.test_group_commit import machine as group_commit
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, entries_of, mixed, sealed

MEGABYTE = 1 << 20
LARGER = dataclasses.replace(SMALL, journal_max_size_mb=8)


def files_of(machine: Machine) -> JournalFiles:
    return JournalFiles(machine.disk, "/journal", b"secret", SMALL)


def test_a_frame_that_needs_more_room_goes_on_in_the_same_file_which_grows_by_steps() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        file_id = bookie.journal.durable.file_id
        for entry_id in range(1, 7):
            await bookie.add(sealed(1, entry_id, 1, 400_000), KEY)
        assert bookie.journal.durable.file_id == file_id
        (path,) = [path for path in machine.disk.paths() if path.endswith(f"{file_id:016x}.journal")]
        assert machine.disk.contents(path).size == 3 * MEGABYTE

    on_machine(scenario, settings=LARGER)


def test_one_file_is_prepared_however_often_it_is_asked_for() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.disk.make_directories("/journal")
        files = files_of(machine)
        for _ in range(3):
            files.prepare_next()
            await asyncio.sleep(1)
        assert await journal_ids(machine.disk, "/journal") == [1]
        file_id, file = await files.take_next()
        assert (file_id, files.oldest_id) == (1, 1)
        await file.close()
        await files.close()

    on_machine(scenario)


def test_without_files_there_is_no_oldest_one() -> None:
    async def scenario(machine: Machine) -> None:
        assert files_of(machine).oldest_id == 0

    on_machine(scenario)


def test_a_release_keeps_as_many_old_files_as_is_set() -> None:
    async def scenario(machine: Machine) -> None:
        await machine.disk.make_directories("/journal")
        files = files_of(machine)
        for _ in range(SMALL.journal_max_backups + 3):
            _, file = await files.take_next()
            await file.close()
        await files.release(SMALL.journal_max_backups + 3)
        assert len(await journal_ids(machine.disk, "/journal")) == SMALL.journal_max_backups + 1

    on_machine(scenario)


class Refusing:
    """A file of which no more can be reserved, for this reason."""

    def __init__(self, reason: int) -> None:
        self.reason = reason

    def size(self) -> int:
        return 5000

    async def allocate(self, size_bytes: int) -> None:
        raise OSError(self.reason, "no")


@pytest.mark.parametrize(("reason", "is_enough"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_a_full_disk_leaves_a_journal_file_as_large_as_it_is_and_a_broken_one_is_an_error(reason: int, is_enough: bool) -> None:
    async def scenario(machine: Machine) -> None:
        await machine.disk.make_directories("/journal")
        file: Any = Refusing(reason)
        if is_enough:
            assert await files_of(machine).reserve(file, 9000, 4000) == 5000
        else:
            with pytest.raises(OSError, match="no"):
                await files_of(machine).reserve(file, 9000, 4000)

    on_machine(scenario)


def test_enough_bytes_for_a_group_end_the_wait() -> None:
    commit = group_commit(group_bytes=100)
    commit.on_queued("a", 10, 0.0)
    commit.next(0.0)
    commit.on_queued("b", 10, 0.5)
    commit.on_written()
    assert commit.on_queued("c", 90, 0.6)
    decision: Any = commit.next(0.6)
    assert decision.items == ["b", "c"]


def test_a_large_entry_behind_a_call_that_writes_nothing_is_written() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        async with asyncio.timeout(10):
            await asyncio.gather(bookie.journal.written(), bookie.add(sealed(1, 1, 1, 900_000), KEY))
        assert await bookie.last_entry_id(1) == 1

    on_machine(scenario)


def test_each_add_is_counted_as_long_as_it_waited_and_as_its_write_took() -> None:
    stats = JournalStats()
    stats.wrote([sealed(1, 0, 3), mixed([sealed(2, 0, 2), sealed(3, 0, 2)])], 1.0, 1.5, 3.5, has_failed=False)
    queued, synced, added = stats.queued.succeeded, stats.synced.succeeded, stats.added.succeeded
    assert (queued.count, synced.count, added.count) == (7, 1, 7)
    assert (queued.seconds, synced.seconds, added.seconds) == (3.5, 2.0, 17.5)


def test_a_bookie_counts_the_adds_that_its_journal_wrote() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        before = bookie.journal.stats.added.succeeded.count
        for entry_id in range(3):
            await bookie.add(sealed(1, entry_id), KEY)
        assert bookie.journal.stats.added.succeeded.count >= before + 3

    on_machine(scenario)


def test_after_a_start_entries_go_into_logs_that_nothing_was_in_before() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for fill in range(4):
            for entry_id in range(4):
                await bookie.add(sealed(1, 4 * fill + entry_id, 1, 200_000), KEY)
            await bookie.flush()
            machine.crash(power_cut=True)
            bookie = await machine.start()
        for entry_id in range(16):
            found = entries_of(await bookie.read(1, entry_id, 1, 1))
            assert found == entries_of(sealed(1, entry_id, 1, 200_000))

    on_machine(scenario)


def test_a_file_of_ledger_states_goes_when_another_took_its_place() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for ledger_id in range(1, 400):
            await bookie.add(sealed(ledger_id, 0, 1, 10), KEY)
            if ledger_id % 4 == 0:
                await bookie.flush()
        assert len([path for path in machine.disk.paths() if path.endswith(".ledgers")]) == 1

    on_machine(scenario)
