"""Requests to ZooKeeper, its answers, and the port between the store and the session that carries both.

Names and codes are ZooKeeper's (`KeeperException.Code`); paths are below the store's root (chroot). Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from metadata.store import Change

ANY = -1
"""ZooKeeper's version that fits every version."""


@dataclass(frozen=True, slots=True)
class NodeStat:
    """The transactions (zxid) that made and last wrote a node, version, times in ms, the session it ends with (0: none)."""

    created_zxid: int
    modified_zxid: int
    version: int
    created_ms: int
    modified_ms: int
    owner: int


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node; NODE_EXISTS, NO_NODE when its parent is not there. A sequential one gets ten digits after its path."""

    path: str
    value: bytes
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Write a node that is there; NO_NODE, BAD_VERSION."""

    path: str
    value: bytes
    version: int = ANY


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a node; NO_NODE, BAD_VERSION, NOT_EMPTY."""

    path: str
    version: int = ANY


Step = Create | SetData | Remove


@dataclass(frozen=True, slots=True)
class Multi:
    """All steps or none. Answer: a `Done` for each; refused with the step at fault."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Get:
    """Answer: `Found`, or None when it is not there."""

    path: str


@dataclass(frozen=True, slots=True)
class Children:
    """Answer: `Listed`, or None when the node is not there."""

    path: str


@dataclass(frozen=True, slots=True)
class AddWatch:
    """A persistent recursive watch (ZooKeeper 3.6): every change at or below the path while connected. Answer: None."""

    path: str


@dataclass(frozen=True, slots=True)
class RemoveWatch:
    """End an AddWatch. Answer: None, also when there was none."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """Sync: later requests are answered by a server that has all earlier writes. Answer: None."""

    path: str


Request = Multi | Get | Children | AddWatch | RemoveWatch | Sync


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a step: the path (with its number) and the stat; no stat after a Remove."""

    path: str
    stat: NodeStat | None


@dataclass(frozen=True, slots=True)
class Found:
    """A value and its stat."""

    value: bytes
    stat: NodeStat


@dataclass(frozen=True, slots=True)
class Listed:
    """The names of a node's children, unsorted, and the node's own stat."""

    names: tuple[str, ...]
    stat: NodeStat


Answer = tuple[Done, ...] | Found | Listed | None


class Code(IntEnum):
    """Refusals that mean something here; every other code is OTHER."""

    OTHER = 0
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111


class Refused(Exception):
    """ZooKeeper said no, to the step at `index`; `text` names its code."""

    def __init__(self, code: Code, index: int, text: str) -> None:
        super().__init__(text)
        self.code, self.index, self.text = code, index, text


class ConnectionLost(Exception):
    """No answer came, and whether the request took effect is not known."""


Reply = Callable[[Answer | Exception], None]


class SessionEvents(Protocol):
    """Listener of a session: called on the event loop, in the order of the server's messages, answers included."""

    def connected(self) -> None: ...
    def disconnected(self) -> None: ...
    def expired(self) -> None:
        """The session is over for good; nothing more will be told of it."""

    def changed(self, change: Change, path: str) -> None: ...


class ZooKeeperSession(Protocol):
    """The port: one session, which connects again by itself until it is expired or closed."""

    @property
    def session_id(self) -> int:
        """0 until it was connected first."""

    @property
    def last_zxid(self) -> int:
        """The newest transaction that an answer has shown."""

    @property
    def zxid_when_lost(self) -> int:
        """`last_zxid` when the connection was last lost: answers of the next one do not count yet."""

    @property
    def heard_at(self) -> float:
        """Time of the server's last message, in seconds of the loop's clock (0: never)."""

    @property
    def timeout(self) -> float:
        """Seconds of silence after which the server ends the session, as agreed with it."""

    def send(self, request: Request, reply: Reply) -> None:
        """Requests are answered in the order of the calls: `reply` gets an Answer, Refused or ConnectionLost."""

    async def close(self) -> None:
        """End the session, or give up on it when there is no connection."""


OpenSession = Callable[[SessionEvents], ZooKeeperSession]
