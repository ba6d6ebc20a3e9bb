"""EmbeddedStore: the metadata store of one process, a tree in memory that SQLite makes durable (docs/adr/0003).

A write takes effect in the tree at once, so that later ones are judged by it, and is answered after its group is committed: all
writes that wait when a commit starts go into one transaction. A read of changes that are not durable yet waits for them, and so
does a refusal, because no caller may act on what a crash could undo. Watchers are notified of a change after its commit.
A transaction that the disk refuses (it is full, or fails) is taken back, with all calls applied after it. The calls in it
are then judged again and committed one at a time, in their order: those that the disk refuses alone fail with StoreFull. Rows
keep room for themselves (`Rows.keep_room`). The last half of that room is for calls that add no node: ending a ledger, saving
a cursor and deleting go on while a call that makes nodes is refused. A transaction that fails otherwise ends the store: every
pending and later call fails with StoreClosed.
Ephemeral nodes are in memory only; the session is the process.
Bounds: one waiting operation per awaiting caller.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from metadata.groups import Call, Group
from metadata.sqlite_rows import LoadedRows, Rows, RowsFailed, RowsRefused, SqliteRows
from metadata.store import (
    MetadataError,
    Notification,
    Operation,
    Stat,
    StoreClosed,
    StoreFull,
    Versioned,
    WritesByCommit,
)
from metadata.tree import Tree
from metadata.watches import Watches
from ports.clock import Clock, RealClock
from ports.logs import line

T = TypeVar("T")
_log = logging.getLogger(__name__)

KEEP_SECONDS = 1.0
"""Between two looks whether room can be kept again."""


class EmbeddedStore(WritesByCommit):
    """Satisfies `metadata.store.MetadataStore`. `failed` is called once when the store has ended by itself."""

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
        self._waiting = Group()
        self._flying: Group | None = None
        self._singly: deque[Call] = deque()
        """Calls after a refused transaction, in their order: not judged yet. Later calls follow them."""
        self._committer: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed_because = ""
        self._refused_because, self._is_growth_refused = "", False
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
        return await self._durable(path, self._tree.get)

    async def children(self, path: str) -> list[str]:
        return await self._durable(path, self._tree.children)

    async def exists(self, path: str) -> bool:
        return await self._durable(path, self._tree.exists)

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        while True:
            self._check_open()
            call = Call(operations, self._loop.create_future())
            if self._singly:
                self._singly.append(call)
                return await call.answer
            try:
                applied = self._tree.apply(operations, self._session, self._clock.now_ms())
            except MetadataError:
                if await self._are_all_durable():
                    raise
                continue
            self._waiting.add(call, applied)
            self._start()
            return await call.answer

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
            _log.warning(line("metadata file not closed cleanly; answered writes are in its log", reason=error))

    async def _durable(self, path: str, look: Callable[[str], T]) -> T:
        """Result of `look`, once all that it saw is durable; it looks again after a transaction was taken back."""
        while True:
            self._check_open()
            found = look(path)
            if path in self._waiting.touched:
                is_durable = await self._waiting.end(self._loop)
            elif self._flying is not None and path in self._flying.touched:
                is_durable = await self._flying.end(self._loop)
            else:
                return found
            if is_durable:
                return found

    async def _are_all_durable(self) -> bool:
        """Whether all that was applied until now became durable; False: some was taken back."""
        if self._waiting.calls:
            return await self._waiting.end(self._loop)
        if self._flying is not None:
            return await self._flying.end(self._loop)
        return True

    def _start(self) -> None:
        if self._committer is None:
            self._committer = self._loop.create_task(self._commit_groups())

    def _next_group(self) -> Group | None:
        while self._singly:
            call, group = self._singly.popleft(), Group()
            try:
                group.add(call, self._tree.apply(call.operations, self._session, self._clock.now_ms()))
            except MetadataError as error:
                call.fail(error)  # all that it was judged by is durable
            else:
                return group
        group, self._waiting = self._waiting, Group()
        return group if group.calls else None

    async def _commit_groups(self) -> None:
        while (group := self._next_group()) is not None:
            self._flying = group
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

    async def _write(self, group: Group) -> None:
        """RowsRefused, RowsFailed."""
        if not (group.nodes or group.counters):
            return
        await self._rows.write(group.nodes, group.counters, grows=group.grows)
        if self._refused_because and (group.grows or not self._is_growth_refused):
            self._refused_because, self._is_growth_refused = "", False
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
        except RowsFailed as error:  # the writer gets the error
            _log.info(line("no room could be kept for the metadata", reason=error))
        finally:
            self._keeping = None

    def _take_back(self, reason: str) -> None:
        """Undo all that is not durable, the youngest first: waiting calls were judged by those in flight. A call
        that flew alone fails; the others are tried one at a time."""
        if not self._refused_because:
            _log.error(line("metadata not written", reason=reason))
        flying, waiting = self._flying, self._waiting
        assert flying is not None
        self._refused_because, self._is_growth_refused = reason, flying.grows
        self._flying, self._waiting = None, Group()
        for group in (waiting, flying):
            for applied in reversed(group.applied):
                self._tree.undo(applied)
            group.taken_back()
        if len(flying.calls) == 1:
            flying.calls.pop().fail(StoreFull(reason))
        self._singly.extendleft(reversed([*flying.calls, *waiting.calls]))

    @property
    def refused_because(self) -> str:
        """Why the last write was refused; empty: it was not."""
        return self._refused_because

    def _end(self, reason: str) -> None:
        self._closed_because = reason
        _log.error(line("metadata store ended", reason=reason))
        flying, waiting = self._flying, self._waiting
        for group in (flying, waiting):
            if group is not None:
                group.taken_back()
        for call in (*(flying.calls if flying else ()), *waiting.calls, *self._singly):
            call.fail(StoreClosed(reason))
        self._waiting = Group()
        self._singly.clear()
        if self._failed is not None:
            self._failed(reason)

    def _check_open(self) -> None:
        if self._closed_because:
            raise StoreClosed(self._closed_because)
