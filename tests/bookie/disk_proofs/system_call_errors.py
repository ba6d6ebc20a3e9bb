"""System calls of a running process that fail, or do nothing, from a moment on: strace's injection.

Owns the tracer. The calls themselves are not carried out, the process sees the answer that is asked for.
"""

import functools
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

ATTACHED_SECONDS_MAX = 30.0
POLL_SECONDS = 0.01


@functools.cache
def _why_no_tracing() -> str:
    if shutil.which("strace") is None:
        return "needs strace to make system calls fail"
    command = ["strace", "-f", "-o", "/dev/null", "-e", "inject=getppid:retval=0", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return "" if done.returncode == 0 else f"processes cannot be traced here: {done.stderr.strip()}"


def need_tracing() -> None:
    """Skips the test where it cannot be had."""
    if _why_no_tracing():
        pytest.skip(_why_no_tracing())


class Injected:
    """`with Injected(pid, "fdatasync:error=EIO", log):` from the entry to the exit, in all threads of the process.

    With `paths`, calls on these files alone.
    """

    def __init__(self, pid: int, what: str, log: Path, *paths: Path) -> None:
        calls = what.partition(":")[0]
        self._pid, self._log = pid, log
        self._command = ["strace", "-f", "-p", str(pid), "-e", f"trace={calls}", "-e", f"inject={what}", "-o", str(log)]
        for path in paths:
            self._command += ["-P", str(path)]
        self._tracer: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._tracer = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + ATTACHED_SECONDS_MAX
        while not self._has_all():
            assert self._tracer.poll() is None, "strace has ended"
            assert time.monotonic() < deadline, "strace is not attached"
            time.sleep(POLL_SECONDS)
        return self

    def _has_all(self) -> bool:
        statuses = [task / "status" for task in Path(f"/proc/{self._pid}/task").iterdir()]
        return all("TracerPid:\t0\n" not in status.read_text() for status in statuses)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._tracer is not None
        self._tracer.terminate()
        self._tracer.wait(timeout=ATTACHED_SECONDS_MAX)
