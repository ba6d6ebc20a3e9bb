"""TopicCompaction: the times of a topic's compaction, and its status. `broker.compaction` does the work. Owns the one run that
is under way and the outcome of the last (Apache: PersistentTopic.triggerCompaction, checkCompaction, compactionStatus;
CompactorMXBean). Outcomes are of this loading of the topic: after it `NOT_RUN`.
"""

import asyncio
import logging
from typing import Protocol

from bookkeeper.ledgers import LedgerError, LedgerStore
from broker.compaction.compacted_topic import COMPACTION_CURSOR, CompactedTopic
from broker.compaction.compactor_driver import Compacted, CompactionSource, Compactor
from broker.compaction.sifting import Portion
from broker.errors import BrokerError, ServerError
from managed_ledger.contract import ManagedCursor, ManagedLedger, ManagedLedgerError
from ports.clock import Clock
from ports.logs import line
from ports.loop.owner import ask
from wire.position import Position
from wire.run import FLAG_MARKER, EntryRun

from ...policies.topic_settings import TopicSettings
from ..dispatch.scanned_runs import ScannedRuns
from ..errors import broker_error
from ..statistics.compaction_stats import (
    CompactedLedgerFacts,
    CompactionState,
    CompactionStats,
    CompactionStatus,
    CompactionUnderWay,
)
from ..subscription.subscription import Subscription
from ..subscription.subscriptions import Subscriptions
from ..transactions.topic_transactions import TopicTransactions
from .backlog import backlog_bytes

_log = logging.getLogger(__name__)

_FAILURES = (BrokerError, LedgerError, ManagedLedgerError, ValueError)


