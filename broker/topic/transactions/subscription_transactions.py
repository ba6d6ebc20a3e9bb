"""SubscriptionTransactions: performs acknowledgements in transactions on one subscription: the log first, then the cursor.

Owns the pending-ack log, made with the first acknowledgement in a transaction, and the pending acknowledgements. An
acknowledgement is answered when it is in the log; a commit there puts it into the cursor, an abort undoes it. The log is read
again before any consumer is served. A subscription that is not durable has no log.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from broker.dispatchers.contract import EntriesReturned, Event
from broker.errors import BrokerError, ServerError
from managed_ledger.contract import EARLIEST, ManagedCursor, ManagedLedgerError, ManagedLedgerFenced
from ports.clock import Clock
from ports.logs import line
from wire.position import Position
from wire.transactions import TxnAction, TxnId

from ..acknowledging import impossible
from ..contract import Acknowledgement
from ..errors import broker_error, require_same_end
from ..statistics.transaction_facts import AckPlace, InPendingAckFacts, PendingAckCounts, PendingAckFacts
from .logs import LogsOfItsOwn
from .pending_ack_log import PendingAckLog
from .pending_ack_records import Acknowledged, Ended
from .pending_acks import Acked, PendingAcks, TransactionAcks, out_of_proportion
from .pending_cursor import PendingCursor

_ENTRIES_KEPT = 1000
"""Entries of the log between two looks whether they are still needed."""

log = logging.getLogger(__name__)


class SubscriptionOfTransactions(Protocol):
    """Part of a subscription that its transactions need."""

    @property
    def name(self) -> str: ...
    @property
    def cursor(self) -> ManagedCursor: ...
    @property
    def clock(self) -> Clock: ...
    def handle(self, event: Event) -> None: ...
    def acknowledge_committed(self, acknowledgement: Acknowledgement) -> None:
        """On the cursor."""


class SubscriptionTransactions:
    """Transactions of one subscription. Call `recover` before any client is served."""

    def __init__(
        self, subscription: SubscriptionOfTransactions, logs: LogsOfItsOwn | None, failed: Callable[[BaseException], None]
    ) -> None:
        self.pending = PendingAcks()
        self.cursor = PendingCursor(subscription.cursor, self.pending)
        """Cursor for dispatchers: pending messages are as if they were acknowledged."""
        self._subscription = subscription
        self._logs = logs
        self._failed = failed
        self._log: PendingAckLog | None = None
        self._turn = asyncio.Lock()
        self._is_recovered = not subscription.cursor.durable
        self._is_new = self._is_deleted = False
        self._began: dict[TxnId, Position] = {}
        """Position in the log of each open transaction's first acknowledgement, or a little before."""
        self._ending: dict[TxnId, asyncio.Future[Position]] = {}
        self._is_tidying = False
        self.counts: PendingAckCounts | None = None
        """None: no transaction has ended here since it was loaded."""
        self.recovery_ms = (0, 0)
        """Times when recovery began and ended."""

    # ---- its stats

    async def facts(self) -> PendingAckFacts:
        """State of all pending acknowledgements. BrokerError when the log cannot be read."""
        await self.recover()
        log = None if self._log is None else self._log.ledger
        return PendingAckFacts(log, dict(self.pending.low_water_marks), len(self.pending), self.recovery_ms)

    async def place_of(self, position: Position, batch_index: int | None) -> AckPlace:
        """Same as `facts`, for one message; `batch_index`: of a batch (PendingAckHandleImpl.checkPositionInPendingAckState)."""
        await self.recover()
        if position <= self._subscription.cursor.mark_delete:
            return AckPlace.MARK_DELETED
        return self.pending.place_of(position, batch_index)

    async def facts_of(self, txn_id: TxnId) -> InPendingAckFacts:
        """Same as `facts`, for one transaction."""
        await self.recover()
        acks = self.pending.of(txn_id)
        at = None if acks is None or acks.cumulative is None else acks.cumulative.position
        return InPendingAckFacts(None if at is None else f"{at.ledger_id}:{at.entry_id}")

    # ---- recovery

    async def recover(self) -> None:
        """Replays the log, once. BrokerError."""
        if self._is_recovered:
            return
        async with self._turn:
            try:
                await self._recover()
            except ManagedLedgerError as error:
                raise broker_error(error) from error

    def is_new(self) -> None:
        """The subscription was just made: there is nothing to recover."""
        self._is_recovered = self._is_new = True

    async def _recover(self) -> None:
        if self._is_recovered:  # by the caller that had the turn before
            return
        found = None if self._logs is None else await self._logs.pending_acks(self._subscription.name, False)
        if found is not None:
            await self._read(await PendingAckLog.open(found))
        self._is_recovered = True

    async def _read(self, read: PendingAckLog) -> None:
        began = self._subscription.clock.now_ms()
        count = 0
        async for position, record in read.records():
            count += 1
            if isinstance(record, Acknowledged):
                self._replay(record, position)
            else:
                self._apply(record.txn_id, record.action)
        self._log = read
        self.recovery_ms = (began, self._subscription.clock.now_ms())
        name = read.ledger.name
        log.info(line("pending acknowledgements recovered", log=name, entries=count, open=len(self.pending)))

    def _replay(self, record: Acknowledged, position: Position) -> None:
        """Replays a record. Acknowledgements that the cursor has already are of a committed transaction."""
        cursor = self._subscription.cursor
        if record.is_cumulative:
            if len(record.acked) == 1 and self.pending.cumulative_conflict(record.txn_id, record.acked[0], cursor) is None:
                self.pending.add_cumulative(record.txn_id, record.acked[0])
        else:
            new = [each for each in record.acked if self.pending.conflict(record.txn_id, [each], cursor) is None]
            if new:
                self.pending.add(record.txn_id, new)
        if self.pending.of(record.txn_id) is not None:
            self._began.setdefault(record.txn_id, position)

    # ---- acknowledgements

    async def acknowledge(self, txn_id: TxnId, acknowledgement: Acknowledgement) -> None:
        """Acknowledges in a transaction, durably when this returns. TRANSACTION_CONFLICT: nothing is acknowledged."""
        await self.recover()
        await self._open()
        acked = _acked(acknowledgement)
        self._check(txn_id, acknowledgement.is_cumulative, acked)
        self._began.setdefault(txn_id, EARLIEST if self._log is None else self._log.end())
        if acknowledgement.is_cumulative:
            self.pending.add_cumulative(txn_id, acked[0])
        else:
            self.pending.add(txn_id, acked)
        await self._write(Acknowledged(txn_id, acknowledgement.is_cumulative, tuple(acked)))

    def _check(self, txn_id: TxnId, is_cumulative: bool, acked: Sequence[Acked]) -> None:
        pending, cursor = self.pending, self._subscription.cursor
        if txn_id in self._ending or not pending.takes(txn_id):
            message = f"Transaction [{txn_id}] has been ended. Please use a new transaction to acknowledge messages."
            raise BrokerError(ServerError.NOT_ALLOWED, message)
        if is_cumulative and len(acked) != 1:
            message = f"Transaction:{txn_id} invalid cumulative ack received with multiple message ids."
            raise BrokerError(ServerError.NOT_ALLOWED, message)
        reasons = (impossible(each.position, each.ack_set, each.batch_size) or out_of_proportion(each) for each in acked)
        reason = next((why for why in reasons if why is not None), None)
        if reason is not None:
            raise BrokerError(ServerError.NOT_ALLOWED, f"Transaction:{txn_id} cannot acknowledge: {reason}")
        conflict = pending.cumulative_conflict(txn_id, acked[0], cursor) if is_cumulative else None
        conflict = conflict if is_cumulative else pending.conflict(txn_id, acked, cursor)
        if conflict is not None:
            raise BrokerError(ServerError.TRANSACTION_CONFLICT, conflict)

    async def _open(self) -> None:
        if self._log is None and self._subscription.cursor.durable:
            async with self._turn:
                await self._make_log()

    async def _make_log(self) -> None:
        if self._log is not None:  # by the caller that had the turn before
            return
        if self._is_deleted:
            raise BrokerError(ServerError.SERVICE_NOT_READY, "Subscription is fenced")
        if self._logs is None:
            raise BrokerError(ServerError.NOT_ALLOWED, "Transactions are not enabled.")
        name = self._subscription.name
        try:
            await self._check_alone(self._logs, name)
            found = await self._logs.pending_acks(name, True)
            assert found is not None
            made = await PendingAckLog.open(found)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        made.not_needed_before(made.end())  # of an earlier subscription of that name
        self._log = made

    async def _check_alone(self, logs: LogsOfItsOwn, name: str) -> None:
        """There was no log when the topic was loaded. No other broker may have made one: its records would be passed over."""
        if not self._is_new and await logs.exists(name):
            error = ManagedLedgerFenced(f"{name}: a log of acknowledgements in transactions was made by another broker")
            self._failed(error)
            raise error

    async def _write(self, record: Acknowledged) -> None:
        """A failure leaves open whether it is stored: the topic closes, and the log is read again."""
        if self._log is None:
            return
        try:
            await asyncio.shield(self._log.append(record))
        except ManagedLedgerError as error:
            self._failed(error)
            raise broker_error(error) from error

    # ---- the end of transactions

    async def end(self, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        """Ends the transaction; its acknowledgements are durably made, or durably dropped, when this returns. BrokerError."""
        await self.recover()
        await self._counted_end(txn_id, action)
        for leftover in self.pending.low_water_mark(txn_id.most, low_water_mark):
            name = self._subscription.name
            log.warning(line("acknowledgements in a transaction unknown to its coordinator are dropped", of=name, id=leftover))
            if self.pending.of(leftover) is not None:  # it may have ended since
                await self._counted_end(leftover, TxnAction.ABORT)
        await self._tidy()

    async def _counted_end(self, txn_id: TxnId, action: TxnAction) -> None:
        counts = self.counts = self.counts or PendingAckCounts()
        loop, is_commit = asyncio.get_running_loop(), action is TxnAction.COMMIT
        began = loop.time()
        try:
            await self._end(txn_id, action)
        except BrokerError:
            counts.failed(is_commit=is_commit)
            raise
        counts.ended(loop.time() - began, is_commit=is_commit)

    async def _end(self, txn_id: TxnId, action: TxnAction) -> None:
        """Ends the transaction. Callers that ask for the same meanwhile get the same answer, those that ask for the other end
        TRANSACTION_CONFLICT. The work goes on when a caller gives up."""
        under_way = self._ending.get(txn_id)
        if under_way is None:
            under_way = self._begin_end(txn_id, action)
        if under_way is None:
            return
        try:
            await asyncio.shield(under_way)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        self._check_ended(txn_id, action)

    def _check_ended(self, txn_id: TxnId, action: TxnAction) -> None:
        """BrokerError(TRANSACTION_CONFLICT)."""
        require_same_end(txn_id, self.pending.ended_by(txn_id), action, f"subscription {self._subscription.name}")

    def _begin_end(self, txn_id: TxnId, action: TxnAction) -> "asyncio.Future[Position] | None":
        """None: it is done. BrokerError(TRANSACTION_CONFLICT)."""
        acks = self.pending.of(txn_id)
        if acks is None:
            self._check_ended(txn_id, action)
        if self._log is None or (acks is None and self.pending.ended_by(txn_id) is not None):
            self._apply(txn_id, action)
            return None
        # for an unknown one, too: only the topic's owner can write it, and another broker may know more
        is_cumulative = acks is not None and acks.cumulative is not None and not acks.individual
        written = self._log.append(Ended(txn_id, action, is_cumulative))
        self._ending[txn_id] = written
        written.listen(lambda done: self._ended(txn_id, action, done))
        return written

    def _ended(self, txn_id: TxnId, action: TxnAction, done: "asyncio.Future[Position]") -> None:
        """Done before the waiting callers are notified."""
        del self._ending[txn_id]
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            self._apply(txn_id, action)
        else:
            self._failed(error)

    def _apply(self, txn_id: TxnId, action: TxnAction) -> None:
        acks = self.pending.take(txn_id, action)
        self._began.pop(txn_id, None)
        if acks is None:
            return
        if action is TxnAction.COMMIT:
            for acknowledgement in _acknowledgements(acks):
                self._subscription.acknowledge_committed(acknowledgement)
            return
        for ledger_id, entry_ids in acks.entries().items():
            self._subscription.handle(EntriesReturned(ledger_id, entry_ids))

    # ---- the log

    async def _tidy(self) -> None:
        """Drops acknowledgements that the cursor has itself, once those are stored."""
        kept = self._log
        if kept is None or self._is_tidying or kept.entries_needed < _ENTRIES_KEPT:
            return
        self._is_tidying = True
        needed_from = min(self._began.values(), default=kept.end())
        try:
            await self._subscription.cursor.stored()
            kept.not_needed_before(needed_from)
        except ManagedLedgerError as error:
            raise broker_error(error) from error
        finally:
            self._is_tidying = False

    async def close(self) -> None:
        """The topic closes."""
        if self._log is not None:
            try:
                await self._log.close()
            except ManagedLedgerError as error:
                log.warning(line("pending-ack log not closed cleanly", log=self._log.ledger.name, error=error))

    async def delete(self) -> None:
        """The subscription is deleted, and its log with it; none is made any more. ManagedLedgerError."""
        async with self._turn:
            found = None if self._log is None else self._log.ledger
            if found is None and self._logs is not None and self._subscription.cursor.durable:
                found = await self._logs.pending_acks(self._subscription.name, False)
            if found is not None:
                await found.delete()
            self._is_deleted = True


def _acked(acknowledgement: Acknowledgement) -> list[Acked]:
    """Bits of acknowledged messages; none set: the whole entry."""
    parts = zip(acknowledgement.positions, acknowledgement.ack_sets, acknowledgement.batch_sizes, strict=True)
    return [Acked(position, words if any(words) else (), size) for position, words, size in parts]


def _acknowledgements(acks: TransactionAcks) -> list[Acknowledgement]:
    """Acknowledgements of a committed transaction, for the cursor."""
    found = []
    if acks.individual:
        found.append(_of(acks.individual, is_cumulative=False))
    if acks.cumulative is not None:
        found.append(_of([acks.cumulative], is_cumulative=True))
    return found


def _of(acked: Sequence[Acked], *, is_cumulative: bool) -> Acknowledgement:
    return Acknowledgement(
        is_cumulative,
        tuple(each.position for each in acked),
        tuple(each.ack_set for each in acked),
        tuple(each.batch_size for each in acked),
    )
