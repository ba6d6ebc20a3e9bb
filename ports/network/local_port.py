"""LocalPort: a Unix domain socket for messages (SOCK_SEQPACKET), by which open files are handed to processes on this machine.

Its name is an abstract one: it is seen in this network namespace alone, as a port on loopback is, and leaves nothing behind.
Owns the socket and its connections; the owner reads the questions and answers them. Each connection has one question at a time.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

BACKLOG = 64
CONNECTIONS_MAX = 256
"""A connection beyond them is closed at once."""
PAUSE_SECONDS = 1.0
"""Pause of accepting after a failure."""
FILES_MAX = 128
"""Handed over by one connection, and by one answer; the system's bound for one message is 253."""


@dataclass(slots=True)
class LocalPeer:
    """`files`: the paths of those that were handed over, with their numbers."""

    files: dict[str, int] = field(default_factory=dict)

    @property
    def has_room(self) -> bool:
        return len(self.files) < FILES_MAX


@dataclass(frozen=True, slots=True)
class LocalAnswer:
    """`descriptors` go along, and are closed here."""

    message: bytes
    descriptors: Sequence[int] = ()


Answer = Callable[[bytes, LocalPeer], Awaitable[LocalAnswer | None]]
"""None: the connection is to end."""


class LocalPort:
    """`listen` once, then `close`. Belongs to one event loop."""

    def __init__(self, name: str, question_bytes_max: int, answer: Answer) -> None:
        self._name, self._question_bytes_max, self._answer = name, question_bytes_max, answer
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def listen(self) -> None:
        """OSError: there is no such kind of socket here."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind("\0" + self._name)
            self._socket.listen(BACKLOG)
        except OSError:
            self._socket.close()
            raise
        self._go_on()

    async def close(self) -> None:
        """Closing twice is fine."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connected, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # it is gone already
        except OSError:  # there are no descriptors left; it would be told so again at once
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            loop.call_later(PAUSE_SECONDS, self._go_on)
            return
        if len(self._tasks) >= CONNECTIONS_MAX:
            connected.close()
            return
        connected.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._serve(connected))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: connected.close())  # also when it is cancelled before it began

    def _go_on(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().add_reader(self._socket, self._accept, self._socket)

    async def _serve(self, connected: socket.socket) -> None:
        peer = LocalPeer()
        try:
            while question := await asyncio.get_running_loop().sock_recv(connected, self._question_bytes_max):
                answer = await self._answer(question, peer)
                if answer is None:
                    return
                await _send(connected, answer)
        except OSError:
            return  # the peer is gone


async def _send(connected: socket.socket, answer: LocalAnswer) -> None:
    try:
        while True:
            try:
                socket.send_fds(connected, [answer.message], list(answer.descriptors))
                return
            except BlockingIOError:
                await _writable(connected)
    finally:
        close_all(answer.descriptors)


async def _writable(connected: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    writable: asyncio.Future[None] = loop.create_future()
    loop.add_writer(connected, _set, writable)
    try:
        await writable
    finally:
        loop.remove_writer(connected)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def open_to_share(path: str) -> int:
    """A descriptor for reading through the page cache, also in another process. OSError."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
