"""Room that is kept back on a disk: a share of it, in files that are taken one after the other."""

import errno
import os
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ports.disk.kept_room import BYTES_MAX, SHARE, KeptRoom
from simulation.disks.disk import SimDisk
from simulation.world.loop import SimLoop

KILOBYTE = 1024


def on_disk(size_bytes: int, work: Callable[[SimDisk, KeptRoom], Coroutine[Any, Any, None]]) -> None:
    loop = SimLoop(random.Random(1))
    disk = SimDisk(loop, random.Random(2))
    disk.capacity_bytes = size_bytes

    async def main() -> None:
        await disk.make_directories("/data")
        await work(disk, KeptRoom(disk, "/data", "kept", piece_bytes_min=256 * KILOBYTE, pieces_max=4))

    loop.run_until_complete(main())
    loop.close()


@pytest.mark.parametrize(
    ("size_bytes", "pieces", "piece_bytes"),
    [
        (BYTES_MAX * SHARE, 4, BYTES_MAX // 4),
        (BYTES_MAX * SHARE * 100, 4, BYTES_MAX // 4),
        (60 << 20, 3, 256 * KILOBYTE),
        (8 << 20, 1, 128 * KILOBYTE),
    ],
)
def test_a_share_of_the_disk_is_kept_in_some_files(size_bytes: int, pieces: int, piece_bytes: int) -> None:
    async def scenario(disk: SimDisk, room: KeptRoom) -> None:
        for _ in range(2):
            assert await room.keep()
            assert [disk.contents(path).allocated_bytes for path in disk.paths()] == [piece_bytes] * pieces

    on_disk(size_bytes, scenario)


def test_taken_files_have_their_room_on_a_full_disk_and_room_is_kept_again_later() -> None:
    async def scenario(disk: SimDisk, room: KeptRoom) -> None:
        await room.keep()
        filler = await disk.open("/data/filler", create=True)
        await filler.allocate(disk.free_bytes())
        for number in range(3):
            assert await room.take(f"/data/taken{number}")
            assert not room.is_kept
            file = await disk.open(f"/data/taken{number}")
            await file.write(0, [bytes(256 * KILOBYTE)], sync=True)
            with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
                await file.write(256 * KILOBYTE, [bytes(KILOBYTE)])
        assert not await room.take("/data/taken3")
        assert not await room.keep()
        await disk.remove("/data/taken0")
        assert not await room.keep(), "what is scarce is left to those who write"
        await disk.remove("/data/filler")
        assert await room.keep()
        assert [path for path in disk.paths() if "kept" in path] == ["/data/kept", "/data/kept.1", "/data/kept.2"]

    on_disk(60 << 20, scenario)


def test_a_file_that_gets_no_room_is_not_left_behind() -> None:
    async def scenario(disk: SimDisk, room: KeptRoom) -> None:
        disk.fail("write", errno.ENOSPC, "kept.1")
        assert not await room.keep()
        assert disk.paths() == ["/data/kept"]

    on_disk(60 << 20, scenario)
