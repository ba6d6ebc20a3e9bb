"""Files that bypass the page cache, against what was written to them; on this machine's disk."""

import asyncio
import errno
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ports.disk.direct_io import (
    COPIED_BYTES_MAX,
    KEPT_PIECES_MAX,
    NEAR_BYTES,
    ROOM_BYTES,
    TOGETHER_BYTES_MAX,
    DirectMemory,
    read_direct,
)
from ports.disk.disk import DIRECT_ALIGNMENT, File
from ports.disk.real_disk import DirectFile, RealDisk

PAGE = DIRECT_ALIGNMENT


def on_file(path: Path, scenario: Callable[[File], Awaitable[None]]) -> None:
    async def run() -> None:
        disk = RealDisk()
        try:
            file = await disk.open(str(path), create=True, lane="log", direct=True)
            if not isinstance(file, DirectFile):
                pytest.skip("this file system has no O_DIRECT")
            await scenario(file)
            await file.close()
        finally:
            disk.close()

    asyncio.run(run())


def cut(rng: random.Random, data: bytes) -> list[bytes | bytearray | memoryview]:
    """Cut into buffers of any kind and size."""
    found: list[bytes | bytearray | memoryview] = []
    at = 0
    while at < len(data):
        size = rng.choice([0, 1, 7, PAGE, 100_000, ROOM_BYTES + 5])
        found.append(rng.choice([bytes, bytearray, memoryview])(data[at : at + size]))
        at += size
    return found


@pytest.mark.parametrize("pages", [1, 3, ROOM_BYTES // PAGE, ROOM_BYTES // PAGE * 2 + 3])
def test_any_part_is_read_as_it_was_written(tmp_path: Path, pages: int) -> None:
    rng = random.Random(pages)
    data = rng.randbytes(pages * PAGE)

    async def scenario(file: File) -> None:
        await file.write(0, [bytes(PAGE)])
        await file.write(PAGE, cut(rng, data), sync=True)
        assert file.size() == PAGE + len(data)
        for _ in range(50):
            begin = rng.randrange(len(data) + 2 * PAGE)
            size = rng.choice([0, 1, PAGE, COPIED_BYTES_MAX, 300_000, 3 * ROOM_BYTES])
            read = file.read if rng.random() < 0.5 else file.read_piece
            assert await read(PAGE + begin, size) == data[begin : begin + size]
        places = [(rng.randrange(len(data) + PAGE), rng.choice([0, 8, PAGE, 300_000])) for _ in range(20)]
        found = await file.read_all([(PAGE + begin, size) for begin, size in places])
        assert found == [data[begin : begin + size] for begin, size in places]

    on_file(tmp_path / "f", scenario)


def test_places_near_each_other_are_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    data = rng.randbytes(3 * TOGETHER_BYTES_MAX)
    reads: list[int] = []
    preadv = os.preadv

    def counted(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        reads.append(offset)
        return preadv(descriptor, buffers, offset)

    async def scenario(file: File) -> None:
        await file.write(0, [data])
        near = [(begin, rng.randrange(2000)) for begin in range(100, len(data) + 3000, 2100)]
        far = [(begin, 8) for begin in range(len(data) - 8, 0, -2 * NEAR_BYTES)]
        for places, most in ((near, len(data) // TOGETHER_BYTES_MAX + 3), (far, len(far)), ([near[5], near[4], near[4]], 3)):
            reads.clear()
            assert await file.read_all(places) == [data[begin : begin + size] for begin, size in places]
            assert 0 < len(reads) <= most

    monkeypatch.setattr(os, "preadv", counted)
    on_file(tmp_path / "f", scenario)


def test_a_piece_does_not_change_as_long_as_somebody_holds_it(tmp_path: Path) -> None:
    size = 2 * COPIED_BYTES_MAX
    data = random.Random(1).randbytes(12 * size)

    async def scenario(file: File) -> None:
        await file.write(0, [data])
        held: dict[int, memoryview] = {}
        rng = random.Random(2)
        for _ in range(200):
            place = rng.randrange(12)
            piece = await file.read_piece(place * size, size)
            held[place] = memoryview(piece)[10:-10]  # a part keeps it as well
            if len(held) > 2 * KEPT_PIECES_MAX:
                del held[rng.choice(list(held))]
            for other, part in held.items():
                assert part == data[other * size + 10 : (other + 1) * size - 10]

    on_file(tmp_path / "f", scenario)


def test_memory_that_nobody_holds_is_used_again() -> None:
    memory = DirectMemory()
    first = memory.piece(PAGE).obj
    again = memory.piece(PAGE)
    assert again.obj is not first
    del first
    assert len({id(memory.piece(PAGE).obj) for _ in range(10)}) == 1


def test_direct_io_falls_back_to_ordinary_io_where_the_file_system_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refusing(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return real(path, flags, mode)

    async def scenario() -> None:
        disk = RealDisk()
        try:
            file = await disk.open(f"{tmp_path}/f", create=True, direct=True)
            await file.write(3, [b"abc"])
            assert await file.read(0, 10) == b"\0\0\0abc"
            await file.close()
        finally:
            disk.close()

    monkeypatch.setattr(os, "open", refusing)
    asyncio.run(scenario())


def test_a_read_that_stops_in_the_middle_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    data = random.Random(3).randbytes(5 * COPIED_BYTES_MAX)
    path.write_bytes(data)
    real = os.preadv

    def stingy(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        return real(descriptor, [buffers[0][:PAGE]], offset)

    monkeypatch.setattr(os, "preadv", stingy)
    with path.open("rb") as file:
        assert read_direct(DirectMemory(), file.fileno(), 5, len(data)) == data[5:]
