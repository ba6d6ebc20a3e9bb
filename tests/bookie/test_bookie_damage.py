"""Damage and missing files: told, never "no such entry"; what can be rebuilt is."""

import asyncio
import errno

import pytest

from bookie.errors import BookieStartError, StorageDamaged, WrongDirectory
from bookie.storage.block_v1 import BLOCK_HEADER_BYTES, LOG_ALIGNMENT
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError

LEDGERS = SMALL.ledger_directory


async def store(machine: Machine, ledger_id: int = 1) -> None:
    """Ten entries in an entry log; the journal is not needed any more."""
    bookie = await machine.start()
    for entry_id in range(10):
        await bookie.add(sealed(ledger_id, entry_id, 1, 1000), KEY)
    await bookie.stop()
    machine.crash(power_cut=True)


async def code_of_read(machine: Machine, ledger_id: int, entry_id: int) -> BookieCode:
    with pytest.raises(BookieError) as caught:
        await machine.bookie.read(ledger_id, entry_id, 1, 1 << 20)
    return caught.value.code


async def damage(machine: Machine, path: str, how: str, *, at: int, cut_to: int) -> None:
    """`removed`, a bit `flipped` in the byte `at`, or `cut`."""
    match how:
        case "removed":
            await machine.disk.remove(path)
        case "flipped":
            machine.disk.contents(path).flip_bit(at, 2)
        case _:
            machine.disk.contents(path).resize(cut_to)


async def check_all(machine: Machine) -> None:
    for entry_id in range(10):
        assert entries_of(await machine.bookie.read(1, entry_id, 1, 1)) == entries_of(sealed(1, entry_id, 1, 1000))


@pytest.mark.parametrize("how", ["removed", "flipped", "cut"])
def test_an_index_is_rebuilt_from_its_log(how: str) -> None:
    async def scenario(machine: Machine) -> None:
        await store(machine)
        path = f"{LEDGERS}/00000001.index"
        await damage(machine, path, how, at=30, cut_to=40)
        bookie = await machine.start()
        await check_all(machine)
        assert await code_of_read(machine, 1, 10) is BookieCode.ENOENTRY
        assert await bookie.last_entry_id(1) == 9

    on_machine(scenario)


def test_a_log_of_several_flushes_is_scanned_through_the_gaps_between_them() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for entry_id in range(10):
            await bookie.add(sealed(1, entry_id, 1, 1000), KEY)
            await bookie.flush()
        machine.crash(power_cut=True)
        await machine.disk.remove(f"{LEDGERS}/00000001.index")
        await machine.start()
        await check_all(machine)
        assert await code_of_read(machine, 1, 10) is BookieCode.ENOENTRY

    on_machine(scenario)


def test_a_failed_flush_leaves_no_hole_that_a_scan_would_take_for_damage() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for entry_id in range(10):
            await bookie.add(sealed(1, entry_id, 1, 1000), KEY)
            if entry_id == 5:
                await bookie.flush()
                machine.disk.fail("sync", errno.EIO, ".log")
        with pytest.raises(OSError, match="Input/output error"):
            await bookie.flush()
        await asyncio.sleep(5)
        await bookie.flush()
        machine.crash(power_cut=True)
        for path in machine.disk.paths():
            if path.endswith(".index"):
                await machine.disk.remove(path)
        await machine.start()
        await check_all(machine)
        assert await code_of_read(machine, 1, 10) is BookieCode.ENOENTRY

    on_machine(scenario)


def test_entries_of_a_missing_log_are_an_io_error() -> None:
    async def scenario(machine: Machine) -> None:
        await store(machine)
        await machine.disk.remove(f"{LEDGERS}/00000001.log")
        bookie = await machine.start()
        assert await code_of_read(machine, 1, 5) is BookieCode.EIO
        assert await code_of_read(machine, 1, 10) is BookieCode.ENOENTRY
        assert await bookie.last_entry_id(1) == 9
        await bookie.add(sealed(1, 10, 1, 1000), KEY)
        await bookie.flush()
        assert (await bookie.read(1, 10, 1, 1)).count == 1

    on_machine(scenario)


