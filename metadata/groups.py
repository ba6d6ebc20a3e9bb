"""Group: the calls of one transaction of the embedded store, their changes, and the futures of its end.

Owns no tree and no file: `metadata.embedded` applies the calls, has the rows written, and answers. Each answer is given once.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from metadata.paths import split_path
from metadata.store import MetadataError, Notification, Operation, Stat
from metadata.tree import DURABLE, Applied, Node


@dataclass(frozen=True, slots=True)
class Call:
    """One commit of a caller, and its answer."""

    operations: Sequence[Operation]
    answer: "asyncio.Future[list[Stat | None]]"

    def fail(self, error: MetadataError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True)
class Group:
    """Calls that are committed together. Only the last state of each path is written."""

    nodes: dict[str, Node | None] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    notifications: list[Notification] = field(default_factory=list)
    nodes_added: int = 0
    _ends: "list[asyncio.Future[bool]]" = field(default_factory=list)

    @property
    def grows(self) -> bool:
        """Whether more durable nodes are made than removed."""
        return self.nodes_added > 0

    def add(self, call: Call, applied: Applied) -> None:
        self.calls.append(call)
        self.applied.append(applied)
        for change in applied.changes:
            self.touched.add(change.path)
            self.touched.add(split_path(change.path)[0])
            self.nodes_added += _is_durable(change.after) - _is_durable(change.before)
            if _is_durable(change.before) or _is_durable(change.after) or change.path in self.nodes:
                self.nodes[change.path] = change.after if _is_durable(change.after) else None
        for counter in applied.counters:
            self.counters[counter.parent] = counter.after
        self.notifications += applied.notifications()

    def end(self, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[bool]":
        """Future of whether the group is durable; False: it was taken back."""
        future: asyncio.Future[bool] = loop.create_future()
        self._ends.append(future)
        return future

    def answer(self) -> None:
        """The group is durable."""
        for call, applied in zip(self.calls, self.applied, strict=True):
            if not call.answer.done():
                call.answer.set_result(applied.stats)
        self._tell_end(True)

    def taken_back(self) -> None:
        """The group was taken back; its calls are answered elsewhere."""
        self._tell_end(False)

    def _tell_end(self, is_durable: bool) -> None:
        for future in self._ends:
            if not future.done():
                future.set_result(is_durable)


def _is_durable(node: Node | None) -> bool:
    return node is not None and node.session == DURABLE
