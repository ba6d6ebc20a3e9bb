"""Torn tail and damage in the middle are told apart, whatever the files held before."""

import asyncio
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from bookie.errors import JournalDamaged
from bookie.journal.files import file_name
from bookie.journal.format_v1 import FRAME_MAGIC, JournalMark
from bookie.storage.files_v1 import encode_checkpoint
from bookie.storage.storage import CHECKPOINT
from simulation.disks.sectors import SECTOR_BYTES
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError

BLOCK = SMALL.journal_alignment_size
COUNT = 5


def journal_path(file_id: int) -> str:
    return f"{SMALL.journal_directory}/{file_name(file_id)}"


async def write_frames(machine: Machine, count: int = COUNT, first: int = 0, size: int = 100) -> None:
    """One entry of ledger 1 per frame, in the current file; then the process is killed."""
    bookie = await machine.start()
    for entry_id in range(first, first + count):
        await bookie.add(sealed(1, entry_id, 1, size), KEY)
    machine.crash(power_cut=False)


async def read_all(machine: Machine) -> list[int]:
    bookie = await machine.start()
    found: list[int] = []
    try:
        while True:
            run = await bookie.read(1, len(found), 1000, 1 << 20)
            for entry_id, data in entries_of(run).items():
                assert data == entries_of(sealed(1, entry_id, 1, 100))[entry_id]
                found.append(entry_id)
    except BookieError as error:
        if error.code not in (BookieCode.ENOENTRY, BookieCode.ENOLEDGER):
            raise
    return found


@pytest.mark.parametrize("frame", range(COUNT))
@pytest.mark.parametrize("place", [0, 5, 9, 20, 43, 60, 200])
def test_a_damaged_frame_is_the_torn_end_only_when_it_is_the_last(frame: int, place: int) -> None:
    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        machine.disk.contents(journal_path(1)).flip_bit((1 + frame) * BLOCK + place, 3)
        if frame == COUNT - 1:
            assert await read_all(machine) == list(range(COUNT - 1))
            return
        with pytest.raises(JournalDamaged) as caught:
            await machine.start()
        assert journal_path(1) in str(caught.value)
        assert f"offset {(1 + frame) * BLOCK} " in str(caught.value)

    on_machine(scenario)


def test_a_damaged_file_header_costs_nothing() -> None:
    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        machine.disk.contents(journal_path(1)).flip_bit(9, 0)
        assert await read_all(machine) == list(range(COUNT))

    on_machine(scenario)


@pytest.mark.parametrize("kept", range(0, (COUNT + 1) * BLOCK, SECTOR_BYTES * 3))
def test_the_whole_frames_before_a_truncation_are_replayed(kept: int) -> None:
    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        machine.disk.contents(journal_path(1)).resize(kept)
        found = await read_all(machine)
        assert found == list(range(len(found)))
        assert kept // BLOCK - 1 <= len(found) <= max(0, kept // BLOCK)

    on_machine(scenario)


def test_garbage_after_the_last_frame_is_its_torn_end() -> None:
    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        contents = machine.disk.contents(journal_path(1))
        contents.write((COUNT + 1) * BLOCK, FRAME_MAGIC + b"\x01" * 3 * BLOCK)
        assert await read_all(machine) == list(range(COUNT))

    on_machine(scenario)


def test_the_end_of_a_file_is_checked_against_the_beginning_of_the_next() -> None:
    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        await write_frames(machine, first=COUNT)
        machine.disk.contents(journal_path(1)).flip_bit(COUNT * BLOCK + 50, 0)
        with pytest.raises(JournalDamaged) as caught:
            await machine.start()
        assert journal_path(2) in str(caught.value)

    on_machine(scenario)


def test_a_header_alone_tells_that_frames_before_it_are_missing() -> None:
    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        await write_frames(machine, count=1, first=COUNT)
        machine.disk.contents(journal_path(1)).flip_bit(COUNT * BLOCK + 50, 0)
        machine.disk.contents(journal_path(2)).flip_bit(BLOCK + 9, 0)
        with pytest.raises(JournalDamaged) as caught:
            await machine.start()
        assert journal_path(2) in str(caught.value)

    on_machine(scenario)


def test_a_missing_file_stops_the_start() -> None:
    async def scenario(machine: Machine) -> None:
        for first in (0, 5, 10):
            await write_frames(machine, first=first)
        await machine.disk.remove(journal_path(2))
        with pytest.raises(JournalDamaged):
            await machine.start()

    on_machine(scenario)


def test_a_missing_file_that_the_checkpoint_names_stops_the_start() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 1, 100), KEY)
        await bookie.stop()
        machine.crash(power_cut=False)
        await machine.disk.remove(journal_path(1))
        with pytest.raises(JournalDamaged, match="missing, which the checkpoint names"):
            await machine.start()

    on_machine(scenario)


@pytest.mark.parametrize("restarts", [0, 2])
def test_a_journal_that_was_never_flushed_and_is_deleted_stops_the_start(restarts: int) -> None:
    """Acknowledged entries since the first start were in those files alone."""

    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        for number in range(1, restarts + 1):
            await write_frames(machine, first=number * COUNT)
        for path in machine.disk.paths():
            if path.endswith(".journal"):
                await machine.disk.remove(path)
        with pytest.raises(JournalDamaged, match="missing, which the checkpoint names") as caught:
            await machine.start()
        assert SMALL.journal_directory in str(caught.value)
        assert "Put it back" in str(caught.value)

    on_machine(scenario)


