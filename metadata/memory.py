"""MemoryStore: a metadata store that is the tree alone. For tests, and for simulations, where the tree outlives a process.

Several stores may share one `SharedTree`, as clients share a ZooKeeper: each is a session. Every write takes effect at once and
is answered a little later.
"""

import asyncio
from collections.abc import Callable, Sequence

from metadata.sessions import SessionListener
from metadata.store import Notification, Operation, Stat, StoreClosed, Versioned, WritesByCommit
from metadata.tree import DURABLE, Tree
from metadata.watches import Watches
from ports.clock import Clock


class SharedTree:
    """A tree and its watches: what lives on when a process that used it is gone."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.watches = Watches()

    def end_session(self, session: int, now_ms: int) -> None:
        """End a session, as when its time is out: its ephemeral nodes go, and watchers are notified."""
        self.watches.tell(self.tree.end_session(session, now_ms).notifications())


class MemoryStore(WritesByCommit):
    """A session on a tree; satisfies `metadata.store.MetadataStore`.

    `alone`: no other store uses the tree, so that nodes left by earlier sessions end now, as in the embedded store.
    `answer_delay`: seconds (asked per write) between a write and its answer; answers keep the order of the writes.
    """

    def __init__(
        self,
        clock: Clock,
        shared: SharedTree | None = None,
        *,
        alone: bool = True,
        answer_delay: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._shared = shared or SharedTree()
        self._tree = self._shared.tree
        if alone:
            self._tree.end_session(DURABLE, clock.now_ms())
        self._session = self._tree.open_session()
        self._answer_delay = answer_delay
        self._answers = asyncio.Lock()
        self._closed = False

    @property
    def session(self) -> int:
        return self._session

    async def get(self, path: str) -> Versioned | None:
        self._check_open()
        return self._tree.get(path)

    async def children(self, path: str) -> list[str]:
        self._check_open()
        return self._tree.children(path)

    async def exists(self, path: str) -> bool:
        self._check_open()
        return self._tree.exists(path)

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        self._check_open()
        applied = self._tree.apply(operations, self._session, self._clock.now_ms())
        self._shared.watches.tell(applied.notifications())
        if self._answer_delay is None:
            await asyncio.sleep(0)
        else:
            async with self._answers:
                await asyncio.sleep(self._answer_delay())
        return applied.stats

    def watch(self, prefix: str, watcher: Callable[[Notification], None]) -> Callable[[], None]:
        return self._shared.watches.add(prefix, watcher)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._shared.end_session(self._session, self._clock.now_ms())

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the metadata store is closed")


class OneSession:
    """`Sessions` of a store whose session is the process: nothing ever happens to it."""

    def watch_session(self, listener: SessionListener) -> Callable[[], None]:
        return lambda: None
