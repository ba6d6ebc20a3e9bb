"""Member: one process of a devcluster. Owns the child: its start until it is ready, its end, and every line that it writes.

It ends with this process, also when that is killed (Linux). An unasked end is told. A server restarts only when the
user says so, never by itself: one wants to see what the others do meanwhile.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from enum import Enum

from cli.devcluster.lines import Lines, ready_fields
from cli.devcluster.plan import ZOOKEEPER, DevclusterFailed, Plan

READY_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 30.0
LAST_LINES_SECONDS_MAX = 2.0
"""Time that the end of the output may take after the process has ended: a grandchild may hold the pipe."""
_READ_BYTES = 64 * 1024
_PR_SET_PDEATHSIG = 1


class State(Enum):
    """STARTING: not ready yet, or not any more."""

    DOWN = "down"
    STARTING = "starting"
    READY = "ready"


class Member:
    """`tell` is given the member's name and a line. Calls follow each other; none runs beside another."""

    def __init__(self, plan: Plan, tell: Callable[[str, str], None]) -> None:
        self.plan = plan
        self._tell = tell
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None]
        self._is_end_asked = False
        self.pid = 0
        """Process id of the server, which is not always the child: ZooKeeper has a launcher."""
        self.state = State.DOWN

    async def start(self) -> None:
        """Starts it, and waits until it is ready or has done its work. DevclusterFailed, and nothing of it is left."""
        assert self._watching is None
        self._ready = asyncio.get_running_loop().create_future()
        self._is_end_asked, self.state = self.plan.ends, State.STARTING
        # ZooKeeper's launcher ends the server that it started; the others are made for kill -9.
        parent, last = os.getpid(), signal.SIGTERM if self.plan.name == ZOOKEEPER else signal.SIGKILL
        process = self._process = await asyncio.create_subprocess_exec(
            *self.plan.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us: we stop them in order
            preexec_fn=lambda: _end_with(parent, last),
        )
        self.pid = process.pid
        self._watching = asyncio.create_task(self._watch(process), name=f"devcluster {self.plan.name}")
        await asyncio.wait((self._ready, self._watching), timeout=READY_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done() or (self.plan.ends and process.returncode == 0):
            return
        why = "is not ready in time" if process.returncode is None else "ended before it was ready: see its last lines"
        await self.kill()
        raise DevclusterFailed(f"{self.plan.name} {why}")

    async def stop(self) -> None:
        """SIGTERM; one that does not end by it is killed, and that is told. Nothing when it does not run."""
        self._signal(signal.SIGTERM)
        if self._watching is not None:
            await asyncio.wait((self._watching,), timeout=STOP_SECONDS_MAX)
            if not self._watching.done():
                self._tell(self.plan.name, f"does not stop within {STOP_SECONDS_MAX:g} s: killed")
                await self.kill()
        self._watching = None

    async def kill(self) -> None:
        """SIGKILL, and it is gone when this returns."""
        self.kill_now()
        if self._watching is not None:
            await self._watching
            self._watching = None

    def kill_now(self) -> None:
        """Sends SIGKILL without waiting. A launcher ends by itself after its server."""
        self._signal(signal.SIGKILL)
        if self._process is not None and self.pid != self._process.pid and self.state is not State.READY:
            self._process.kill()

    def _signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        self._is_end_asked = True
        with contextlib.suppress(ProcessLookupError):  # it has just ended, and `_watch` will say so
            os.kill(self.pid if number is signal.SIGKILL else process.pid, number)

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        reading = asyncio.create_task(self._read(process), name=f"devcluster {self.plan.name} output")
        code = await process.wait()
        await asyncio.wait((reading,), timeout=LAST_LINES_SECONDS_MAX)
        reading.cancel()
        self.state, self._process = State.DOWN, None
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if not self._is_end_asked:
            self._tell(self.plan.name, f"ENDED BY ITSELF, {how}; it stays down until --restart {self.plan.name}")
        elif not self.plan.ends or code:
            self._tell(self.plan.name, f"ended, {how}")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        lines = Lines()
        while chunk := await process.stdout.read(_READ_BYTES):
            for text in lines.take(chunk):
                self._wrote(text)
        for text in lines.end():
            self._wrote(text)

    def _wrote(self, text: str) -> None:
        self._tell(self.plan.name, text)
        fields = ready_fields(text)
        if fields is not None and not self._ready.done():
            self.pid = int(fields.get("pid", self.pid))
            self.state = State.READY
            self._ready.set_result(None)


def _end_with(parent: int, last: signal.Signals) -> None:
    """Ends the child with its parent. Runs in the child, before its program begins."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(last))
        if os.getppid() != parent:
            os._exit(1)
