"""Writes through the kernel's queue: what they leave on disk, their order among other calls, their failures."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from ports.disk import kernel_queue, lane, real_disk
from ports.disk.direct_io import DirectMemory
from ports.disk.disk import DIRECT_ALIGNMENT, Buffer
from ports.disk.kernel_queue import ROOM_BYTES, KernelQueue
from ports.disk.real_disk import QueuedFile, RealDisk

PAGE = DIRECT_ALIGNMENT
HAS_QUEUE = (queue := kernel_queue.opened()) is not None
if queue is not None:
    queue.close()
needs_queue = pytest.mark.skipif(not HAS_QUEUE, reason="this system gives no io_uring to this process")
Scenario = Callable[[QueuedFile, Path], Awaitable[None]]


def page(letter: str) -> bytes:
    return letter.encode() * PAGE


def content(path: Path, first: int, after: int) -> bytes:
    """Bytes of these pages."""
    return path.read_bytes()[first * PAGE : after * PAGE]


def on_queue(path: Path, scenario: Scenario) -> None:
    """Runs the scenario with a file of sixteen pages, of which the first is written."""

    async def run() -> None:
        disk = RealDisk()
        try:
            file = await disk.open(f"{path}/f", create=True, lane="journal", queued=True)
            if not isinstance(file, QueuedFile):
                pytest.skip("the file system has no direct writes")
            await file.allocate(16 * PAGE)
            await file.write(0, [page("a")], sync=True)
            await scenario(file, path / "f")
            await file.close()
        finally:
            disk.close()

    asyncio.run(run())


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Results that the kernel gives, in their order; one that is put there before is given instead of the kernel's."""
    results: list[int] = []
    write = KernelQueue.write

    def noted(self: KernelQueue, file: int, offset: int, data: bytes, then: Callable[[int], object]) -> bool:
        def answer(result: int) -> None:
            results.append(result)
            then(faults.pop(0) if faults else result)

        return write(self, file, offset, data, answer)

    faults: list[int] = []
    monkeypatch.setattr(KernelQueue, "write", noted)
    monkeypatch.setattr(kernel_queue, "faults", faults, raising=False)
    return results


def answered(result: int) -> None:
    """The next write is answered so, whatever became of it."""
    kernel_queue.faults.append(result)  # type: ignore[attr-defined]


@needs_queue
def test_a_synced_write_goes_through_the_queue_and_is_there(tmp_path: Path, queued: list[int]) -> None:
    async def scenario(file: QueuedFile, path: Path) -> None:
        for number in range(1, 9):
            await file.write(number * PAGE, [b"x" * 84, b"y" * 174, bytes(PAGE - 84 - 174)], sync=True)
        assert queued == [PAGE] * 8
        assert content(path, 1, 9) == (b"x" * 84 + b"y" * 174).ljust(PAGE, b"\0") * 8

    on_queue(tmp_path, scenario)


@needs_queue
def test_writes_that_are_unsynced_or_too_large_or_follow_such_go_to_the_thread(tmp_path: Path, queued: list[int]) -> None:
    async def scenario(file: QueuedFile, path: Path) -> None:
        await file.write(PAGE, [page("b")])
        await file.write(2 * PAGE, [page("c")], sync=True)  # fdatasync, which makes the one before durable too
        await file.write(0, [bytes(ROOM_BYTES + PAGE)], sync=True)
        assert queued == []
        await file.write(0, [page("d")], sync=True)
        assert queued == [PAGE]

    on_queue(tmp_path, scenario)


