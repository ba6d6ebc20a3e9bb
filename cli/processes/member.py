"""Member: one of several processes, from its own side: it tells that it is ready, and stops when its supervisor is gone.

Owns the channel to the supervisor and the sockets that it inherited. A supervisor that was killed with -9 restarts no process,
so none goes on without it: orphans would hold the ports against the next one (gunicorn's issues 291 and 520).
"""

import asyncio
import json
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from cli.processes.local_http import fetched
from cli.processes.place import Place, parsed_place
from metadata.zookeeper.session_key import SessionKey
from ports.logs import line

if TYPE_CHECKING:
    from starlette.responses import Response

log = logging.getLogger("interpulse")

ORPHAN_SECONDS_MAX = 30.0
"""Time that a polite stop may take when the supervisor is gone; then the process kills itself, whatever its loop does."""
GATHER_SECONDS_MAX = 30.0
PIECE_BYTES = 256 * 1024
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Member:
    """`watch` once, at the very start."""

    def __init__(self, place: Place) -> None:
        self.place = place
        os.set_inheritable(place.channel, False)
        self._channel = socket.socket(fileno=place.channel)
        self._is_stopping = False

    @property
    def name(self) -> str:
        """Name in each line of its log."""
        return str(self.place.number)

    def watch(self) -> None:
        """Ends this process from now on when the supervisor ends."""
        threading.Thread(target=self._until_alone, name="supervisor's end", daemon=True).start()

    def _until_alone(self) -> None:
        with suppress(OSError):  # a channel that breaks is one that has ended
            while self._channel.recv(4096):
                continue
        if not self._is_stopping:
            log.error(line("the supervisor is gone: this process stops"))
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_SECONDS_MAX)
        os.kill(os.getpid(), signal.SIGKILL)

    def front(self, key: str) -> socket.socket | None:
        """The bound socket of a port in front; None where that port is off."""
        number = self.place.fronts.get(key)
        if number is None:
            return None
        os.set_inheritable(number, False)
        return socket.socket(fileno=number)

    def tell_ready(self, fields: Mapping[str, object]) -> None:
        """Reports to the supervisor that this process is ready."""
        self._tell({"ready": {**fields, "pid": os.getpid()}})

    def tell_session(self, key: SessionKey) -> None:
        """The supervisor ends this session when the process has died without doing so."""
        self._tell({"session": {"servers": key.servers, "id": key.session_id, "password": key.password.hex()}})

    def _tell(self, what: Mapping[str, object]) -> None:
        """A few hundred bytes, seldom: it does not block."""
        with suppress(BrokenPipeError):  # the supervisor is gone, and `_until_alone` hears of it
            self._channel.sendall(json.dumps(what).encode() + b"\n")

    def stopping(self) -> None:
        """Notes that the process is stopping already: the end of the supervisor asks for nothing more."""
        self._is_stopping = True

    async def metrics_of_all(self) -> "Response":
        """The metrics that the supervisor gathers. 503 when it does not."""
        return await self._answer("/metrics", METRICS_TYPE)

    async def processes(self) -> "Response":
        """Phase, pid and starts of each, from the supervisor. 503 when it does not answer."""
        return await self._answer("/processes", "application/json")

    async def _answer(self, target: str, kind: str) -> "Response":
        from starlette.responses import PlainTextResponse, StreamingResponse  # a broker is ready before it imports this

        try:
            text = await asyncio.to_thread(fetched, self.place.all_metrics, target, GATHER_SECONDS_MAX)
        except OSError as error:
            return PlainTextResponse(f"the supervisor of the processes does not answer: {error}\n", 503)
        return StreamingResponse(_pieces(text), media_type=kind)


async def _pieces(text: bytes) -> AsyncIterator[bytes]:
    view = memoryview(text)
    for start in range(0, len(text), PIECE_BYTES):
        yield bytes(view[start : start + PIECE_BYTES])
        await asyncio.sleep(0)


def watched_member(text: str) -> Member:
    """The member at the place that a supervisor wrote; BadSetting or OSError where a person wrote the text."""
    member = Member(parsed_place(text))
    member.watch()
    return member
