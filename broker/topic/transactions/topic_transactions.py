"""TopicTransactions: performs the buffer's decisions: messages and markers to the log, snapshots, recovery. Owns the times of
snapshots: the first one before the first message of a transaction, others by a timer. A topic that never had a transaction has
neither. Relies on the log for the order: a marker comes after the messages that it ends.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from broker.errors import BrokerError, ServerError
from managed_ledger.contract import AppendRefused, ManagedLedger, ManagedLedgerError, ManagedLedgerTerminated
from ports.clock import Clock
from ports.logs import line
from ports.loop.owner import ask
from ports.loop.promise import listen
from wire.kernels.metadata import scan
from wire.position import Position
from wire.run import EntryBatch, EntryRun, RunMetadata
from wire.transactions import TxnAction, TxnId

from ...policies.topic_settings import TopicSettings
from ..errors import broker_error, require_same_end
from ..statistics.transaction_facts import BufferFacts, InBufferFacts, SegmentFacts
from .aborted import AbortedTransactions
from .buffer import Ending, TransactionBuffer
from .markers import marker, transaction_entries, without_aborted
from .read_committed import ReadCommitted
from .snapshot_store import SnapshotStore

_REPLAY_ENTRIES, _REPLAY_BYTES = 1000, 4 << 20
_REPLAYED_ENTRIES_MAX = 20_000
"""Entries without a transaction after which a snapshot is taken all the same, so that the next recovery is short."""
_NOT_STORED = ManagedLedgerTerminated, AppendRefused
"""Failures of an append after which the topic goes on, and the append is certainly not stored."""

log = logging.getLogger(__name__)


class TransactionsHost(Protocol):
    """Part of a topic that its transactions need."""

    @property
    def name(self) -> str: ...
    @property
    def ledger(self) -> ManagedLedger: ...
    @property
    def takes_transactions(self) -> bool: ...
    def run_task(self, work: Coroutine[Any, Any, None]) -> None: ...
    def storage_failed(self, error: BaseException) -> None: ...
    def more_is_readable(self) -> None:
        """Tell the dispatchers."""


class TopicTransactions:
    """Transactions of one topic. Call `recover` before any read."""

    def __init__(self, host: TransactionsHost, snapshots: SnapshotStore | None, settings: TopicSettings, clock: Clock) -> None:
        self.buffer = TransactionBuffer()
        self.committed = ReadCommitted(host.ledger, ask(self._limit))
        self.recovery_ms = (0, 0)
        """Times when recovery began and ended."""
        self.last_snapshot_ms = 0
        self._host = host
        self._snapshots = snapshots
        self._settings = settings
        self._clock = clock
        self._is_used = False
        """There is a snapshot, from which the next owner knows that there are transactions."""
        self._waiting = 0
        """Appends that wait for the first snapshot; others wait behind them."""
        self._turn = asyncio.Lock()
        self._endings: dict[TxnId, asyncio.Future[EntryRun]] = {}
        self._changes = 0
        """Transactions that ended since the last snapshot."""
        self._max_read: Position | None = None
        """Position of the last snapshot."""
        self._is_snapshotting = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def has_been_used(self) -> bool:
        """Whether the topic ever had a transaction."""
        return self._is_used

    @property
    def limit(self) -> Position | None:
        """The last position that may be read; None: all may."""
        return self.buffer.limit()

    def _limit(self) -> Position | None:
        return self.buffer.limit()

    def decided(self, run: EntryRun, metadata: RunMetadata) -> RunMetadata:
        """Metadata of a run that may be read, with messages of aborted transactions as markers."""
        return without_aborted(run, metadata, self.buffer.aborted.__contains__)

    def require_none_open(self) -> None:
        """BrokerError(TRANSACTION_CONFLICT): the log may not end now. There would be no place for the markers: open
        transactions would never be decided, and no message after them be read. (In Apache a terminated topic stays so for
        ever.)
        """
        count = self.buffer.open_count + self._waiting
        if count and not self._host.ledger.is_terminated:
            message = f"{self._host.name} has open transactions ({count}); it can be terminated when they have ended"
            raise BrokerError(ServerError.TRANSACTION_CONFLICT, message)

    # ---- its stats

    def facts(self) -> BufferFacts:
        """State of all transactions."""
        buffer = self.buffer
        last = self.committed.last_confirmed
        return BufferFacts(
            is_used=self.has_been_used,
            max_read_position=f"{last.ledger_id}:{last.entry_id}",
            last_snapshot_ms=self.last_snapshot_ms,
            low_water_marks=dict(buffer.low_water_marks),
            open_count=buffer.open_count,
            recovery_ms=self.recovery_ms,
            aborted_count=len(buffer.aborted),
            is_segmented=self._snapshots is not None and self._snapshots.is_segmented,
            segments=self._segment_facts(),
        )

    def _segment_facts(self) -> SegmentFacts:
        aborted, snapshots = self.buffer.aborted, self._snapshots
        return SegmentFacts(
            0 if snapshots is None else snapshots.segment_capacity,
            0 if snapshots is None else snapshots.last_segment_ms,
            sum(segment.count for segment in aborted.loose),
            tuple((str(segment.last_id), str(segment.last)) for segment in aborted.sealed),
        )

    def facts_of(self, txn_id: TxnId) -> InBufferFacts:
        """State of one transaction."""
        limit = self.buffer.limit_of(txn_id)
        start = None if limit is None else self._host.ledger.next_position(limit)
        return InBufferFacts(None if start is None else f"{start.ledger_id}:{start.entry_id}", txn_id in self.buffer.aborted)

    # ---- recovery

    async def recover(self) -> None:
        """Loads the newest snapshot, and the log behind it. ManagedLedgerError, BrokerError."""
        began, ledger = self._clock.now_ms(), self._host.ledger
        found = None if self._snapshots is None or not ledger.entry_count else await self._snapshots.read()
        if found is None:
            return
        found.aborted.forget_before(ledger.first_position().ledger_id)
        self.buffer = TransactionBuffer(found.aborted)
        count = await self._replay(found.max_read)
        self.buffer.count_anew()
        self._is_used, self._max_read = True, found.max_read
        self.recovery_ms = (began, self._clock.now_ms())
        counts = {"aborted": len(found.aborted), "open": self.buffer.open_count, "replayed": count}
        log.info(line("transactions recovered", topic=self._host.name, **counts))
        self._set_timer()

    async def _replay(self, max_read: Position) -> int:
        ledger, count = self._host.ledger, 0
        position = max(max_read, ledger.first_position())
        while True:
            run = await ledger.read(position, _REPLAY_ENTRIES, _REPLAY_BYTES)
            if run is None:
                return count
            count += run.count
            for entry in transaction_entries(run, scan(run)):
                if entry.action is None:
                    self.buffer.replayed(entry.txn_id, ledger.previous_position(entry.position))
                else:
                    self.buffer.ended(entry.txn_id, entry.action, entry.position)
            position = Position(run.ledger_id, run.last_entry_id + 1)

    # ---- messages

    @property
    def is_appending_later(self) -> bool:
        """Whether appends wait, and others behind them."""
        return self._waiting > 0

    def append(self, txn_id: TxnId | None, entries: EntryBatch) -> "asyncio.Future[EntryRun]":
        """Appends to the log. BrokerError for a transaction that has ended. None: no transaction."""
        if txn_id is not None and not self._host.takes_transactions:
            return _refused("Transactions are not enabled.")
        if self._waiting or (txn_id is not None and not self._is_used):
            self._waiting += 1
            return asyncio.ensure_future(self._append_later(txn_id, entries))
        return self._append(txn_id, entries)

    async def _append_later(self, txn_id: TxnId | None, entries: EntryBatch) -> EntryRun:
        """Appends in the order of the calls: the lock is fair."""
        try:
            async with self._turn:
                if txn_id is not None:
                    await self._open()
                appended = self._append(txn_id, entries)
        finally:
            self._waiting -= 1
        return await appended

    async def _open(self) -> None:
        """Have a first snapshot. BrokerError."""
        if self._is_used:
            return
        if self._snapshots is None:
            raise BrokerError(ServerError.NOT_ALLOWED, "Transactions are not enabled.")
        self._max_read = self._host.ledger.last_confirmed
        await self._snapshots.write(AbortedTransactions(), self._max_read)
        self.last_snapshot_ms = self._clock.now_ms()
        self._is_used = True
        self._set_timer()

    def _append(self, txn_id: TxnId | None, entries: EntryBatch) -> "asyncio.Future[EntryRun]":
        ledger, buffer = self._host.ledger, self.buffer
        if txn_id is None:
            return ledger.append(entries)
        if not buffer.takes(txn_id):
            return _refused(f"Transaction [{txn_id}] has been ended. Please use a new transaction to send message.")
        buffer.began(txn_id, ledger.last_confirmed)
        future = ledger.append(entries)
        listen(future, lambda done: self._appended(txn_id, done))
        return future

    def _appended(self, txn_id: TxnId, done: "asyncio.Future[EntryRun]") -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        before = self.buffer.limit()
        if error is None:
            run = done.result()
            self.buffer.stored(txn_id, self._host.ledger.previous_position(Position(run.ledger_id, run.first_entry_id)))
        elif isinstance(error, _NOT_STORED):
            self.buffer.refused(txn_id)
        else:
            return  # whether it is stored is open: the topic closes
        if self.buffer.limit() != before:
            self._host.more_is_readable()

    # ---- the end of transactions

    async def end(self, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        """Ends the transaction; its marker is stored when this returns, where one was needed. BrokerError."""
        await self._end(txn_id, action)
        for leftover in self.buffer.low_water_mark(txn_id.most, low_water_mark):
            log.warning(line("transaction unknown to its coordinator is aborted", topic=self._host.name, id=leftover))
            if self.buffer.limit_of(leftover) is not None:  # it may have ended since
                await self._end(leftover, TxnAction.ABORT)

    async def _end(self, txn_id: TxnId, action: TxnAction) -> None:
        async with self._turn:  # after messages that wait to be appended
            under_way = self._endings.get(txn_id)
            if under_way is None:
                leaves_marker = await self._can_leave_marker(txn_id)
                if self._decide(txn_id, action, leaves_marker) is Ending.WRITE_MARKER:
                    under_way = self._write_marker(txn_id, action)
        if under_way is not None:
            await self._stored(under_way)
            self._check_ended(txn_id, action)

    async def _can_leave_marker(self, txn_id: TxnId) -> bool:
        """Whether a transaction without a message here may get a marker. BrokerError."""
        if self.buffer.limit_of(txn_id) is not None or self._snapshots is None or self._host.ledger.is_terminated:
            return False
        await self._open()  # or no caller would look for it
        return True

    def _decide(self, txn_id: TxnId, action: TxnAction, leaves_marker: bool) -> Ending:
        ending = self.buffer.ending(txn_id, action, leaves_marker=leaves_marker)
        if ending is Ending.CONFLICT:
            self._check_ended(txn_id, action)
        return ending

    def _check_ended(self, txn_id: TxnId, action: TxnAction) -> None:
        """BrokerError(TRANSACTION_CONFLICT): it has ended the other way, also while `action` waited for that."""
        require_same_end(txn_id, self.buffer.ended_by(txn_id), action, self._host.name)

    def _write_marker(self, txn_id: TxnId, action: TxnAction) -> "asyncio.Future[EntryRun]":
        ledger = self._host.ledger
        written = self._endings[txn_id] = ledger.append(marker(txn_id, action, self._clock.now_ms(), ledger.header_bytes))
        listen(written, lambda done: self._marked(txn_id, action, done))
        return written

    async def _stored(self, written: "asyncio.Future[EntryRun]") -> None:
        try:
            await asyncio.shield(written)
        except ManagedLedgerError as error:
            raise broker_error(error) from error

    def _marked(self, txn_id: TxnId, action: TxnAction, done: "asyncio.Future[EntryRun]") -> None:
        del self._endings[txn_id]
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if isinstance(error, _NOT_STORED):
            self.buffer.still_open(txn_id)
            self._host.more_is_readable()
        elif error is not None:
            self._host.storage_failed(error)  # whether it is stored is open
        else:
            run = done.result()
            self.buffer.ended(txn_id, action, Position(run.ledger_id, run.first_entry_id))
            self._host.more_is_readable()
            self._changes += 1
            if self._changes >= self._settings.transaction_buffer_snapshot_max_transaction_count:
                self._host.run_task(self._snapshot())

    # ---- snapshots

    def _set_timer(self) -> None:
        seconds = self._settings.transaction_buffer_snapshot_min_time_in_millis / 1000
        self._timer = asyncio.get_running_loop().call_later(seconds, self._tick)

    def _tick(self) -> None:
        ledger = self._host.ledger
        start = self._max_read or ledger.first_position()
        if self._changes or ledger.count_between(start, self.committed.last_confirmed) > _REPLAYED_ENTRIES_MAX:
            self._host.run_task(self._snapshot())
        self._set_timer()

    async def _snapshot(self) -> None:
        """One at a time. A failure costs a longer replay, nothing else."""
        snapshots, ledger = self._snapshots, self._host.ledger
        if snapshots is None or self._is_snapshotting:
            return
        changes, self._changes, self._is_snapshotting = self._changes, 0, True
        self.buffer.aborted.forget_before(ledger.first_position().ledger_id)
        max_read = self.committed.last_confirmed
        try:
            await snapshots.write(self.buffer.aborted, max_read)
        except BrokerError as error:
            self._changes += changes  # it is tried again
            log.warning(line("snapshot of aborted transactions not written", topic=self._host.name, error=error))
        else:
            self._max_read = max_read
            self.last_snapshot_ms = self._clock.now_ms()
        finally:
            self._is_snapshotting = False

    # ---- the end

    def stop(self) -> None:
        """No snapshot is begun any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def delete(self) -> None:
        """Deletes the snapshots with the topic. A snapshot that stays does no harm to a new topic of the same name."""
        self.stop()
        if self._snapshots is not None and self._is_used:
            try:
                await self._snapshots.delete()
            except BrokerError as error:
                log.warning(line("snapshot of aborted transactions not removed", topic=self._host.name, error=error))


def _refused(message: str) -> "asyncio.Future[EntryRun]":
    refused: asyncio.Future[EntryRun] = asyncio.get_running_loop().create_future()
    refused.set_exception(BrokerError(ServerError.NOT_ALLOWED, message))
    return refused
