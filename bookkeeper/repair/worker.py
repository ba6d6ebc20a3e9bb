"""ReplicationWorker: takes one marked ledger after the other, with its lock, and repairs it. `Backlog` keeps those that could
not be repaired.

Several in a cluster, ours and Apache's, share the work by the locks. A failure of one ledger is logged and counted, and the
worker goes on with the others. Bounds: one ledger at a time; LISTED_MAX ids are held of all that are marked.
"""

import asyncio
import logging
from collections.abc import Callable

from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.backlog import Action, Backlog, Due
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.ledger.ledger_repair import LedgerRepair, State
from bookkeeper.repair.underreplication.tree import DISABLED, HeldLedger
from metadata.sessions import SessionEvent, Sessions
from metadata.store import MetadataError
from ports.logs import line

LISTED_MAX = 1000
LOOK_SECONDS = 1.0
"""Between two looks for marks while there are none: a watch on all of them would cost a listing of all at each connection."""

_log = logging.getLogger(__name__)


class ReplicationWorker:
    """`run` until cancelled; then `release_all`."""

    def __init__(self, client: RepairClient, sessions: Sessions, counters: RepairCounters) -> None:
        settings = client.settings
        self._client, self._sessions, self._counters = client, sessions, counters
        self._repair = LedgerRepair(client, counters)
        self._backlog = Backlog(
            settings.lock_release_of_failed_ledger_grace_period / 1000, settings.open_ledger_rereplication_grace_period / 1000
        )
        self._retry_seconds = settings.rw_rereplicate_backoff_ms / 1000
        self._listed: list[int] = []
        self._in_hand: HeldLedger | None = None
        self._doubtful: dict[int, None] = {}
        """Ledgers whose lock may be there, and is not wanted: the metadata failed when it was taken or released, or the session
        was held to be lost, which may turn out to live."""

    async def run(self) -> None:
        """Until cancelled; a failure of the metadata is waited out."""
        unwatch = self._sessions.watch_session(self._on_session)
        try:
            while True:
                try:
                    await self._turn()
                except (MetadataError, LedgerError) as error:
                    _log.warning(line("replication worker waits", reason=error, seconds=self._retry_seconds))
                    self._put_back()
                    await asyncio.sleep(max(self._retry_seconds, LOOK_SECONDS))
        finally:
            unwatch()

    async def release_all(self) -> None:
        """Others may begin at once with what this worker held."""
        self._forget()
        try:
            await self._release_doubtful()
        except MetadataError as error:
            _log.warning(line("locks not removed: they end with the session", count=len(self._doubtful), reason=error))

    def _forget(self) -> None:
        self._doubtful |= {held.ledger_id: None for held in self._backlog.held}
        if self._in_hand is not None:
            self._doubtful[self._in_hand.ledger_id] = None
        self._backlog.on_session_lost()
        self._in_hand = None

    def _put_back(self) -> None:
        """Put back the ledger in hand when the metadata failed."""
        held, self._in_hand = self._in_hand, None
        if held is not None and not self._backlog.on_failed(held, asyncio.get_running_loop().time()):
            self._doubtful[held.ledger_id] = None

    async def _release_doubtful(self) -> None:
        while self._doubtful:
            ledger_id = next(iter(self._doubtful))
            await self._client.marks.release_own(ledger_id)
            self._doubtful.pop(ledger_id, None)

    def _on_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.SESSION_LOST:
            self._forget()

    async def _turn(self) -> None:
        """One ledger, or a wait for one."""
        if not await self._client.marks.is_enabled():
            await self._until_enabled()
            return
        await self._release_doubtful()
        while (due := self._backlog.take_due(asyncio.get_running_loop().time())) is not None:
            await self._on_due(due)
        held = None if self._backlog.is_full else await self._take()
        if held is None:
            await asyncio.sleep(self._idle_seconds())
        else:
            await self._work(held, closes=False)

    def _idle_seconds(self) -> float:
        next_at = self._backlog.next_at()
        now = asyncio.get_running_loop().time()
        return LOOK_SECONDS if next_at is None else min(LOOK_SECONDS, max(0.0, next_at - now))

    async def _until_enabled(self) -> None:
        changed = asyncio.Event()
        unwatch = self._client.store.watch(DISABLED, lambda _: changed.set())
        try:
            if not await self._client.marks.is_enabled():
                _log.info(line("replication worker waits: autorecovery is disabled"))
                await changed.wait()
        finally:
            unwatch()

    async def _take(self) -> HeldLedger | None:
        """One whose lock could be had."""
        if not self._listed:
            await self._list()
        while self._listed:
            ledger_id = self._listed.pop()
            self._doubtful[ledger_id] = None
            held = await self._client.marks.take(ledger_id)
            self._doubtful.pop(ledger_id, None)
            if held is not None:
                return held
        return None

    async def _list(self) -> None:
        locked = await self._client.marks.locked_ids()
        async for ledger_id in self._client.marks.ledger_ids(self._client.rng):
            if ledger_id not in locked:
                self._listed.append(ledger_id)
                if len(self._listed) >= LISTED_MAX:
                    return

    async def _on_due(self, due: Due) -> None:
        match due.action:
            case Action.RELEASE:
                self._doubtful[due.held.ledger_id] = None
                await self._release_doubtful()
            case Action.CLOSE:
                await self._work(due.held, closes=True)

    async def _work(self, held: HeldLedger, *, closes: bool) -> None:
        self._in_hand = held
        loop = asyncio.get_running_loop()
        outcome = await self._repair.repair(held.ledger_id, closes=closes)
        self._counters.replication_worker_num_full_or_partial_ledgers_replicated += outcome.is_changed
        match outcome.state:
            case State.WHOLE | State.GONE:
                self._backlog.on_repaired(held.ledger_id)
                await self._client.marks.mark_replicated(held)
                _log.info(line("ledger repaired", ledger=held.ledger_id, state=outcome.state.value))
            case State.OPEN:
                await self._keep(held, self._backlog.on_open, loop.time())
            case State.LACKING:
                reasons = "; ".join(outcome.reasons)
                _log.error(line("ledger not repaired", ledger=held.ledger_id, reason=reasons))
                self._counters.replication_worker_num_defer_ledger_lock_release_of_failed_ledger += 1
                await self._keep(held, self._backlog.on_failed, loop.time())
        self._in_hand = None

    async def _keep(self, held: HeldLedger, hold: Callable[[HeldLedger, float], bool], now: float) -> None:
        """Nothing when the session was lost meanwhile: the lock is doubtful."""
        if self._in_hand is not None and not hold(held, now):
            self._doubtful[held.ledger_id] = None