@needs_queue
def test_calls_on_one_file_are_carried_out_in_their_order(tmp_path: Path, queued: list[int]) -> None:
    async def scenario(file: QueuedFile, path: Path) -> None:
        writes = [file.begin_write(PAGE, [page("x") * (ROOM_BYTES // PAGE + 1)], sync=True)]  # by the thread
        writes += [file.begin_write(PAGE, [page(letter)], sync=True) for letter in "bcd"]
        read = asyncio.ensure_future(file.read(PAGE, PAGE))
        await asyncio.gather(*writes)
        assert await read in (page("x"), page("b"), page("c"), page("d"))
        assert (await file.read(PAGE, PAGE)) == page("d")
        last = file.begin_write(2 * PAGE, [page("e")], sync=True)
        await file.close()
        assert last.done()
        assert content(path, 2, 3) == page("e")

    on_queue(tmp_path, scenario)


@needs_queue
def test_a_write_whose_caller_was_cancelled_ends_quietly_and_the_file_goes_on(tmp_path: Path, queued: list[int]) -> None:
    mistakes: list[object] = []

    async def scenario(file: QueuedFile, path: Path) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: mistakes.append(context))
        file.begin_write(PAGE, [page("b")], sync=True).cancel()
        await file.write(2 * PAGE, [page("c")], sync=True)

    on_queue(tmp_path, scenario)  # whose disk waits at its end for the answer of the kernel
    assert queued[0] == PAGE
    assert mistakes == []
    assert content(tmp_path / "f", 1, 3) == page("b") + page("c")


@needs_queue
def test_an_error_of_the_disk_is_the_writers(tmp_path: Path, queued: list[int]) -> None:
    async def scenario(file: QueuedFile, path: Path) -> None:
        answered(-errno.EIO)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)) as caught:
            await file.write(PAGE, [page("b")], sync=True)
        assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(path))
        await file.write(PAGE, [page("c")], sync=True)

    on_queue(tmp_path, scenario)


@needs_queue
@pytest.mark.parametrize("result", [512, 0, -errno.EAGAIN, -errno.EINVAL, -errno.EOPNOTSUPP])
def test_writes_that_the_kernel_did_not_do_are_done_by_the_thread(tmp_path: Path, queued: list[int], result: int) -> None:
    async def scenario(file: QueuedFile, path: Path) -> None:
        calls: list[int] = []
        write_through = real_disk._write_through

        def counted(memory: DirectMemory, descriptor: int, offset: int, buffers: Sequence[Buffer], is_synced: bool) -> None:
            calls.append(offset)
            write_through(memory, descriptor, offset, buffers, is_synced)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(real_disk, "_write_through", counted)
            answered(result)
            await file.write(PAGE, [page("b")], sync=True)
        assert calls == [PAGE]
        assert content(path, 1, 2) == page("b")

    on_queue(tmp_path, scenario)


@needs_queue
def test_a_full_disk_is_an_error_of_the_kernel_too(tmp_path: Path) -> None:
    """A file may not grow beyond the limit of the process: the kernel says so as it says that the disk is full."""
    import resource
    import signal

    async def scenario(file: QueuedFile, path: Path) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 * PAGE, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                await file.write(16 * PAGE, [page("b")], sync=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    on_queue(tmp_path, scenario)


def test_without_io_uring_the_thread_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "opened", lambda: None)

    async def run() -> None:
        disk = RealDisk()
        file = await disk.open(f"{tmp_path}/f", create=True, lane="journal", queued=True)
        assert not isinstance(file, QueuedFile)
        await file.write(0, [page("a")], sync=True)
        await file.write(PAGE, [page("b")], sync=True)
        assert content(tmp_path / "f", 0, 2) == page("a") + page("b")
        disk.close()

    asyncio.run(run())


@needs_queue
def test_a_disk_that_closes_waits_for_the_kernel(tmp_path: Path) -> None:
    async def run() -> None:
        disk = RealDisk()
        file = await disk.open(f"{tmp_path}/f", create=True, lane="journal", queued=True)
        if not isinstance(file, QueuedFile):
            pytest.skip("the file system has no direct writes")
        await file.allocate(4 * PAGE)
        await file.write(0, [page("a")], sync=True)
        write = file.begin_write(PAGE, [page("b")], sync=True)
        disk.close()
        assert write.done()
        assert content(tmp_path / "f", 1, 2) == page("b")

    asyncio.run(run())
