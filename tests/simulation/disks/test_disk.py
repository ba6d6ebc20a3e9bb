"""SimDisk: what survives which end, in every order that the fault model allows."""

import asyncio
import errno
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ports.disk.disk import Disk, File
from simulation.disks.sectors import SECTOR_BYTES, SectorFile
from simulation.world.loop import SimulationFailure
from tests.simulation.worlds import World, run


async def make(world: World, path: str = "/d/f", data: bytes = b"") -> File:
    """A file in a synced directory, with synced data."""
    disk: Disk = world.disk
    await disk.make_directories("/d")
    file = await disk.open(path, create=True)
    await disk.sync_directory("/d")
    if data:
        await file.write(0, [data], sync=True)
    return file


async def survivor(world: World, path: str = "/d/f") -> bytes:
    file = await world.disk.open(path)
    return await file.read(0, file.size())


def test_reads_see_writes_and_holes_are_zeros() -> None:
    async def scenario(world: World) -> None:
        file = await make(world)
        await file.write(1000, [b"abc", bytearray(b"def"), memoryview(b"ghi")])
        assert file.size() == 1009
        assert await file.read(998, 100) == b"\0\0abcdefghi"
        assert await file.read(5000, 10) == b""
        await file.truncate(1002)
        assert await file.read(1000, 10) == b"ab"
        await file.allocate(4096)
        assert file.size() == 4096
        assert await file.read(1000, 4) == b"ab\0\0"

    run(scenario)


def test_data_on_a_lying_disk_survives_a_kill_and_not_every_power_cut() -> None:
    def after(seed: int) -> bytes:
        async def scenario(world: World) -> bytes:
            file = await make(world, data=b"true")
            world.disk.is_lying = True
            await file.write(0, [b"lies"], sync=True)
            world.disk.crash(power_cut=False)
            assert await survivor(world) == b"lies"
            world.disk.crash(power_cut=True)
            return await survivor(world)

        left: bytes = run(scenario, seed)
        return left

    assert {after(seed) for seed in range(20)} == {b"true", b"lies"}


@pytest.mark.parametrize("seed", range(20))
def test_synced_bytes_survive_a_power_cut_and_unsynced_ones_a_kill(seed: int) -> None:
    async def scenario(world: World) -> None:
        file = await make(world, data=b"synced" * 500)
        await file.write(3000, [b"unsynced"])
        world.disk.crash(power_cut=False)
        assert await survivor(world) == b"synced" * 500 + b"unsynced"
        world.disk.crash(power_cut=True)
        assert (await survivor(world))[:3000] == b"synced" * 500

    run(scenario, seed)


def test_a_power_cut_takes_any_subset_of_the_unsynced_sectors() -> None:
    outcomes = set()

    async def scenario(world: World) -> bytes:
        file = await make(world, data=b"o" * SECTOR_BYTES * 3)
        await file.write(0, [b"n" * SECTOR_BYTES * 3])
        world.disk.crash(power_cut=True)
        return (await survivor(world))[::SECTOR_BYTES]

    for seed in range(300):
        outcomes.add(run(scenario, seed))
    assert outcomes == {bytes(fate) for fate in itertools.product(b"on", repeat=3)}


@pytest.mark.parametrize("seed", range(20))
def test_a_file_whose_directory_was_not_synced_may_be_gone_and_a_synced_one_is_not(seed: int) -> None:
    async def scenario(world: World) -> bool:
        await make(world)
        file = await world.disk.open("/d/new", create=True)
        await file.write(0, [b"x"], sync=True)
        world.disk.crash(power_cut=True)
        assert await world.disk.exists("/d/f")
        return await world.disk.exists("/d/new")

    assert run(scenario, seed) in (True, False)


def test_both_fates_of_an_unsynced_name_occur() -> None:
    async def scenario(world: World) -> bool:
        await make(world)
        await world.disk.rename("/d/f", "/d/g")
        world.disk.crash(power_cut=True)
        names = await world.disk.list_directory("/d")
        assert names in (["f"], ["g"]), "a rename is atomic"
        return names == ["g"]

    assert {run(scenario, seed) for seed in range(20)} == {True, False}


def test_names() -> None:
    async def scenario(world: World) -> None:
        disk: Disk = world.disk
        with pytest.raises(FileNotFoundError):
            await disk.open("/nowhere/f", create=True)
        with pytest.raises(FileNotFoundError):
            await disk.list_directory("/d")
        await disk.make_directories("/d/e")
        with pytest.raises(FileNotFoundError):
            await disk.open("/d/f")
        for name in ("b", "a"):
            await disk.open(f"/d/{name}", create=True)
        assert await disk.list_directory("/d") == ["a", "b", "e"]
        await disk.rename("/d/a", "/d/b")
        assert await disk.list_directory("/d/") == ["b", "e"]
        await disk.remove("/d/b")
        assert not await disk.exists("/d/b")
        with pytest.raises(FileNotFoundError):
            await disk.remove("/d/b")

    run(scenario)


