"""The disk port on the disk of this machine."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from ports.disk import real_disk
from ports.disk.real_disk import RealDisk


def on_disk(scenario: Callable[[RealDisk], Awaitable[None]]) -> None:
    async def run() -> None:
        disk = RealDisk()
        try:
            await scenario(disk)
        finally:
            disk.close()

    asyncio.run(run())


def test_buffers_are_written_one_after_the_other_and_read_back(tmp_path: Path) -> None:
    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True, lane="journal")
        await file.write(3, [b"abc", bytearray(b""), memoryview(b"xdefx")[1:4]], sync=True)
        assert await file.read(0, 100) == b"\0\0\0abcdef"
        assert await file.read(4, 2) == b"bc"
        assert await file.read(100, 5) == b""
        assert file.size() == 9
        await file.truncate(4)
        assert file.size() == 4
        await file.sync()
        await file.close()
        await file.close()

    on_disk(scenario)


def test_more_buffers_than_one_call_takes_are_all_written(tmp_path: Path) -> None:
    buffers = [bytes([index % 251]) * (index % 7) for index in range(real_disk.BUFFERS_MAX * 2 + 5)]

    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True)
        await file.write(5, buffers)
        assert await file.read(5, 1 << 20) == b"".join(buffers)

    on_disk(scenario)


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_partial_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    real = os.pwritev

    def stingy(descriptor: int, buffers: list[bytes], offset: int) -> int:
        return real(descriptor, [b"".join(bytes(buffer) for buffer in buffers)[:step]], offset)

    monkeypatch.setattr(os, "pwritev", stingy)

    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True)
        await file.write(0, [b"ab", b"", b"cdefg", b"h", b""])
        assert await file.read(0, 100) == b"abcdefgh"

    on_disk(scenario)


def test_calls_on_one_file_are_carried_out_in_the_order_made(tmp_path: Path) -> None:
    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True)
        writes = [asyncio.ensure_future(file.write(0, [b"%04d" % index])) for index in range(200)]
        await asyncio.gather(*writes)
        assert await file.read(0, 10) == b"0199"

    on_disk(scenario)


def test_errors_are_the_systems_own(tmp_path: Path) -> None:
    async def scenario(disk: RealDisk) -> None:
        with pytest.raises(FileNotFoundError):
            await disk.open(f"{tmp_path}/none")
        with pytest.raises(FileNotFoundError):
            await disk.list_directory(f"{tmp_path}/none")
        file = await disk.open(f"{tmp_path}/f", create=True)
        await file.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            await file.write(0, [b"x"])

    on_disk(scenario)


def test_directories(tmp_path: Path) -> None:
    async def scenario(disk: RealDisk) -> None:
        base = f"{tmp_path}/a/b"
        await disk.make_directories(base)
        await disk.make_directories(base)
        for name in ("z", "y"):
            await (await disk.open(f"{base}/{name}", create=True)).close()
        await disk.rename(f"{base}/z", f"{base}/x")
        await disk.sync_directory(base)
        assert await disk.list_directory(base) == ["x", "y"]
        await disk.remove(f"{base}/y")
        assert await disk.exists(f"{base}/x")
        assert not await disk.exists(f"{base}/y")
        usage = await disk.usage(base)
        assert 0 < usage.free_bytes <= usage.total_bytes
        file = await disk.open(f"{base}/x")
        await file.allocate(10_000)
        assert file.size() == 10_000

    on_disk(scenario)


def test_descriptors_are_not_inherited(tmp_path: Path) -> None:
    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True)
        assert isinstance(file, real_disk.RealFile)
        assert not os.get_inheritable(file._descriptor)

    on_disk(scenario)


def recorded(monkeypatch: pytest.MonkeyPatch, *, knows_dsync: bool = True) -> list[str]:
    """Calls of the system from now on, in order: writes, writes that are durable when they return, syncs."""
    calls: list[str] = []
    write, sync = os.pwritev, os.fdatasync

    def pwritev(descriptor: int, buffers: list[bytes], offset: int, flags: int = 0) -> int:
        calls.append("durable write" if flags == os.RWF_DSYNC else "write")
        if flags and not knows_dsync:
            raise OSError(errno.EOPNOTSUPP, "this file system does not")
        return write(descriptor, buffers, offset, flags)

    def fdatasync(descriptor: int) -> None:
        calls.append("sync")
        sync(descriptor)

    monkeypatch.setattr(os, "pwritev", pwritev)
    monkeypatch.setattr(os, "fdatasync", fdatasync)
    return calls


def test_a_synced_write_is_one_call_only_where_nothing_else_of_the_file_waits_to_be_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True, lane="journal")
        calls = recorded(monkeypatch)
        await file.write(0, [b"abcd"], sync=True)
        assert calls == ["write", "sync"], "whoever wrote it before may have left something"
        calls.clear()
        await file.write(4, [b"ef", b"gh"], sync=True)
        assert calls == ["durable write"]
        changes: list[Callable[[], Awaitable[None]]] = [
            partial(file.write, 8, [b"ij"]),
            partial(file.allocate, 100),
            partial(file.truncate, 50),
        ]
        for change in changes:
            await change()
            calls.clear()
            await file.write(10, [b"kl"], sync=True)
            assert calls == ["write", "sync"]
        await file.write(12, [b"mn"])
        await file.sync()
        calls.clear()
        await file.write(14, [b"op"], sync=True)
        assert calls == ["durable write"]
        assert await file.read(0, 16) == b"abcdefghijklmnop"

    on_disk(scenario)


def test_a_file_system_without_durable_writes_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True, lane="journal")
        await file.write(0, [b"abcd"], sync=True)
        calls = recorded(monkeypatch, knows_dsync=False)
        await file.write(4, [b"efgh"], sync=True)
        assert calls == ["durable write", "write", "sync"]
        assert await file.read(0, 8) == b"abcdefgh"

    on_disk(scenario)


def test_a_durable_write_that_is_cut_short_is_done_again_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev

    def stingy(descriptor: int, buffers: list[bytes], offset: int, flags: int = 0) -> int:
        return real(descriptor, [b"".join(bytes(buffer) for buffer in buffers)[:3]], offset, flags)

    async def scenario(disk: RealDisk) -> None:
        file = await disk.open(f"{tmp_path}/f", create=True, lane="journal")
        await file.write(0, [b"abcd"], sync=True)
        monkeypatch.setattr(os, "pwritev", stingy)
        await file.write(4, [b"ef", b"", b"ghijklmn"], sync=True)
        assert await file.read(0, 20) == b"abcdefghijklmn"

    on_disk(scenario)
