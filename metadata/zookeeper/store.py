"""ZooKeeperStore: the metadata contract on ZooKeeper. The driver of the pure machines beside it, over the port in `requests`.

Requests wait while there is no connection, until their time is out. Reads are asked again after a lost connection; the
outcome of a write is found out first (`outcome`). The store outlives its sessions: after an expiry the next one is
opened, watches are set again and missed changes are told; ephemeral nodes are gone then, and listeners are notified
(`metadata.sessions`). Bounds: one request per awaiting caller, of which REQUESTS_MAX are on their way; WALK_MAX listings of
the watched trees beside them.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial

from metadata.paths import ROOT, check_path
from metadata.sessions import SessionListener
from metadata.store import (
    Change,
    Delete,
    MetadataError,
    Notification,
    Operation,
    OutcomeUnknown,
    Put,
    SessionExpired,
    Stat,
    StoreClosed,
    StoreUnavailable,
    Versioned,
    WritesByCommit,
)
from metadata.watches import Watches
from metadata.zookeeper.commit_plan import Beliefs, Plan, learn, make_plan, stat_of
from metadata.zookeeper.requests import (
    Answer,
    Children,
    ConnectionLost,
    Found,
    Get,
    Listed,
    Multi,
    OpenSession,
    Refused,
    Request,
    Sync,
)
from metadata.zookeeper.session_driver import SessionDriver
from metadata.zookeeper.watched_trees import FollowedTrees
from metadata.zookeeper.write_order import Turn, WriteOrder
from metadata.zookeeper.write_outcome import Outcome, settle

_log = logging.getLogger(__name__)

PLANS_MAX = 10
"""Plans of one commit; each further one means that another client made or removed nodes meanwhile."""
REQUESTS_MAX = 1000
COMMIT_BYTES_MAX = 0xFFFFF - 4096
"""ZooKeeper ends the connection of a client that sends more (jute.maxbuffer); the rest is for what surrounds the steps."""
_RESERVED = "zookeeper"
"""ZooKeeper's own node below its root."""


