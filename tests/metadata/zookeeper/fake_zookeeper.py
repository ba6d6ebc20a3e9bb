"""A ZooKeeper in virtual time, and sessions on it that lose their connection, their answers and their lives.

Written from ZooKeeper's rules and not from ours: nodes with zxids, parents that must be there, multi, ephemeral owners,
recursive watches that are forgotten with the connection. Requests and answers of a connection keep their order; a cut lets
through as many of the requests on their way as chance says, and no answer.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from metadata.paths import is_at_or_below, split_path
from metadata.store import Change
from metadata.zookeeper.requests import (
    ANY,
    AddWatch,
    Answer,
    Children,
    Code,
    ConnectionLost,
    Create,
    Done,
    Found,
    Get,
    Listed,
    Multi,
    NodeStat,
    Refused,
    Remove,
    RemoveWatch,
    Reply,
    Request,
    SessionEvents,
    SetData,
    Step,
    Sync,
)


@dataclass
class FakeNode:
    value: bytes
    stat: NodeStat
    children_so_far: int = 0


Nodes = dict[str, FakeNode]


class FakeZooKeeper:
    """The server: one tree, and the sessions it knows."""

    def __init__(self, rng: Random, timeout: float = 4.0) -> None:
        self.rng, self.timeout = rng, timeout
        self.nodes: Nodes = {"/": FakeNode(b"", NodeStat(0, 0, 0, 0, 0, 0))}
        self.zxid = 0
        self.sessions: list[FakeSession] = []
        self.is_up = True

    def open(self, events: SessionEvents) -> "FakeSession":
        session = FakeSession(self, events, len(self.sessions) + 1)
        self.sessions.append(session)
        return session

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def answer(self, request: Request, session: "FakeSession") -> Answer | Refused:
        match request:
            case Multi():
                return self._multi(request, session)
            case Get():
                node = self.nodes.get(request.path)
                return None if node is None else Found(node.value, node.stat)
            case Children():
                node = self.nodes.get(request.path)
                return None if node is None else Listed(tuple(self.names(request.path)), node.stat)
            case AddWatch():
                session.watches.add(request.path)
            case RemoveWatch():
                session.watches.discard(request.path)
            case Sync():
                pass  # there is one server only
        return None

    def names(self, path: str) -> list[str]:
        return [split_path(each)[1] for each in self.nodes if each != "/" and split_path(each)[0] == path]

    def _multi(self, multi: Multi, session: "FakeSession") -> Answer | Refused:
        before = {path: replace(node) for path, node in self.nodes.items()}
        self.zxid += 1
        done, changes = [], []
        for index, step in enumerate(multi.steps):
            code = self._refusal(step)
            if code is not None:
                self.nodes = before
                return Refused(code, index, code.name)
            answer, change = self._apply(step, session)
            done.append(answer)
            changes.append((change, answer.path))
        self._tell(changes)
        return tuple(done)

    def _refusal(self, step: Step) -> Code | None:
        if isinstance(step, Create):
            parent = self.nodes.get(split_path(step.path)[0])
            if parent is None:
                return Code.NO_NODE
            if parent.stat.owner:
                return Code.NO_CHILDREN_FOR_EPHEMERALS
            return Code.NODE_EXISTS if step.path in self.nodes and not step.sequential else None
        node = self.nodes.get(step.path)
        if node is None:
            return Code.NO_NODE
        if step.version not in (ANY, node.stat.version):
            return Code.BAD_VERSION
        return Code.NOT_EMPTY if isinstance(step, Remove) and self.names(step.path) else None

    def _apply(self, step: Step, session: "FakeSession") -> tuple[Done, Change]:
        now = self.now_ms()
        match step:
            case Create():
                parent = self.nodes[split_path(step.path)[0]]
                path = f"{step.path}{parent.children_so_far:010d}" if step.sequential else step.path
                parent.children_so_far += 1
                stat = NodeStat(self.zxid, self.zxid, 0, now, now, session.session_id if step.ephemeral else 0)
                self.nodes[path] = FakeNode(step.value, stat)
                return Done(path, stat), Change.CREATED
            case SetData():
                node = self.nodes[step.path]
                node.value = step.value
                node.stat = replace(node.stat, modified_zxid=self.zxid, version=node.stat.version + 1, modified_ms=now)
                return Done(step.path, node.stat), Change.MODIFIED
            case Remove():
                del self.nodes[step.path]
                return Done(step.path, None), Change.DELETED

    def _tell(self, changes: list[tuple[Change, str]]) -> None:
        for session in self.sessions:
            for change, path in changes:
                if any(is_at_or_below(path, root) for root in session.watches):
                    session.to_client(partial(session.events.changed, change, path))

    def expire(self, session: "FakeSession") -> None:
        """Expire the session: its ephemeral nodes go. The client learns it when it connects."""
        if session.is_alive:
            session.is_alive = False
            session.cut()
            self.zxid += 1
            gone = [path for path, node in self.nodes.items() if node.stat.owner == session.session_id]
            for path in gone:
                del self.nodes[path]
            self._tell([(Change.DELETED, path) for path in gone])


@dataclass(eq=False)
class FakeSession:
    """Satisfies `ZooKeeperSession`. Connects by itself after a while; `cut` and `FakeZooKeeper.expire` are the faults."""

    server: FakeZooKeeper
    events: SessionEvents
    session_id: int
    last_zxid: int = 0
    zxid_when_lost: int = 0
    heard_at: float = 0.0
    watches: set[str] = field(default_factory=set)
    is_alive: bool = True
    """Whether the session lives at the server."""
    is_connected: bool = False
    _is_over: bool = False
    _line_up: deque[tuple[Request, Reply]] = field(default_factory=deque)
    _unanswered: deque[Reply] = field(default_factory=deque)
    _line_down: deque[Callable[[], None]] = field(default_factory=deque)
    _lost: list[Reply] = field(default_factory=list)
    """Requests whose end the client has not noticed yet."""
    _connection: int = 0
    _expiry: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self._later(self._connect)

    @property
    def timeout(self) -> float:
        return self.server.timeout

    def _later(self, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(self.server.rng.uniform(0.0001, 0.05), call)

    def _connect(self) -> None:
        if self._is_over or self.is_connected:
            return
        if not self.server.is_up:
            self._later(self._connect)
        elif not self.is_alive:
            self._is_over = True
            self.events.expired()
        else:
            if self._expiry is not None:
                self._expiry.cancel()
            self.is_connected = True
            self.heard_at = asyncio.get_running_loop().time()
            self.events.connected()
            self._ping(self._connection)

    def _ping(self, connection: int) -> None:
        if self._connection == connection and self.is_connected:
            self.heard_at = asyncio.get_running_loop().time()
            asyncio.get_running_loop().call_later(self.timeout / 3, self._ping, connection)

    def send(self, request: Request, reply: Reply) -> None:
        if not self.is_connected:
            self._lost.append(reply)
            return
        self._line_up.append((request, reply))
        connection = self._connection
        self._later(lambda: self._arrive(connection))

    def _arrive(self, connection: int) -> None:
        if connection == self._connection and self._line_up:
            request, reply = self._line_up.popleft()
            self._unanswered.append(reply)
            answer = self.server.answer(request, self)
            zxid = self.server.zxid
            self.to_client(lambda: self._answered(answer, zxid))

    def _answered(self, answer: Answer | Refused, zxid: int) -> None:
        self.last_zxid = zxid
        self._unanswered.popleft()(answer)

    def to_client(self, call: Callable[[], None]) -> None:
        self._line_down.append(call)
        connection = self._connection
        self._later(lambda: self._line_down.popleft()() if connection == self._connection else None)

    def cut(self, hears_after: float = 0.0) -> None:
        """The connection breaks; `hears_after` seconds pass before the client notices."""
        if not self.is_connected:
            return
        let_through = self.server.rng.randint(0, len(self._line_up))
        self._lost += [*self._unanswered, *(reply for _, reply in self._line_up)]
        self.watches.clear()
        for request, _ in list(self._line_up)[:let_through]:
            self.server.answer(request, self)
        self.watches.clear()
        self._connection += 1
        self.zxid_when_lost = self.last_zxid
        self.is_connected = False
        self._line_up.clear()
        self._unanswered.clear()
        self._line_down.clear()
        loop = asyncio.get_running_loop()
        if self.is_alive:
            self._expiry = loop.call_later(self.timeout, self.server.expire, self)
        loop.call_later(hears_after, self._notice)

    def _notice(self) -> None:
        lost, self._lost = self._lost, []
        for reply in lost:
            reply(ConnectionLost("cut"))
        if not self._is_over:
            self.events.disconnected()
        loop = asyncio.get_running_loop()
        loop.call_later(self.server.rng.choice([0.01, 0.5, 3.0, 6.0]), self._connect)

    async def close(self) -> None:
        self._is_over = True
        self.cut()
        self.server.expire(self)