def test_the_journal_of_a_bookie_that_an_older_version_began_is_named_by_its_first_file() -> None:
    """The checkpoint of such a bookie named no file until the first flush."""

    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        old = encode_checkpoint(replace(machine.bookie._storage.checkpoint, mark=JournalMark()))
        machine.disk.contents(f"{SMALL.ledger_directory}/{CHECKPOINT}").write(0, old)
        assert await read_all(machine) == list(range(COUNT))
        machine.crash(power_cut=True)
        assert await read_all(machine) == list(range(COUNT))
        machine.crash(power_cut=True)
        await machine.disk.remove(journal_path(1))
        with pytest.raises(JournalDamaged, match="missing, which the checkpoint names"):
            await machine.start()

    on_machine(scenario)


def test_a_new_bookie_whose_first_start_found_no_room_for_a_journal_names_the_one_it_gets_later() -> None:
    async def scenario(machine: Machine) -> None:
        machine.disk.fail("write", 28, ".journal", times=2)
        bookie = await machine.start()
        assert bookie.read_only_reason
        await asyncio.sleep(SMALL.disk_check_interval / 1000 + 2)
        assert bookie.read_only_reason == ""
        await bookie.add(sealed(1, 0, 1, 100), KEY)
        machine.crash(power_cut=True)
        for path in machine.disk.paths():
            if path.endswith(".journal"):
                await machine.disk.remove(path)
        with pytest.raises(JournalDamaged, match="missing, which the checkpoint names"):
            await machine.start()

    on_machine(scenario)


def test_frames_before_the_mark_are_not_replayed_and_damage_there_does_not_matter() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for entry_id in range(3):
            await bookie.add(sealed(1, entry_id, 1, 100), KEY)
        await bookie.flush()
        assert bookie._storage.checkpoint.mark == JournalMark(3, 1, 4 * BLOCK)
        for entry_id in range(3, 5):
            await bookie.add(sealed(1, entry_id, 1, 100), KEY)
        machine.crash(power_cut=True)
        for frame in range(3):
            machine.disk.contents(journal_path(1)).flip_bit((1 + frame) * BLOCK + 50, 0)
        assert await read_all(machine) == list(range(5))

    on_machine(scenario)


def test_a_payload_that_looks_like_a_later_frame_is_not_taken_for_one() -> None:
    """A client that knows the format, but not the secret, cannot make a torn end look like damage."""

    async def scenario(machine: Machine) -> None:
        await write_frames(machine)
        contents = machine.disk.contents(journal_path(1))
        genuine = contents.read(COUNT * BLOCK, BLOCK)
        contents.write((COUNT + 1) * BLOCK, b"torn")
        contents.write((COUNT + 3) * BLOCK, genuine)  # an old frame of this very file, as a recycled one might hold it
        assert await read_all(machine) == list(range(COUNT))

    on_machine(scenario)


def test_recycled_files_bring_nothing_back() -> None:
    """Files go round many times, every time with fewer frames than before; replay sees the last round alone."""

    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for entry_id in range(60):
            await bookie.add(sealed(2, entry_id, 1, 100_000), KEY)
            await asyncio.sleep(0.01)
        await bookie.flush()
        names = [PurePosixPath(path).name for path in machine.disk.paths() if path.endswith(".journal")]
        assert len(names) <= 3
        assert file_name(1) not in names
        await bookie.add(sealed(1, 0, 1, 100), KEY)
        machine.crash(power_cut=True)
        assert await read_all(machine) == [0]
        assert await machine.bookie.last_entry_id(2) == 59

    on_machine(scenario)


def test_after_a_failed_fsync_the_next_file_overrules_what_it_may_have_left() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 1, 100), KEY)
        machine.disk.fail("sync", 28, ".journal")
        with pytest.raises(BookieError) as caught:
            await bookie.add(sealed(1, 1, 1, 100, fill=7), KEY)
        assert caught.value.code is BookieCode.EREADONLY
        await asyncio.sleep(SMALL.disk_check_interval / 1000 + 1)
        assert bookie.read_only_reason == ""
        await bookie.add(sealed(1, 1, 1, 100), KEY)
        await bookie.add(sealed(1, 2, 1, 100), KEY)
        for power_cut in (False, True, True):
            machine.crash(power_cut=power_cut)
            assert await read_all(machine) == [0, 1, 2]

    on_machine(scenario)


@pytest.mark.parametrize("seed", range(20))
def test_a_frame_whose_fsync_failed_is_made_durable_when_a_start_replays_it(seed: int) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0, 1, 100), KEY)
        machine.disk.fail("sync", 5, ".journal")
        with pytest.raises(BookieError):
            await bookie.add(sealed(1, 1, 1, 100), KEY)
        machine.crash(power_cut=False)
        bookie = await machine.start()
        last = await bookie.last_entry_id(1)
        await bookie.add(sealed(1, last + 1, 1, 100), KEY)
        machine.crash(power_cut=True)
        assert await read_all(machine) == list(range(last + 2))

    on_machine(scenario, seed)