@pytest.mark.parametrize(("code", "answer"), [(errno.EMFILE, BookieCode.ETOOMANYREQUESTS), (errno.EIO, BookieCode.EIO)])
def test_a_host_without_files_or_memory_says_nothing_about_an_entry(code: int, answer: BookieCode) -> None:
    """A client that skips what is lost must not skip this."""

    async def scenario(machine: Machine) -> None:
        await store(machine)
        await machine.start()
        machine.disk.fail("read", code, "00000001.log")
        assert await code_of_read(machine, 1, 5) is answer

    on_machine(scenario)


@pytest.mark.parametrize("damage", ["removed", "flipped"])
def test_a_ledger_with_a_damaged_log_and_index_reports_no_entry_as_absent(damage: str) -> None:
    async def scenario(machine: Machine) -> None:
        await store(machine)
        await machine.disk.remove(f"{LEDGERS}/00000001.index")
        if damage == "removed":
            await machine.disk.remove(f"{LEDGERS}/00000001.log")
        else:
            machine.disk.contents(f"{LEDGERS}/00000001.log").flip_bit(4096 + 500, 1)
        bookie = await machine.start()
        assert await code_of_read(machine, 1, 5) is BookieCode.EIO
        assert await code_of_read(machine, 1, 10) is BookieCode.EIO
        with pytest.raises(BookieError) as caught:
            await bookie.last_entry_id(1)
        assert caught.value.code is BookieCode.EUNKNOWNLEDGERSTATE
        with pytest.raises(BookieError) as caught:
            await bookie.fence(1, KEY)
        assert caught.value.code is BookieCode.EUNKNOWNLEDGERSTATE
        await bookie.add(sealed(2, 0), KEY)
        assert await code_of_read(machine, 2, 1) is BookieCode.ENOENTRY
        assert await code_of_read(machine, 3, 0) is BookieCode.ENOLEDGER

    on_machine(scenario)


@pytest.mark.parametrize("place", [0, 3, 10, 20, 30, 40, 60])
def test_a_damaged_block_header_is_an_io_error(place: int) -> None:
    async def scenario(machine: Machine) -> None:
        await store(machine)
        machine.disk.contents(f"{LEDGERS}/00000001.log").flip_bit(4096 + place, 1)
        await machine.start()
        assert await code_of_read(machine, 1, 5) is BookieCode.EIO

    on_machine(scenario)


def test_an_entry_that_names_another_place_is_an_io_error() -> None:
    async def scenario(machine: Machine) -> None:
        await store(machine)
        machine.disk.contents(f"{LEDGERS}/00000001.log").flip_bit(
            LOG_ALIGNMENT + BLOCK_HEADER_BYTES + 11 * 4 + 5 * 1036 + 15, 1
        )
        await machine.start()
        assert await code_of_read(machine, 1, 5) is BookieCode.EIO
        assert (await machine.bookie.read(1, 4, 1, 1)).count == 1

    on_machine(scenario)


@pytest.mark.parametrize("name", ["checkpoint", "00000001.ledgers"])
@pytest.mark.parametrize("how", ["removed", "flipped", "cut"])
def test_without_the_files_that_name_the_rest_it_does_not_start(name: str, how: str) -> None:
    async def scenario(machine: Machine) -> None:
        await store(machine)
        path = f"{LEDGERS}/{name}"
        await damage(machine, path, how, at=40, cut_to=10)
        with pytest.raises(BookieStartError) as caught:
            await machine.start()
        assert LEDGERS in str(caught.value)
        assert isinstance(caught.value, StorageDamaged | WrongDirectory)

    on_machine(scenario)


def test_bit_rot_of_what_the_checkpoint_does_not_name_is_removed_at_start() -> None:
    async def scenario(machine: Machine) -> None:
        await store(machine)
        for name in ("00000009.log", "00000009.index", "0000000a.ledgers", "checkpoint.tmp"):
            await machine.disk.open(f"{LEDGERS}/{name}", create=True)
        await machine.start()
        await check_all(machine)
        assert [path for path in machine.disk.paths() if "09" in path or "0a" in path or "tmp" in path] == []

    on_machine(scenario)