class CompactionHost(Protocol):
    """Part of a topic that its compaction needs."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def partition_index(self) -> int: ...
    @property
    def subscriptions(self) -> Subscriptions: ...
    @property
    def transactions(self) -> TopicTransactions: ...
    @property
    def scanned(self) -> ScannedRuns: ...


class TopicCompaction:
    """Compaction of one topic. `ledgers` None: the topic is not compacted."""

    def __init__(self, host: CompactionHost, ledgers: LedgerStore | None, settings: TopicSettings, clock: Clock) -> None:
        self.topic = CompactedTopic(ledgers, ask(self._cursor))
        self.status = CompactionStatus()
        self.stats: CompactionStats | None = None
        """None: none has begun since the topic was loaded."""
        self._host = host
        self._ledgers = ledgers
        self._settings = settings
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._running: asyncio.Task[None] | None = None

    def _subscription(self) -> Subscription | None:
        return self._host.subscriptions.get(COMPACTION_CURSOR)

    def _cursor(self) -> ManagedCursor | None:
        found = self._subscription()
        return None if found is None else found.cursor

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def trigger(self) -> None:
        """Begin a run. CompactionUnderWay; NOT_ALLOWED where topics are not compacted."""
        if self._ledgers is None:
            raise BrokerError(ServerError.NOT_ALLOWED, f"{self._host.name} has no ledgers to compact")
        if self._running is not None:
            raise CompactionUnderWay
        self.status = CompactionStatus(CompactionState.RUNNING)
        self.stats = self.stats or CompactionStats()
        self._running = self._loop.create_task(self._run(self._ledgers, self.stats))
        self._running.add_done_callback(self._ended)

    @property
    def lacks_its_cursor(self) -> bool:
        """Whether the cursor is missing: then new messages may be trimmed before a compaction reads them."""
        return self._ledgers is not None and self._subscription() is None

    async def keep_what_comes(self) -> None:
        """Makes the cursor, so that no message is trimmed before it is compacted; a failure is tried again at the next check.
        (Apache: preCreateSubscriptionForCompactionIfNeeded.)"""
        try:
            await self._host.subscriptions.create(COMPACTION_CURSOR, from_earliest=True)
        except BrokerError as error:
            what = "the cursor of compaction is not there yet: trimmed messages are not compacted"
            _log.warning(line(what, topic=self._host.name, error=error))

    def check(self, threshold_bytes: int) -> None:
        """Begin one if there is more than the threshold to compact; 0: never."""
        if self._running is None and 0 < threshold_bytes < self._uncompacted_bytes():
            self.trigger()

    def _uncompacted_bytes(self) -> int:
        cursor, log = self._cursor(), self._host.ledger
        return log.size_bytes if cursor is None else backlog_bytes(log.ledgers(), cursor.mark_delete)

    async def finished(self) -> None:
        """Wait for the run that is under way."""
        while self._running is not None:
            await asyncio.wait([self._running])

    async def tidy(self) -> None:
        """Deletes the leftovers of an interrupted run. The next run tries failed deletions again."""
        cursor = self._cursor()
        if cursor is None or self._ledgers is None or self._running is not None:
            return
        try:
            await self._compactor(self._ledgers, CompactionStats()).tidy(cursor)
        except _FAILURES as error:
            _log.warning(line("interrupted compaction not cleaned up yet", topic=self._host.name, error=error))

    async def stop(self) -> None:
        """Ends the run: the topic closes. The next load of the topic finds its leftovers."""
        running = self._running
        if running is not None:
            running.cancel()
            await asyncio.wait([running])

    async def delete(self) -> None:
        """Delete the compacted ledger, before the topic or its cursor goes, so that none is left without an owner."""
        ledgers, ledger_id = self._ledgers, self.topic.ledger_id
        await self.tidy()
        if ledgers is None or ledger_id is None:
            return
        try:
            await ledgers.delete(ledger_id)
        except LedgerError as error:
            message = f"compacted ledger {ledger_id} could not be deleted: {error}; try again"
            raise BrokerError(ServerError.PERSISTENCE, message) from error

    def sample(self, seconds: float) -> None:
        """Take the rates of the time since the last call."""
        if self.stats is not None:
            self.stats.sample(seconds)

    async def compacted_ledger(self) -> CompactedLedgerFacts | None:
        """None: it was never compacted."""
        ledger_id = self.topic.ledger_id
        try:
            ledger = await self.topic.ledger()
        except LedgerError as error:
            _log.warning(line("the compacted ledger cannot be opened", topic=self._host.name, ledger=ledger_id, error=error))
            return None if ledger_id is None else CompactedLedgerFacts(ledger_id, -1, -1)
        return None if ledger is None else CompactedLedgerFacts(ledger.ledger_id, ledger.entries, ledger.size_bytes)

    async def _run(self, ledgers: LedgerStore, stats: CompactionStats) -> None:
        began = self._loop.time()
        try:
            subscription = await self._host.subscriptions.create(COMPACTION_CURSOR, from_earliest=True)
            found = await self._compactor(ledgers, stats).run(subscription.cursor)
            ledger = await self.topic.ledger()
        except _FAILURES as error:
            self._failed(stats, error)
        else:
            if ledger is not None:
                stats.compacted_entries, stats.compacted_bytes = ledger.entries, ledger.size_bytes
            self._succeeded(stats, found)
        finally:
            stats.ended(self._loop.time() - began)

    def _succeeded(self, stats: CompactionStats, found: Compacted) -> None:
        self.status = CompactionStatus(CompactionState.SUCCESS)
        stats.last_removed_events, stats.last_succeeded_ms = found.messages_gone, self._clock.now_ms()
        stats.removed_events += found.messages_gone
        stats.succeeded += 1
        told = {"ledger": found.ledger_id, "horizon": found.horizon, "keys": found.keys, "key_table_bytes": found.table_bytes}
        _log.info(line("topic compacted", topic=self._host.name, **told))

    def _failed(self, stats: CompactionStats, error: Exception) -> None:
        self.status = CompactionStatus(CompactionState.ERROR, f"{type(error).__name__}: {error}")
        stats.last_failed_ms = self._clock.now_ms()
        stats.failed += 1
        _log.warning(line("topic not compacted", topic=self._host.name, error=self.status.error))

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.status = CompactionStatus(CompactionState.ERROR, repr(error))
            _log.error(line("compaction failed", topic=self._host.name), exc_info=error)

    def _compactor(self, ledgers: LedgerStore, stats: CompactionStats) -> Compactor:
        host = self._host
        source = CompactionSource(host.name, host.partition_index, host.ledger, self._end, self._sifted)
        retains_null_key = self._settings.topic_compaction_retain_null_key
        return Compactor(source, ledgers, self.topic, stats, retains_null_key=retains_null_key)

    def _end(self) -> Position:
        """End of the decided part: compaction never passes an open transaction."""
        return self._host.transactions.committed.last_confirmed

    def _sifted(self, run: EntryRun) -> Portion:
        """Entries without markers and aborted messages."""
        found = self._host.scanned.metadata(run)
        if not found.any_flags & FLAG_MARKER:
            return Portion.whole(run)
        return Portion(run, bytes(map(FLAG_MARKER.__and__, found.flags)))


def unreadable(error: Exception) -> BrokerError:
    """Error for a client whose read of the compacted ledger failed."""
    if isinstance(error, ManagedLedgerError):
        return broker_error(error)
    return BrokerError(ServerError.PERSISTENCE, f"the compacted ledger cannot be read: {type(error).__name__}: {error}")