class ZooKeeperStore(WritesByCommit):
    """Satisfies `metadata.store.MetadataStore` and `metadata.sessions.Sessions`. StoreUnavailable after `timeout_seconds`."""

    def __init__(self, open_session: OpenSession, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._watches = Watches()
        self._sessions = SessionDriver(open_session, self._resume, self._changed)
        self._trees = FollowedTrees(self._sessions, self._watches.tell)
        self._order = WriteOrder()
        self._turns: dict[Turn, asyncio.Future[None]] = {}
        self._slots = asyncio.Semaphore(REQUESTS_MAX)
        self._writing: dict[asyncio.Task[object], None] = {}
        self._closed = False

    @classmethod
    async def open(
        cls, open_session: OpenSession, timeout_seconds: float = 30.0, servers: str = "ZooKeeper"
    ) -> "ZooKeeperStore":
        """Once connected. StoreUnavailable when no server answers in time."""
        store = cls(open_session, timeout_seconds)
        try:
            await store._sessions.until_connected(asyncio.get_running_loop().time() + timeout_seconds)
        except TimeoutError:
            await store.close()
            raise StoreUnavailable(
                f"no answer from {servers} in {timeout_seconds:g} s: is it running there? `interpulse zookeeper` starts one"
            ) from None
        return store

    @property
    def session_id(self) -> int:
        return self._sessions.session_id

    # Reading

    async def get(self, path: str) -> Versioned | None:
        found = await self._read(Get(path))
        if not isinstance(found, Found):
            return None
        stat = stat_of(path, found.stat)
        assert stat is not None
        return Versioned(found.value, stat)

    async def children(self, path: str) -> list[str]:
        listed = await self._read(Children(path))
        names = listed.names if isinstance(listed, Listed) else ()
        return sorted(name for name in names if path != ROOT or name != _RESERVED)

    async def exists(self, path: str) -> bool:
        return await self._read(Get(path)) is not None

    async def _read(self, request: Get | Children) -> Answer:
        self._check_open()
        check_path(request.path)
        return await self._ask_until_answered(request, self._deadline())

    # Writing

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        self._check_open()
        size = make_plan(operations, {}).size_bytes
        if size > COMMIT_BYTES_MAX:
            raise MetadataError(f"{operations[0].path}: a write of {size} bytes; ZooKeeper takes {COMMIT_BYTES_MAX} at once")
        task = asyncio.current_task()
        assert task is not None
        self._writing[task] = None
        turn = self._order.join(operation.path for operation in operations)
        try:
            return await self._commit_in_turn(turn, operations)
        finally:
            self._writing.pop(task, None)
            for next_turn in self._order.leave(turn):
                if not self._turns[next_turn].done():
                    self._turns[next_turn].set_result(None)

    async def _commit_in_turn(self, turn: Turn, operations: Sequence[Operation]) -> list[Stat | None]:
        session_id, deadline = self.session_id, self._deadline()
        if not turn.has_come:
            self._turns[turn] = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._turns[turn]
            except TimeoutError:
                raise StoreUnavailable(f"{operations[0].path}: earlier writes did not end in {self._timeout:g} s") from None
            finally:
                del self._turns[turn]
        return await self._write(operations, session_id, deadline)

    async def _write(self, operations: Sequence[Operation], session_id: int, deadline: float) -> list[Stat | None]:
        """`session_id` is that of the call: an ephemeral node is made in it or not at all."""
        beliefs: Beliefs = {}
        plans = 0
        while plans < PLANS_MAX:
            plan = make_plan(operations, beliefs)
            await self._until_connected(deadline)
            self._check_session(operations, session_id)
            try:
                answer = await self._ask(Multi(tuple(plan.steps)), deadline)
            except Refused as refused:
                plans += 1
                await self._learn(plan, operations, refused, beliefs, deadline)
            except ConnectionLost as lost:
                settled = settle(operations, await self._found(operations, deadline, lost), session_id)
                if settled.outcome is Outcome.DONE:
                    return settled.stats
                if settled.outcome is Outcome.UNKNOWN:
                    raise _unknown(operations, lost) from lost
            else:
                assert isinstance(answer, tuple)
                return plan.stats(answer)
        raise MetadataError(f"{operations[0].path}: other clients changed the nodes around it {PLANS_MAX} times in a row")

    def _check_session(self, operations: Sequence[Operation], session_id: int) -> None:
        wants_session = any(isinstance(operation, Put) and operation.ephemeral for operation in operations)
        if wants_session and session_id != self.session_id:
            raise SessionExpired(f"{operations[0].path}: the session that was to create the node is over")

    async def _learn(
        self, plan: Plan, operations: Sequence[Operation], refused: Refused, beliefs: Beliefs, deadline: float
    ) -> None:
        asked = learn(plan, operations, refused, beliefs)
        answers = await asyncio.gather(*(self._ask_until_answered(Get(path), deadline) for path in asked))
        beliefs |= {path: answer is not None for path, answer in zip(asked, answers, strict=True)}

    async def _found(self, operations: Sequence[Operation], deadline: float, lost: ConnectionLost) -> dict[str, Found | None]:
        """Nodes at the operations' paths now; OutcomeUnknown when there is no answer to that either.

        After a sync: the write may have reached the leader, and the server that answers now may not have heard of it yet.
        (It cannot still be on its way: the leader refuses what an earlier connection of the session sent.)
        """
        paths = [_node_path(operation) for operation in operations]
        while asyncio.get_running_loop().time() < deadline:
            try:
                await self._until_connected(deadline)
                asked = [self._ask(Sync(ROOT), deadline), *(self._ask(Get(path), deadline) for path in paths)]
                _, *answers = await asyncio.gather(*asked)
            except ConnectionLost as again:
                lost = again
            except (MetadataError, Refused) as error:
                raise _unknown(operations, lost) from error
            else:
                found = [answer if isinstance(answer, Found) else None for answer in answers]
                return {operation.path: each for operation, each in zip(operations, found, strict=True)}
        raise _unknown(operations, lost)

    # Asking

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout

    async def _until_connected(self, deadline: float) -> None:
        try:
            await self._sessions.until_connected(deadline)
        except TimeoutError:
            raise StoreUnavailable(f"no connection to ZooKeeper in {self._timeout:g} s") from None

    async def _ask_until_answered(self, request: Get | Children, deadline: float) -> Answer:
        while True:
            await self._until_connected(deadline)
            try:
                return await self._ask(request, deadline)
            except ConnectionLost as lost:
                if asyncio.get_running_loop().time() >= deadline:
                    raise StoreUnavailable(f"{request.path}: {lost}") from lost
            except Refused as refused:
                raise MetadataError(f"{request.path}: ZooKeeper refused: {refused.text}") from refused

    async def _ask(self, request: Request, deadline: float) -> Answer:
        """Refused, or ConnectionLost also when the time is out."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout_at(deadline), self._slots:
                self._sessions.send(request, partial(self._answered, request, future))
                return await future
        except TimeoutError:
            raise ConnectionLost(f"no answer in {self._timeout:g} s") from None

    def _answered(self, request: Request, future: "asyncio.Future[Answer]", answer: Answer | Exception) -> None:
        self._trees.answered(request, answer)
        _fulfil(future, answer)

    # Watching

    def watch(self, prefix: str, watcher: Callable[[Notification], None]) -> Callable[[], None]:
        end_watch = self._watches.add(prefix, watcher)
        self._trees.follow(prefix)
        is_over = False

        def end() -> None:
            nonlocal is_over
            end_watch()
            if not is_over:
                is_over = True
                self._trees.unfollow(prefix)

        return end

    def watch_session(self, listener: SessionListener) -> Callable[[], None]:
        return self._sessions.watch_session(listener)

    def _resume(self, seen_zxid: int) -> None:
        self._trees.set_again(seen_zxid)

    def _changed(self, change: Change, path: str) -> None:
        self._trees.changed(change, path)

    # The end

    async def close(self) -> None:
        """Writes that were called before are waited for."""
        self._closed = True
        writing = [task for task in self._writing if task is not asyncio.current_task()]
        if writing:
            await asyncio.wait(writing)
        await self._sessions.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the metadata store is closed")


def _fulfil(future: "asyncio.Future[Answer]", answer: Answer | Exception) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):  # the caller has gone
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _node_path(operation: Operation) -> str:
    """A sequential node's own path is not known; anything readable does, for it shows nothing."""
    is_sequential = isinstance(operation, Put) and operation.sequential
    return ROOT if is_sequential or operation.path == ROOT else operation.path


def _unknown(operations: Sequence[Operation], lost: ConnectionLost) -> OutcomeUnknown:
    what = "delete" if isinstance(operations[0], Delete) else "write"
    return OutcomeUnknown(f"{operations[0].path}: the {what} may have taken effect: {lost}")
