"""Planted bugs of transactions, for transfers: of coordinators, of topics with their snapshots, of pending acknowledgements.

As in `simulation.planted`, which lists them: what is replaced, and by what, made from the original.
"""

from collections.abc import Callable, Mapping
from typing import Any

from broker.topic.transactions.aborted import AbortedSegment
from broker.topic.transactions.buffer import TransactionBuffer
from broker.topic.transactions.pending_ack_records import Acknowledged
from broker.topic.transactions.read_committed import ReadCommitted
from broker.topic.transactions.subscription_transactions import SubscriptionTransactions
from broker.transaction.coordinator_driver import Coordinator
from broker.transaction.ending_driver import Ending, Endings
from broker.transaction.machine import TransactionMachine
from broker.transaction.snapshots import records
from wire.transactions import TxnAction, TxnId


def _marker_before_the_log(end: Any) -> Any:
    async def broken(self: Coordinator, least: int, action: TxnAction) -> None:
        self._check()
        first = sorted(self.machine.get(least).partitions)[:1]
        await self._endings.end(Ending(TxnId(self.id, least), action, first, lambda: self.machine.low_water_mark))
        await end(self, least, action)

    return broken


def _time_out_commits(abort_due: Any) -> Any:
    async def broken(self: Coordinator) -> None:
        for least in self.machine.due(self._clock.now_ms()):
            record = self.machine.end(least, TxnAction.COMMIT)
            assert record is not None
            await self._abort(record)

    return broken


def _somebody_left_out(end: Any) -> Any:
    async def broken(self: Endings, ending: Ending) -> None:
        topics = [each for each in ending.participants if isinstance(each, str)]
        if ending.txn_id.least % 3 == 1:
            ending.participants = [each for each in ending.participants if each not in topics[:1]]
        await end(self, ending)

    return broken


def _log_forgotten(replay: Any) -> Any:
    return lambda self, record, place, last_sequence: []


def _low_water_mark_too_high(mark: Any) -> Any:
    return property(lambda self: self.last_sequence)


def _abort_lost_in_the_snapshot(single_rows: Any) -> Any:
    def broken(segment: AbortedSegment) -> bytes:
        most, ids = next(iter(segment.ids.items()))
        fewer = {**segment.ids, most: ids - ids[-1:]}
        less: bytes = single_rows(AbortedSegment(segment.last, fewer, segment.count - 1))
        return less

    return broken


def _snapshot_ahead(last_confirmed: Any) -> Any:
    return property(lambda self: self._ledger.last_confirmed)


def _dirty_read(limit: Any) -> Any:
    return lambda self: None


def _pending_ack_forgotten(replay: Any) -> Any:
    return lambda self, record, position: None


def _pending_ack_not_awaited(write: Any) -> Any:
    async def broken(self: SubscriptionTransactions, record: Any) -> None:
        if isinstance(record, Acknowledged) and self._log is not None:
            self._log.append(record)
        else:
            await write(self, record)

    return broken


TRANSFER_PLANTS: Mapping[str, tuple[str, Any, str, Callable[[Any], Any]]] = {
    "marker-before-the-log": ("a marker is written before the decision", Coordinator, "end", _marker_before_the_log),
    "time-out-commits": ("a transaction whose time is up is committed", Coordinator, "_abort_due", _time_out_commits),
    "somebody-left-out": ("a coordinator does not tell everybody", Endings, "end", _somebody_left_out),
    "coordinator-forgets": ("a coordinator does not read its log", TransactionMachine, "replay", _log_forgotten),
    "low-water-mark-too-high": (
        "the low-water mark is above what is open", TransactionMachine, "low_water_mark", _low_water_mark_too_high
    ),
    "abort-lost-in-the-snapshot": (
        "a snapshot leaves the last aborted transaction out", records, "_single_rows", _abort_lost_in_the_snapshot
    ),
    "snapshot-ahead": (
        "after a snapshot, what was open is not read again", ReadCommitted, "last_confirmed", _snapshot_ahead
    ),
    "dirty-read": ("readers pass what is not decided", TransactionBuffer, "limit", _dirty_read),
    "pending-ack-forgotten": (
        "pending acknowledgements are not read again", SubscriptionTransactions, "_replay", _pending_ack_forgotten
    ),
    "pending-ack-not-awaited": (
        "an acknowledgement is answered before it is in the log", SubscriptionTransactions, "_write", _pending_ack_not_awaited
    ),
}  # fmt: skip
