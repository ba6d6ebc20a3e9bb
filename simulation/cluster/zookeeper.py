"""SimZooKeeper: the metadata's server on a host of its own: sessions that end when a client is silent, watches, connections.

Requests and answers are objects; the wire carries the number of each, eight bytes in a stream of the simulated
network, which may delay, hold, cut and reset it. So a session is lost early or late, here and at its client, as that network
has it. Owns the sessions; `nodes` the nodes, which outlive the server, as do the sessions: after its start each of them
has its full time again.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from metadata.paths import is_at_or_below
from metadata.store import Change
from metadata.zookeeper.requests import AddWatch, Answer, Children, Get, Multi, Refused, RemoveWatch, Request, Sync
from simulation.cluster.nodes import Nodes
from simulation.world.clock import SimClock
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.process import SimProcess

HOST, PORT = "zookeeper", 2181
NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Hello:
    """The first words on a connection: of a session (0: a new one) and the silence that it bears."""

    session_id: int
    timeout: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and its number."""

    number: int
    request: Request


@dataclass(frozen=True, slots=True)
class Ping:
    """The client is there."""


@dataclass(frozen=True, slots=True)
class Bye:
    """The client ends the session."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The session goes on, or is new."""

    session_id: int


@dataclass(frozen=True, slots=True)
class Over:
    """There is no such session any more."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Answer to the request of that number."""

    number: int
    answer: Answer | Refused
    zxid: int


@dataclass(frozen=True, slots=True)
class Changed:
    """Change that a watch saw."""

    change: Change
    path: str


@dataclass(frozen=True, slots=True)
class Pong:
    """The server is there."""


Word = Hello | Asked | Ping | Bye | Welcome | Over | Answered | Changed | Pong


class Words:
    """Messages on all connections of a run, by number."""

    def __init__(self) -> None:
        self._said: dict[int, Word] = {}
        self._last = 0

    def put(self, word: Word) -> bytes:
        self._last += 1
        self._said[self._last] = word
        return self._last.to_bytes(NUMBER_BYTES)

    def take(self, buffer: bytearray) -> Iterable[Word]:
        """Words that have come whole; `buffer` loses them."""
        while len(buffer) >= NUMBER_BYTES:
            number = int.from_bytes(buffer[:NUMBER_BYTES])
            del buffer[:NUMBER_BYTES]
            yield self._said.pop(number)


@dataclass(slots=True, eq=False)
class _Session:
    id: int
    timeout: float
    connection: "_Connection | None" = None
    end: asyncio.TimerHandle | None = None
    watches: dict[str, None] = field(default_factory=dict)


class _Connection(asyncio.Protocol):
    """Connection of one client."""

    def __init__(self, server: "SimZooKeeper") -> None:
        self._server = server
        self._buffer = bytearray()
        self._transport: asyncio.Transport
        self.session: _Session | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for word in self._server.words.take(self._buffer):
            self._server.heard(self, word)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.session is not None and self.session.connection is self:
            self.session.connection = None
            self.session.watches.clear()

    def say(self, word: Word) -> None:
        self._transport.write(self._server.words.put(word))

    def close(self) -> None:
        self._transport.close()


class SimZooKeeper:
    """`process.start` and `process.kill` it at any time."""

    def __init__(self, loop: SimLoop, network: SimNetwork) -> None:
        self.nodes, self.words = Nodes(), Words()
        self.process = SimProcess(loop, network, HOST, None, self._main)
        self.expired = 0
        self._loop, self._clock = loop, SimClock(loop)
        self._sessions: dict[int, _Session] = {}
        self._last_id = 0

    async def _main(self) -> None:
        await self._loop.create_server(lambda: _Connection(self), None, PORT)
        for session in self._sessions.values():
            session.connection = None
            session.watches.clear()
            self._touch(session)
        await self._loop.create_future()

    def session_ids(self) -> list[int]:
        return list(self._sessions)

    def expire(self, session_id: int) -> None:
        """Expires a session: its nodes go at once, and the client is notified if it can be reached."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        self.expired += 1
        self._loop.trace.record(HOST, f"session {session_id} is over")
        if session.end is not None:
            session.end.cancel()
        if session.connection is not None:
            session.connection.close()
        self._tell([(Change.DELETED, path) for path in self.nodes.end_session(session_id)])

    def heard(self, connection: _Connection, word: Word) -> None:
        if isinstance(word, Hello):
            self._greet(connection, word)
            return
        session = connection.session
        if session is None or self._sessions.get(session.id) is not session or session.connection is not connection:
            return  # what an earlier connection of the session sent
        self._touch(session)
        match word:
            case Asked():
                connection.say(Answered(word.number, self._answer(word.request, session), self.nodes.zxid))
            case Ping():
                connection.say(Pong())
            case Bye():
                self.expire(session.id)

    def _greet(self, connection: _Connection, hello: Hello) -> None:
        session = self._sessions.get(hello.session_id)
        if session is None and hello.session_id:
            connection.say(Over())
            connection.close()
            return
        if session is None:
            self._last_id += 1
            session = self._sessions[self._last_id] = _Session(self._last_id, hello.timeout)
        elif session.connection is not None:
            session.connection.close()
        session.connection, connection.session = connection, session
        session.watches.clear()
        self._touch(session)
        connection.say(Welcome(session.id))

    def _touch(self, session: _Session) -> None:
        if session.end is not None:
            session.end.cancel()
        session.end = self._loop.call_later(session.timeout, self.expire, session.id)

    def _answer(self, request: Request, session: _Session) -> Answer | Refused:
        match request:
            case Multi():
                return self._write(request, session)
            case Get():
                return self.nodes.get(request.path)
            case Children():
                return self.nodes.children(request.path)
            case AddWatch():
                session.watches[request.path] = None
            case RemoveWatch():
                session.watches.pop(request.path, None)
            case Sync():
                pass  # there is one server only
        return None

    def _write(self, multi: Multi, session: _Session) -> Answer | Refused:
        applied = self.nodes.multi(multi, session.id, self._clock.now_ms())
        if isinstance(applied, Refused):
            return applied
        what = " ".join(f"{change.value} {done.path}" for done, change in applied)
        self._loop.trace.record(HOST, f"commit {what}")
        self._tell([(change, done.path) for done, change in applied])
        return tuple(done for done, _ in applied)

    def _tell(self, changes: list[tuple[Change, str]]) -> None:
        for session in self._sessions.values():
            if session.connection is not None and session.watches:
                for change, path in changes:
                    if any(is_at_or_below(path, root) for root in session.watches):
                        session.connection.say(Changed(change, path))
