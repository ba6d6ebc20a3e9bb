"""Small files that are replaced as a whole: the old content or the new one after any power cut, also on a full disk."""

import errno

import pytest

from bookie.storage.small_files import make_durable_directory, read_file, replace_file
from ports.disk.kept_room import KeptRoom
from simulation.disks.disk import SimDisk
from simulation.disks.small_disk import SmallDisk
from simulation.world.rng import stream
from tests.bookie.machines import StepDisk
from tests.simulation.worlds import World, run


def test_a_replaced_file_has_the_new_content_and_its_length() -> None:
    async def scenario(world: World) -> None:
        await world.disk.make_directories("/d")
        for content in (b"a long first content", b"short", b""):
            await replace_file(world.disk, "/d", "f", content)
            assert await read_file(world.disk, "/d/f") == content

    run(scenario)


def test_a_file_that_is_not_there_is_an_error() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(FileNotFoundError):
            await read_file(world.disk, "/d/f")

    run(scenario)


def test_the_beginning_of_a_file_is_read_alone() -> None:
    async def scenario(world: World) -> None:
        await world.disk.make_directories("/d")
        await replace_file(world.disk, "/d", "f", b"header and body")
        assert await read_file(world.disk, "/d/f", 6) == b"header"

    run(scenario)


class Cut(Exception):
    """The power went."""


@pytest.mark.parametrize("step", range(1, 7))
def test_a_power_cut_at_any_step_leaves_the_old_content_or_the_new_one(step: int) -> None:
    async def scenario(world: World) -> None:
        disk = StepDisk(world.loop, stream(step, "disk"))
        await make_durable_directory(disk, "/d")
        await replace_file(disk, "/d", "f", b"old")
        began = disk.steps

        def cut(number: int) -> None:
            if number == began + step:
                raise Cut

        disk.on_step = cut
        was_cut = False
        try:
            await replace_file(disk, "/d", "f", b"new")
        except Cut:
            was_cut = True
        disk.on_step = lambda number: None
        disk.crash(power_cut=True)
        found = await read_file(disk, "/d/f")
        assert found in (b"old", b"new")
        assert was_cut or found == b"new", "durable when it returns"

    run(scenario)


def test_a_full_disk_takes_the_content_into_the_room_that_is_kept_for_it() -> None:
    async def scenario(world: World) -> None:
        disk = SmallDisk(world.loop, stream(0, "disk"))
        await make_durable_directory(disk, "/d")
        kept = KeptRoom(disk, "/d", "kept", piece_bytes_min=1 << 16, pieces_max=1)
        assert await kept.keep()
        disk.fill(0)
        with pytest.raises(OSError, match="No space") as refused:
            await replace_file(disk, "/d", "f", bytes(5000))
        assert refused.value.errno == errno.ENOSPC
        await replace_file(disk, "/d", "f", bytes(5000), kept)
        assert await read_file(disk, "/d/f") == bytes(5000)

    run(scenario)


class NotedSyncs(SimDisk):
    """Notes the directories that are synced."""

    def __init__(self, world: World) -> None:
        super().__init__(world.loop, stream(0, "disk"))
        self.synced: list[str] = []

    async def sync_directory(self, path: str) -> None:
        self.synced.append(path)
        await super().sync_directory(path)


def test_each_new_directory_is_synced_in_the_one_above_it_and_those_that_were_there_are_not() -> None:
    async def scenario(world: World) -> None:
        disk = NotedSyncs(world)
        await disk.make_directories("/a")
        await make_durable_directory(disk, "/a/b/c")
        assert sorted(disk.synced) == ["/a", "/a/b"]
        await make_durable_directory(disk, "/a/b/c")
        assert len(disk.synced) == 2
        assert await disk.exists("/a/b/c")

    run(scenario)


def test_directories_at_the_root_and_in_the_working_directory_have_one_above_them_too() -> None:
    async def scenario(world: World) -> None:
        disk = NotedSyncs(world)
        await disk.make_directories(".")
        await make_durable_directory(disk, "/new")
        await make_durable_directory(disk, "data/ledgers")
        assert disk.synced[:1] == ["/"]
        assert sorted(disk.synced[1:]) == [".", "data"]

    run(scenario)
