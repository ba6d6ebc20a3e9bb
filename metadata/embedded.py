"""EmbeddedStore: the metadata store of one process, a tree in memory that SQLite makes durable (docs/adr/0003).

A write takes effect in the tree at once, so that later ones are judged by it, and is answered after its group is committed: all
that waits when a commit starts goes into one transaction. A read that touches what is not durable yet waits for it, and so
does a refusal, because nobody may act on what a crash could undo. Watchers hear of a change after its commit.
A commit that the disk refuses (it is full, or fails) is taken back, with all that was applied after it: those calls fail with
StoreFull, and the store goes on. Rows keep room for themselves (`Rows.keep_room`), so that this is rare. A commit that fails
otherwise ends the store: every pending and later call fails with StoreClosed.
Ephemeral nodes are in memory only; the session is the process.
Bounds: what waits is one operation per awaiting caller.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from metadata.paths import split_path
from metadata.sqlite_rows import LoadedRows, Rows, RowsFailed, RowsRefused, SqliteRows
from metadata.store import (
    MetadataError,
    Notification,
    Operation,
    Stat,
    StoreClosed,
    StoreFull,
    Versioned,
)
from metadata.tree import DURABLE, Applied, Node, NodeChange, Tree
from metadata.watches import Watches
from metadata.writes import WritesByCommit
from ports.clock import Clock, RealClock
from ports.logs import line

_log = logging.getLogger(__name__)

KEEP_SECONDS = 1.0
"""Between two looks whether room can be kept again."""


@dataclass(slots=True)
class _Group:
    """What goes into one transaction, and who waits for it. Of each path only the last state is written."""

    nodes: dict[str, Node | None] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    applied: list[Applied] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    notifications: list[Notification] = field(default_factory=list)
    answers: list[tuple["asyncio.Future[Any]", Any]] = field(default_factory=list)

    def add(self, applied: Applied) -> None:
        self.applied.append(applied)
        for change in applied.changes:
            self.touched.add(change.path)
            self.touched.add(split_path(change.path)[0])
            if _is_durable(change) or change.path in self.nodes:
                self.nodes[change.path] = change.after if change.after and change.after.session == DURABLE else None
        for counter in applied.counters:
            self.counters[counter.parent] = counter.after
        self.notifications += applied.notifications()

    def answer(self) -> None:
        for future, result in self.answers:
            if not future.done():
                future.set_result(result)

    def refuse(self, kind: type[MetadataError], reason: str) -> None:
        for future, _ in self.answers:
            if not future.done():
                future.set_exception(kind(reason))


def _is_durable(change: NodeChange) -> bool:
    return any(node is not None and node.session == DURABLE for node in (change.before, change.after))


class EmbeddedStore(WritesByCommit):
    """Satisfies `metadata.store.MetadataStore`. `failed` is told once when the store has ended by itself."""

    def __init__(
        self,
        rows: Rows,
        loaded: LoadedRows,
        clock: Clock,
        failed: Callable[[str], None] | None = None,
    ) -> None:
        self._rows, self._clock, self._failed = rows, clock, failed
        self._loop = asyncio.get_running_loop()
        self._tree = Tree.loaded(loaded.nodes, loaded.counters)
        self._session = self._tree.open_session()
        self._watches = Watches()
        self._waiting = _Group()
        self._flying: _Group | None = None
        self._committer: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed_because = ""
        self._refused_because = ""
        self._keeping: asyncio.Task[None] | None = None
        self._keep_timer: asyncio.TimerHandle | None = self._loop.call_later(KEEP_SECONDS, self._keep_room)

    @classmethod
    async def open(
        cls,
        directory: str,
        clock: Clock | None = None,
        failed: Callable[[str], None] | None = None,
    ) -> "EmbeddedStore":
        """The store in `directory`, made where missing. MetadataError says why it cannot be opened."""
        rows, loaded = await SqliteRows.open(directory)
        return cls(rows, loaded, clock or RealClock(), failed)

    async def get(self, path: str) -> Versioned | None:
        self._check_open()
        found = self._tree.get(path)
        await self._until_durable(path)
        return found

    async def children(self, path: str) -> list[str]:
        self._check_open()
        found = self._tree.children(path)
        await self._until_durable(path)
        return found

    async def exists(self, path: str) -> bool:
        self._check_open()
        found = self._tree.exists(path)
        await self._until_durable(path)
        return found

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        self._check_open()
        try:
            applied = self._tree.apply(operations, self._session, self._clock.now_ms())
        except MetadataError:
            await self._until_all_durable()
            raise
        self._waiting.add(applied)
        stats: list[Stat | None] = await self._join(self._waiting, applied.stats)
        return stats

    def watch(self, prefix: str, watcher: Callable[[Notification], None]) -> Callable[[], None]:
        return self._watches.add(prefix, watcher)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._closed_because = self._closed_because or "the metadata store is closed"
        if self._keep_timer is not None:
            self._keep_timer.cancel()
            self._keep_timer = None
        if self._committer is not None:
            await self._committer
        if self._keeping is not None:
            await self._keeping
        self._watches.tell(self._tree.end_session(self._session, self._clock.now_ms()).notifications())
        try:
            await self._rows.close()
        except RowsFailed as error:
            _log.warning(line("metadata file not closed cleanly; what was answered is in its log", reason=error))

    def _join(self, group: _Group, result: Any) -> "asyncio.Future[Any]":
        """`result`, once the group is durable."""
        future: asyncio.Future[Any] = self._loop.create_future()
        group.answers.append((future, result))
        if self._committer is None:
            self._committer = self._loop.create_task(self._commit_groups())
        return future

    async def _until_durable(self, path: str) -> None:
        if path in self._waiting.touched:
            await self._join(self._waiting, None)
        elif self._flying is not None and path in self._flying.touched:
            await self._join(self._flying, None)

    async def _until_all_durable(self) -> None:
        if self._waiting.answers:
            await self._join(self._waiting, None)
        elif self._flying is not None:
            await self._join(self._flying, None)

    async def _commit_groups(self) -> None:
        while self._waiting.answers:
            group = self._flying = self._waiting
            self._waiting = _Group()
            try:
                await self._write(group)
            except RowsRefused as error:
                self._take_back(f"the metadata cannot be written, make room on its disk: {error}")
                continue
            except RowsFailed as error:
                self._end(f"the metadata store failed and is closed: {error}")
                break
            except Exception as error:
                self._end(f"the metadata store is closed by a bug: {error!r}")
                raise
            self._watches.tell(group.notifications)
            group.answer()
        self._flying = self._committer = None

    async def _write(self, group: _Group) -> None:
        """RowsRefused, RowsFailed."""
        if not (group.nodes or group.counters):
            return
        await self._rows.write(group.nodes, group.counters)
        if self._refused_because:
            self._refused_because = ""
            _log.warning(line("the metadata is written again"))
        if self._keep_timer is None and not self._closed_because:
            self._keep_timer = self._loop.call_later(KEEP_SECONDS, self._keep_room)

    def _keep_room(self) -> None:
        """A while after the store was opened, and after something was written."""
        self._keep_timer = None
        if self._keeping is None:
            self._keeping = self._loop.create_task(self._keep_room_now(), name="metadata room")

    async def _keep_room_now(self) -> None:
        try:
            await self._rows.keep_room()
        except RowsFailed as error:  # whoever writes is told
            _log.info(line("no room could be kept for the metadata", reason=error))
        finally:
            self._keeping = None

    def _take_back(self, reason: str) -> None:
        """What is not durable never was: what waits was judged by what flew, so all of it goes, the youngest first."""
        if not self._refused_because:
            _log.error(line("metadata not written", reason=reason))
        self._refused_because = reason
        waiting, self._waiting = self._waiting, _Group()
        for group in (waiting, self._flying):
            if group is not None:
                for applied in reversed(group.applied):
                    self._tree.undo(applied)
                group.refuse(StoreFull, reason)

    @property
    def refused_because(self) -> str:
        """Why the last write was refused; empty: it was not."""
        return self._refused_because

    def _end(self, reason: str) -> None:
        self._closed_because = reason
        _log.error(line("metadata store ended", reason=reason))
        for group in (self._flying, self._waiting):
            if group is not None:
                group.refuse(StoreClosed, reason)
        self._waiting = _Group()
        if self._failed is not None:
            self._failed(reason)

    def _check_open(self) -> None:
        if self._closed_because:
            raise StoreClosed(self._closed_because)
