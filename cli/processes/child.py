"""Child: one started process, from the supervisor's side: its channel, its signals, its end. Decides nothing.

Its output goes where the supervisor's goes, without passing through it: a supervisor that is busy or gone holds up no line.
"""

import asyncio
import json
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from metadata.zookeeper.session_key import SessionKey

LINE_BYTES_MAX = 64 * 1024


class Child:
    """`run` once. A signal that comes before the process is there waits for it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.ready: Mapping[str, Any] = {}
        """Facts that the process told when it was ready."""
        self.session: SessionKey | None = None
        """Session of the process with ZooKeeper; None: the process reported none."""
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: signal.Signals | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def send(self, which: signal.Signals) -> None:
        """Nothing when it has ended: its number may be another's by now."""
        if self._process is None:
            self._waiting = which
        elif self._process.returncode is None:
            with suppress(ProcessLookupError):  # it ends just now, and `run` will say so
                self._process.send_signal(which)

    async def run(
        self, command: Callable[[int], Sequence[str]], inherited: Sequence[int], on_ready: Callable[["Child"], None]
    ) -> str:
        """Runs, and returns how it ended. `command`: by the file descriptor of its channel; `inherited`: further ones."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                try:
                    process = await asyncio.create_subprocess_exec(
                        *command(theirs.fileno()),
                        stdin=subprocess.DEVNULL,
                        pass_fds=(theirs.fileno(), *inherited),
                        start_new_session=True,  # Ctrl-C is for the supervisor, which stops them in turn
                    )
                except OSError as error:
                    return f"it cannot be started: {error}"
            self._process = process
            if self._waiting is not None:
                self.send(self._waiting)
            reading = asyncio.create_task(self._read(ours, on_ready), name=f"channel of process {self.number}")
            try:
                return how_ended(await process.wait())
            finally:
                reading.cancel()
                await asyncio.wait((reading,))

    async def _read(self, ours: socket.socket, on_ready: Callable[["Child"], None]) -> None:
        reader, _writer = await asyncio.open_unix_connection(sock=ours, limit=LINE_BYTES_MAX)
        while text := await reader.readline():
            told = json.loads(text)
            if "session" in told:
                found = told["session"]
                self.session = SessionKey(found["servers"], found["id"], bytes.fromhex(found["password"]))
            else:
                self.ready = told["ready"]
                on_ready(self)


def how_ended(code: int) -> str:
    """Words for the end of a process, from the code that the system gives."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