def torn_sizes() -> set[int]:
    sizes = set()

    async def scenario(world: World) -> int:
        file = await make(world)
        task = asyncio.create_task(file.write(100, [b"x" * 2000]))
        await asyncio.sleep(0)
        world.disk.crash(power_cut=False)
        task.cancel()
        return len(await survivor(world))

    for seed in range(60):
        sizes.add(run(scenario, seed))
    return sizes


def test_a_write_in_progress_at_a_crash_is_torn_at_a_sector() -> None:
    sizes = torn_sizes()
    assert sizes <= {0, 512, 1024, 1536, 2048, 2100}
    assert len(sizes) >= 4


def test_calls_on_one_file_are_carried_out_in_order() -> None:
    async def scenario(world: World) -> None:
        file = await make(world)
        writes = [asyncio.create_task(file.write(0, [b"%4d" % number])) for number in range(50)]
        await asyncio.gather(*writes)
        assert await file.read(0, 4) == b"  49"

    run(scenario)


def test_a_stalled_disk_completes_nothing_until_it_is_over() -> None:
    async def scenario(world: World) -> float:
        file = await make(world)
        started = world.loop.time()
        world.disk.stall(5)
        await file.write(0, [b"x"], sync=True)
        return world.loop.time() - started

    assert 5 < run(scenario) < 5.2


def test_injected_errors_come_with_their_code_and_a_failed_sync_is_never_made_good() -> None:
    async def scenario(world: World) -> bytes:
        file = await make(world, data=b"old")
        world.disk.fail("sync", errno.EIO, "/f")
        with pytest.raises(OSError, match="Input/output") as caught:
            await file.write(0, [b"new"], sync=True)
        assert caught.value.errno == errno.EIO
        assert await file.read(0, 3) == b"new"
        await file.sync()
        world.disk.crash(power_cut=True)
        return await survivor(world)

    assert run(scenario) == b"old"


def test_a_full_disk_says_so_and_takes_no_more() -> None:
    async def scenario(world: World) -> None:
        file = await make(world)
        world.disk.capacity_bytes = 4096
        await file.write(0, [bytes(4096)])
        with pytest.raises(OSError, match="No space") as caught:
            await file.write(4096, [b"x"])
        assert caught.value.errno == errno.ENOSPC
        assert (await world.disk.usage("/d")).free_bytes == 0
        await file.write(0, [b"in place"])

    run(scenario)


def test_bit_rot_changes_one_bit() -> None:
    async def scenario(world: World) -> bytes:
        await make(world, data=b"AAAA")
        world.disk.contents("/d/f").flip_bit(2, 1)
        return await survivor(world)

    assert run(scenario) == b"AACA"


def test_a_buffer_that_changes_during_its_write_fails_the_run() -> None:
    async def scenario(world: World) -> None:
        file = await make(world)
        buffer = bytearray(b"before")
        write = asyncio.create_task(file.write(0, [buffer]))
        await asyncio.sleep(0)
        buffer[0] = 0
        await write

    with pytest.raises(SimulationFailure, match="changed while it was being written"):
        run(scenario)


def test_a_file_of_an_ended_process_is_closed() -> None:
    async def scenario(world: World) -> None:
        file = await make(world)
        world.disk.crash(power_cut=False)
        with pytest.raises(OSError, match="has ended"):
            await file.read(0, 1)

    run(scenario)


@given(st.lists(st.tuples(st.sampled_from("wtas"), st.integers(0, 3000), st.integers(0, 1500)), max_size=30))
def test_sector_file_reads_as_a_plain_array_would(steps: list[tuple[str, int, int]]) -> None:
    file, twin = SectorFile(), bytearray()
    for number, (kind, offset, size) in enumerate(steps):
        if kind == "w" and size:
            data = bytes([number + 1]) * size
            file.write(offset, data)
            twin.extend(bytes(max(0, offset + size - len(twin))))
            twin[offset : offset + size] = data
        elif kind == "t":
            file.resize(offset)
            del twin[offset:]
            twin.extend(bytes(offset - len(twin)))
        elif kind == "s":
            file.sync()
    assert file.size == len(twin)
    assert file.read(0, 10_000) == bytes(twin)
    assert file.read(700, 900) == bytes(twin[700:1600])


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 1500)), max_size=12), st.integers(0, 12), st.integers())
def test_every_sector_after_a_power_cut_is_one_it_had_at_or_after_the_last_sync(
    writes: list[tuple[int, int]], synced: int, seed: int
) -> None:
    file = SectorFile()
    allowed: dict[int, set[bytes]] = {}
    for number, (offset, size) in enumerate(writes):
        file.write(offset, bytes([number + 1]) * size)
        for index in range(20):
            sector = file.read(index * SECTOR_BYTES, SECTOR_BYTES).ljust(SECTOR_BYTES, b"\0")
            if number == synced:
                allowed[index] = set()
            allowed.setdefault(index, {bytes(SECTOR_BYTES)}).add(sector)
        if number == synced:
            file.sync()
    file.cut_power(random.Random(seed))
    for index in range(20):
        sector = file.read(index * SECTOR_BYTES, SECTOR_BYTES)
        choices = {choice[: len(sector)] for choice in allowed.get(index, {bytes(SECTOR_BYTES)})}
        assert sector in choices
