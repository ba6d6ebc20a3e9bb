"""Nodes: what a ZooKeeper keeps, by ZooKeeper's rules and apart from our stores: zxids, parents that must be there, multis.

Pure: knows no connection and no time but the one it is told. Ephemeral nodes name the session that owns them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from metadata.paths import ROOT, split_path
from metadata.store import Change
from metadata.zookeeper.requests import ANY, Code, Create, Done, Found, Listed, Multi, NodeStat, Refused, Remove, SetData, Step


@dataclass(slots=True)
class ZooKeeperNode:
    """`children_so_far` numbers sequential children."""

    value: bytes
    stat: NodeStat
    children_so_far: int = 0


class Nodes:
    """One tree. Writes are durable at once."""

    def __init__(self) -> None:
        self.zxid = 0
        self._nodes: dict[str, ZooKeeperNode] = {ROOT: ZooKeeperNode(b"", NodeStat(0, 0, 0, 0, 0, 0))}
        self._names: dict[str, dict[str, None]] = {ROOT: {}}
        self._undo: list[Callable[[], None]] = []

    def get(self, path: str) -> Found | None:
        node = self._nodes.get(path)
        return None if node is None else Found(node.value, node.stat)

    def children(self, path: str) -> Listed | None:
        node = self._nodes.get(path)
        return None if node is None else Listed(tuple(self._names[path]), node.stat)

    def multi(self, multi: Multi, session_id: int, now_ms: int) -> tuple[tuple[Done, Change], ...] | Refused:
        """All steps, or none and why."""
        self.zxid += 1
        self._undo.clear()
        done = []
        for index, step in enumerate(multi.steps):
            code = self._refusal(step)
            if code is not None:
                for undo in reversed(self._undo):
                    undo()
                return Refused(code, index, code.name)
            done.append(self._apply(step, session_id, now_ms))
        return tuple(done)

    def end_session(self, session_id: int) -> list[str]:
        """Deletes the session's ephemeral nodes and returns their paths."""
        gone = [path for path, node in self._nodes.items() if node.stat.owner == session_id]
        self.zxid += 1
        for path in gone:
            self._unlink(path)
        return gone

    def _refusal(self, step: Step) -> Code | None:
        if isinstance(step, Create):
            parent = self._nodes.get(split_path(step.path)[0])
            if parent is None:
                return Code.NO_NODE
            if parent.stat.owner:
                return Code.NO_CHILDREN_FOR_EPHEMERALS
            return Code.NODE_EXISTS if step.path in self._nodes and not step.sequential else None
        node = self._nodes.get(step.path)
        if node is None:
            return Code.NO_NODE
        if step.version not in (ANY, node.stat.version):
            return Code.BAD_VERSION
        return Code.NOT_EMPTY if isinstance(step, Remove) and self._names[step.path] else None

    def _apply(self, step: Step, session_id: int, now_ms: int) -> tuple[Done, Change]:
        match step:
            case Create():
                parent = self._nodes[split_path(step.path)[0]]
                path = f"{step.path}{parent.children_so_far:010d}" if step.sequential else step.path
                parent.children_so_far += 1  # stays when the multi is undone, as numbers that were refused do
                stat = NodeStat(self.zxid, self.zxid, 0, now_ms, now_ms, session_id if step.ephemeral else 0)
                self._link(path, ZooKeeperNode(step.value, stat))
                self._undo.append(lambda: self._unlink(path))
                return Done(path, stat), Change.CREATED
            case SetData():
                node = self._nodes[step.path]
                self._undo.append(lambda: self._nodes.__setitem__(step.path, node))
                stat = replace(node.stat, modified_zxid=self.zxid, version=node.stat.version + 1, modified_ms=now_ms)
                self._nodes[step.path] = ZooKeeperNode(step.value, stat, node.children_so_far)
                return Done(step.path, stat), Change.MODIFIED
            case Remove():
                removed = self._nodes[step.path]
                self._unlink(step.path)
                self._undo.append(lambda: self._link(step.path, removed))
                return Done(step.path, None), Change.DELETED

    def _link(self, path: str, node: ZooKeeperNode) -> None:
        parent, name = split_path(path)
        self._nodes[path] = node
        self._names[path] = {}
        self._names[parent][name] = None

    def _unlink(self, path: str) -> None:
        parent, name = split_path(path)
        del self._nodes[path], self._names[path], self._names[parent][name]
