"""File systems of their own for tests: on a disk whose power can be cut, and on an image of a few megabytes.

Owns the mounts and the loop devices under them; leaving the `with` takes both away, whatever became of the test.
"""

import asyncio
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import pytest

from tests.toolchain import ROOT

MEGABYTE = 1 << 20
TOOLS = ("losetup", "mkfs.ext4", "mount", "umount")
TOOL_SECONDS_MAX = 60
BUSY_SECONDS = 0.05


class NotMountable(Exception):
    """The file system does not mount again after a power cut."""


def run(*command: str | Path) -> str:
    """Output of the command; AssertionError with all of it when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def _unmount(path: Path) -> None:
    """Unmounts; the kernel closes the files of a killed process's io_uring some milliseconds after the process is gone."""
    deadline = time.monotonic() + TOOL_SECONDS_MAX
    while True:
        try:
            run("umount", path)
        except AssertionError as error:
            if "target is busy" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(BUSY_SECONDS)
        else:
            return


@functools.cache
def _why_no_mounts() -> str:
    if os.geteuid() != 0:
        return "needs root to mount file systems"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)} to mount file systems"
    try:
        with LoopMount(8):
            return ""
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return f"loop devices cannot be mounted here: {error}"


@functools.cache
def _why_no_power_cuts() -> str:
    why = _why_no_mounts()
    if why:
        return why
    try:
        with PowerCutMount(8):
            return ""
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return f"a file of FUSE under a loop device cannot be mounted here: {error}"


def need_loop_mounts() -> None:
    """Skips the test where they cannot be had."""
    if _why_no_mounts():
        pytest.skip(_why_no_mounts())


def need_power_cuts() -> None:
    if _why_no_power_cuts():
        pytest.skip(_why_no_power_cuts())


class LoopMount:
    """A file system of ext4 on a loop device on an image, at `path`. `with` mounts it.

    In a directory of its own: pytest's may be moved by another run that tidies up, with all that is mounted there.
    """

    def __init__(self, size_megabytes: int) -> None:
        self._directory = Path(tempfile.gettempdir())
        self._size_bytes = size_megabytes * MEGABYTE
        self._device = ""
        self._is_mounted = False

    @property
    def path(self) -> Path:
        return self._directory / "mount"

    @property
    def image(self) -> Path:
        return self._directory / "image"

    def _make_directory(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="interpulse-disk-"))
        self.path.mkdir()

    def __enter__(self) -> Self:
        self._make_directory()
        with self.image.open("wb") as image:
            image.truncate(self._size_bytes)
        self._attempt(self._make)
        return self

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        self.attach()
        run("mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard,lazy_itable_init=0", self._device)
        self.mount()

    def attach(self) -> None:
        self._device = run("losetup", "--find", "--show", self.image)

    def mount(self) -> None:
        run("mount", self._device, self.path)
        self._is_mounted = True

    def unmount(self) -> None:
        """Unmount, and release the loop device: nothing of it stays in the page cache."""
        if self._is_mounted:
            _unmount(self.path)
            self._is_mounted = False
        if self._device:
            run("losetup", "--detach", self._device)
            self._device = ""

    def close(self) -> None:
        """Close; a process that has it open keeps it until its end."""
        if self._is_mounted:
            run("umount", "--lazy", self.path)
            self._is_mounted = False
        if self._device:
            run("losetup", "--detach", self._device)
            self._device = ""
        self._remove_directory()

    def _remove_directory(self) -> None:
        self.image.unlink(missing_ok=True)
        self.path.rmdir()
        self._directory.rmdir()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Cut(NamedTuple):
    """Effect of a power cut."""

    sectors: int
    """Written since the last flush."""
    lost: int
    flushes: int
    """Since the disk was made."""


class PowerCutMount(LoopMount):
    """The same on a disk whose power can be cut (`power_cut_disk`)."""

    def __init__(self, size_megabytes: int) -> None:
        super().__init__(size_megabytes)
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._make_directory()
        self.image.touch()
        self._attempt(self._power_on_first)
        self._attempt(self._make)
        return self

    def _power_on_first(self) -> None:
        command = [sys.executable, "-m", "tests.bookie.disk_proofs.power_cut_disk", str(self.image), str(self._size_bytes)]
        self._server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._need_answer("ready")

    def _need_answer(self, wanted: str) -> None:
        answer = self._read_answer()
        assert answer == wanted, f"the disk says {answer!r} instead of {wanted!r}"

    def _read_answer(self) -> str:
        assert self._server is not None
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def _send(self, command: str) -> None:
        assert self._server is not None
        assert self._server.stdin is not None
        self._server.stdin.write(command + "\n")
        self._server.stdin.flush()

    async def cut(self, after_writes: int, seed: int) -> Cut:
        """Returns when that many writes (>= 1) have come and the power is off: everything fails with EIO, until `again`."""
        self._send(f"cut {after_writes} {seed}")
        return Cut(*map(int, (await asyncio.to_thread(self._read_answer)).split()))

    def refuse(self, what: str) -> None:
        """`reads` or `writes` fail with EIO from now on, until `again`."""
        self._send(f"refuse {what}")
        self._need_answer("done")

    def ignore_flushes(self) -> None:
        """The disk lies, until `again`: what was flushed is lost with the power like everything else."""
        self._send("ignore flushes")
        self._need_answer("done")

    def again(self) -> None:
        """Mount the disk's content again, when no file is open any more; the journal of the file system is replayed."""
        self.unmount()
        self._send("on")
        self._need_answer("done")
        self.attach()
        try:
            self.mount()
        except AssertionError as error:
            raise NotMountable(str(error)) from error

    def close(self) -> None:
        server, self._server = self._server, None
        try:
            if self._is_mounted:
                run("umount", "--lazy", self.path)
            if self._device:
                run("losetup", "--detach", self._device)
        finally:
            self._is_mounted, self._device = False, ""
            if server is not None:
                server.communicate(timeout=TOOL_SECONDS_MAX)
                assert server.returncode == 0, "the disk is still mounted"
            self._remove_directory()
