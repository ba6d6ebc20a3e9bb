"""The contract of every metadata store: a tree of versioned values with watches, as on ZooKeeper.

Paths are absolute, `/`-separated and not empty between slashes. A value has a version that starts at 0 and grows by one at
each put. A write returns after it is durable. Writes of one store to the same path, or to a node and one below it, take effect
in the order in which they were called.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from wire.record import record

ANY_VERSION = -2
"""Expected version: whatever it is, also absent."""
MUST_NOT_EXIST = -1
"""Expected version: the node is not there yet."""


class MetadataError(Exception):
    """A metadata operation could not be done."""


class NoNode(MetadataError):
    """The path is not there."""


class BadVersion(MetadataError):
    """The version expected is not the version there (MUST_NOT_EXIST: it exists)."""


class BadPath(MetadataError):
    """No node can have this path: a part of it is empty."""


class NotEmpty(MetadataError):
    """A node with children cannot be deleted."""


class StoreClosed(MetadataError):
    """The store is closed or has failed; nothing is written any more."""


class StoreUnavailable(MetadataError):
    """No answer within the time allowed; nothing was written."""


class StoreFull(StoreUnavailable):
    """The disk of the store has no room, or fails; nothing was written, and the same may be tried again later."""


class SessionExpired(MetadataError):
    """An ephemeral node was asked for in a session that is over; it is not there."""


class OutcomeUnknown(MetadataError):
    """The connection was lost under a write, and what is there now does not tell whether it took effect."""


@record(frozen=True, slots=True)
class Stat:
    """Stat of a node: its path as made (sequential nodes get their number), version and times in ms since the epoch."""

    path: str
    version: int
    created_ms: int
    modified_ms: int


@record(frozen=True, slots=True)
class Versioned:
    """A value with its stat."""

    value: bytes
    stat: Stat


class Change(Enum):
    """Change of a node."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


@record(frozen=True, slots=True)
class Notification:
    """A change of one node, told after it is durable, in the order of the changes."""

    change: Change
    path: str


@record(frozen=True, slots=True)
class Put:
    """Write a value, making the node and its parents (with empty values) where missing."""

    path: str
    value: bytes
    expected_version: int = ANY_VERSION
    ephemeral: bool = False
    sequential: bool = False


@record(frozen=True, slots=True)
class Delete:
    """Remove a node. ANY_VERSION of a node that is not there raises NoNode all the same."""

    path: str
    expected_version: int = ANY_VERSION


Operation = Put | Delete


def absent(path: str) -> tuple[Put, Delete]:
    """Operations by which a commit takes effect only if the node is not there (else BadVersion). No store has that alone: the
    node is made and removed in the same commit, and only its watchers are notified."""
    return Put(path, b"", MUST_NOT_EXIST), Delete(path)


class MetadataStore(Protocol):
    """A tree of versioned values. Watchers are called on the event loop and must not raise."""

    async def get(self, path: str) -> Versioned | None: ...
    async def children(self, path: str) -> list[str]:
        """Names of the children, sorted; empty when the node is not there."""

    async def exists(self, path: str) -> bool: ...
    async def put(
        self,
        path: str,
        value: bytes,
        expected_version: int = ANY_VERSION,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> Stat: ...
    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None: ...
    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        """All of them or none, in order; the stat of each Put, None for a Delete."""

    def watch(self, prefix: str, watcher: Callable[[Notification], None]) -> Callable[[], None]:
        """Tell of every change at or below `prefix`; returns the call that ends it."""

    async def close(self) -> None:
        """End the session: ephemeral nodes go. Closing twice is fine."""


class WritesByCommit:
    """`put` and `delete` of a `MetadataStore` that has `commit`."""

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        raise NotImplementedError

    async def put(
        self,
        path: str,
        value: bytes,
        expected_version: int = ANY_VERSION,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> Stat:
        (stat,) = await self.commit([Put(path, value, expected_version, ephemeral, sequential)])
        assert stat is not None
        return stat

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        await self.commit([Delete(path, expected_version)])
