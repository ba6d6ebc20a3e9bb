"""Tree: the nodes of a metadata store with versions, sequence numbers and sessions. Pure; owns the rules, stores nothing.

Every store is this machine with a way to make its changes durable. `apply` does all operations or none, and returns what has
changed; the caller makes that durable and then tells the watchers. The rules are ZooKeeper's, as Pulsar's MetadataStore shows
them: a put makes missing parents with empty values; the number of a sequential node is the count of children that its parent
has had so far, in ten digits; an ephemeral node has no children and goes with its session.
Never in here: time, waiting, watchers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sortedcontainers import SortedDict

from metadata.paths import ROOT, check_path, join_path, split_path
from metadata.store import (
    ANY_VERSION,
    MUST_NOT_EXIST,
    BadVersion,
    Change,
    Delete,
    MetadataError,
    NoNode,
    NotEmpty,
    Notification,
    Operation,
    Put,
    Stat,
    Versioned,
)
from wire.record import record

DURABLE = 0
"""The session of nodes that outlive every session."""
WIDE = 1000
"""A node with so many children keeps their names in order: to put 100,000 names in order takes a tenth of a second."""


@record(frozen=True, slots=True)
class Node:
    """One version of a node. `session` is DURABLE or the session that an ephemeral node ends with."""

    value: bytes
    version: int
    created_ms: int
    modified_ms: int
    session: int = DURABLE


@record(frozen=True, slots=True)
class NodeChange:
    """A node before and after; None: it was, or is, not there."""

    path: str
    before: Node | None
    after: Node | None


@record(frozen=True, slots=True)
class CounterChange:
    """The next number under `parent`: told when a number was given, and as 0 when a parent went that had given one."""

    parent: str
    after: int


@dataclass(slots=True)
class Applied:
    """Result of `apply`: a stat for each Put (None for a Delete), and the changes in their order.

    `counters` are those worth keeping: a plain child moves its parent's counter too, and that may be forgotten, because a store
    that is loaded again counts at least the children that are there, and no number is given twice.
    `counters_before` is for `Tree.undo`.
    """

    stats: list[Stat | None] = field(default_factory=list)
    changes: list[NodeChange] = field(default_factory=list)
    counters: list[CounterChange] = field(default_factory=list)
    counters_before: list[tuple[str, int]] = field(default_factory=list)

    def notifications(self) -> list[Notification]:
        return [Notification(_kind(change), change.path) for change in self.changes]


def _kind(change: NodeChange) -> Change:
    if change.before is None:
        return Change.CREATED
    return Change.DELETED if change.after is None else Change.MODIFIED


class Tree:
    """All nodes. The root is always there, has version 0, and cannot be put or deleted."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {ROOT: Node(b"", 0, 0, 0)}
        self._children: dict[str, dict[str, None]] = {}
        self._counters: dict[str, int] = {}
        self._last_session = DURABLE

    @classmethod
    def loaded(cls, nodes: Iterable[tuple[str, Node]], counters: Mapping[str, int]) -> "Tree":
        """Tree from durable rows; a counter counts at least the children that are there."""
        tree = cls()
        for path, node in nodes:
            tree._link(path, node, keeps_order=False)
        for parent, names in tree._children.items():
            tree._counters[parent] = len(names)
            if len(names) > WIDE:
                tree._children[parent] = SortedDict(names)
        for parent, counter in counters.items():
            tree._set_counter(parent, max(counter, tree._counters.get(parent, 0)))
        return tree

    # -- reading

    def get(self, path: str) -> Versioned | None:
        check_path(path)
        node = self._nodes.get(path)
        return None if node is None else Versioned(node.value, _stat(path, node))

    def exists(self, path: str) -> bool:
        check_path(path)
        return path in self._nodes

    def children(self, path: str) -> list[str]:
        check_path(path)
        names = self._children.get(path, {})
        return list(names) if isinstance(names, SortedDict) else sorted(names)

    def session_paths(self, session: int) -> Iterator[str]:
        """Ephemeral nodes of a session; of every one for DURABLE."""
        for path, node in self._nodes.items():
            if node.session != DURABLE and session in (DURABLE, node.session):
                yield path

    def check_invariants(self) -> None:
        """Invariants: every node's parent is there and names it; counters are never behind; ephemeral nodes are leaves."""
        for path, node in self._nodes.items():
            if path != ROOT:
                parent, name = split_path(path)
                assert name in self._children[parent], path
                assert self._nodes[parent].session == DURABLE, path
            assert node.version >= 0, path
        for parent, names in self._children.items():
            assert names, parent
            assert parent in self._nodes, parent
            assert self._counters[parent] >= len(names), parent
            assert all(join_path(parent, name) in self._nodes for name in names), parent
        assert all(parent in self._nodes for parent in self._counters)

    # -- changing

    def open_session(self) -> int:
        self._last_session += 1
        return self._last_session

    def end_session(self, session: int, now_ms: int) -> Applied:
        """Remove the session's ephemeral nodes (of every session: DURABLE)."""
        return self.apply([Delete(path) for path in sorted(self.session_paths(session))], session, now_ms)

    def apply(self, operations: Sequence[Operation], session: int, now_ms: int) -> Applied:
        """All of them in order, or a MetadataError and nothing."""
        applied = Applied()
        try:
            for operation in operations:
                if isinstance(operation, Put):
                    applied.stats.append(self._put(operation, session, now_ms, applied))
                else:
                    self._delete(operation, applied)
                    applied.stats.append(None)
        except MetadataError:
            self.undo(applied)
            raise
        return applied

    def _put(self, put: Put, session: int, now_ms: int, applied: Applied) -> Stat:
        path = self._numbered(put.path) if put.sequential else put.path
        check_path(path)
        if path == ROOT:
            raise MetadataError("the root cannot be written")
        before = self._nodes.get(path)
        expected = MUST_NOT_EXIST if put.sequential else put.expected_version
        if not _version_fits(expected, before):
            raise BadVersion(f"{path}: expected version {expected}, found {_version_of(before)}")
        if before is None:
            after = Node(put.value, 0, now_ms, now_ms, session if put.ephemeral else DURABLE)
            self._make_parents(path, now_ms, applied)
        else:
            after = Node(put.value, before.version + 1, before.created_ms, now_ms, before.session)
        self._change(NodeChange(path, before, after), applied)
        if put.sequential:
            parent = split_path(path)[0]
            applied.counters.append(CounterChange(parent, self._counters[parent]))
        return _stat(path, after)

    def _numbered(self, prefix: str) -> str:
        if not prefix.startswith("/"):
            raise MetadataError(f"{prefix!r} is not a path")
        return f"{prefix}{self._counters.get(split_path(prefix)[0], 0):010d}"

    def _make_parents(self, path: str, now_ms: int, applied: Applied) -> None:
        missing = []
        parent = split_path(path)[0]
        while parent not in self._nodes:
            missing.append(parent)
            parent = split_path(parent)[0]
        if self._nodes[parent].session != DURABLE:
            raise MetadataError(f"{parent} is ephemeral: it cannot have children")
        for made in reversed(missing):
            self._change(NodeChange(made, None, Node(b"", 0, now_ms, now_ms)), applied)

    def _delete(self, delete: Delete, applied: Applied) -> None:
        path = delete.path
        check_path(path)
        before = self._nodes.get(path)
        if before is None:
            raise NoNode(path)
        if path == ROOT:
            raise MetadataError("the root cannot be deleted")
        if delete.expected_version not in (ANY_VERSION, before.version):
            raise BadVersion(f"{path}: expected version {delete.expected_version}, found {before.version}")
        if path in self._children:
            raise NotEmpty(path)
        if path in self._counters:
            applied.counters.append(CounterChange(path, 0))
        self._change(NodeChange(path, before, None), applied)

    def _change(self, change: NodeChange, applied: Applied) -> None:
        applied.changes.append(change)
        if change.after is None:
            self._unlink(change.path)
            self._count(change.path, 0, applied)
        elif change.before is None:
            self._link(change.path, change.after)
            parent = split_path(change.path)[0]
            self._count(parent, self._counters.get(parent, 0) + 1, applied)
        else:
            self._nodes[change.path] = change.after

    def _count(self, parent: str, after: int, applied: Applied) -> None:
        applied.counters_before.append((parent, self._counters.get(parent, 0)))
        self._set_counter(parent, after)

    def _set_counter(self, parent: str, value: int) -> None:
        if value:
            self._counters[parent] = value
        else:
            self._counters.pop(parent, None)

    def undo(self, applied: Applied) -> None:
        """Undo a change. Later ones have to be undone before."""
        for change in reversed(applied.changes):
            if change.before is None:
                self._unlink(change.path)
            elif change.after is None:
                self._link(change.path, change.before)
            else:
                self._nodes[change.path] = change.before
        for parent, before in reversed(applied.counters_before):
            self._set_counter(parent, before)

    def _link(self, path: str, node: Node, *, keeps_order: bool = True) -> None:
        self._nodes[path] = node
        parent, name = split_path(path)
        names = self._children.get(parent)
        if names is None:
            self._children[parent] = {name: None}
        else:
            names[name] = None
            if keeps_order and len(names) == WIDE + 1 and not isinstance(names, SortedDict):
                self._children[parent] = SortedDict(names)

    def _unlink(self, path: str) -> None:
        del self._nodes[path]
        parent, name = split_path(path)
        names = self._children[parent]
        del names[name]
        if not names:
            del self._children[parent]


def _stat(path: str, node: Node) -> Stat:
    return Stat(path, node.version, node.created_ms, node.modified_ms)


def _version_of(node: Node | None) -> int:
    return MUST_NOT_EXIST if node is None else node.version


def _version_fits(expected: int, node: Node | None) -> bool:
    return expected in (ANY_VERSION, _version_of(node))
