"""TransactionBuffer: open and aborted transactions of a topic, and the end of its readable part. Pure.

A transaction is open from its first message until its marker is stored. Readers stop right before the first message of the
transaction that has been open longest: everything before that is decided. Apache: TopicTransactionBuffer (PIP-31).

A message of a transaction is announced before it is handed to the log (`began`), because other parts may see it stored before
we do; until its place is known, readers stop at the end of the log at that moment.
"""

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum

from wire.position import Position
from wire.transactions import TxnAction, TxnId

from .aborted import AbortedTransactions

_ENDED_KEPT_MAX = 10_000


@dataclass(slots=True)
class _Open:
    """A transaction that is not decided. Readers stop at `limit` for it."""

    limit: Position
    is_placed: bool
    under_way: int = 0
    """Messages handed to the log that are not known to be stored."""
    is_ending: bool = False


class Ending(Enum):
    """Steps to end a transaction."""

    WRITE_MARKER = "write marker"
    NOTHING = "nothing"
    CONFLICT = "conflict"
    """The transaction has ended the other way."""


class TransactionBuffer:
    """Transaction buffer of one topic."""

    def __init__(self, aborted: AbortedTransactions | None = None) -> None:
        self.aborted = aborted or AbortedTransactions()
        self.committed_count = self.aborted_count = 0
        """Since it was loaded."""
        self.low_water_marks: dict[int, int] = {}
        """Marks by coordinator: transactions up to the mark have ended everywhere."""
        self._open: OrderedDict[TxnId, _Open] = OrderedDict()
        """Open transactions in the order of their first messages."""
        self._ended: OrderedDict[TxnId, TxnAction] = OrderedDict()
        """Lately, and how; messages of theirs that come now are too late."""

    @property
    def open_count(self) -> int:
        return len(self._open)

    def limit(self) -> Position | None:
        """The last position that may be read; None: all."""
        return next(iter(self._open.values())).limit if self._open else None

    def limit_of(self, txn_id: TxnId) -> Position | None:
        """Right before its first message, while it is open."""
        found = self._open.get(txn_id)
        return None if found is None else found.limit

    # ---- messages

    def takes(self, txn_id: TxnId) -> bool:
        """Whether messages may still be published in it."""
        found = self._open.get(txn_id)
        if found is not None:
            return not found.is_ending
        is_below = txn_id.least <= self.low_water_marks.get(txn_id.most, -1)
        return not is_below and txn_id not in self._ended and txn_id not in self.aborted

    def began(self, txn_id: TxnId, last_confirmed: Position) -> None:
        """A message of it is about to be handed to the log, of which `last_confirmed` is the end now."""
        found = self._open.get(txn_id)
        if found is None:
            found = self._open[txn_id] = _Open(last_confirmed, is_placed=False)
        found.under_way += 1

    def stored(self, txn_id: TxnId, before: Position) -> None:
        """Notes that a message is stored, right after `before`."""
        found = self._open.get(txn_id)
        if found is None:
            return
        found.under_way -= 1
        if not found.is_placed:
            found.limit, found.is_placed = max(found.limit, before), True

    def refused(self, txn_id: TxnId) -> None:
        """The log certainly has not stored that message."""
        found = self._open.get(txn_id)
        if found is None:
            return
        found.under_way -= 1
        if not found.is_placed and not found.under_way and not found.is_ending:
            del self._open[txn_id]

    def replayed(self, txn_id: TxnId, before: Position) -> None:
        """A message of it was found on the log, right after `before`, when the topic was loaded."""
        if txn_id not in self._open and txn_id not in self.aborted:
            self._open[txn_id] = _Open(before, is_placed=True)

    def count_anew(self) -> None:
        """Resets the counts after a replay: replayed transactions ended earlier, and only those after the snapshot are seen."""
        self.committed_count = self.aborted_count = 0

    # ---- the end of transactions

    def ending(self, txn_id: TxnId, action: TxnAction, *, leaves_marker: bool = True) -> Ending:
        """Steps that a coordinator's decision takes. No more messages are taken with a marker to write, until `still_open`.
        An unknown transaction gets a marker too, once: it shows the next owner of the topic that late messages come too
        late, and only the owner of the topic can write it. This marker is left out without `leaves_marker`.
        """
        found = self._open.get(txn_id)
        if found is not None:
            found.is_ending = True
            return Ending.WRITE_MARKER
        before = self.ended_by(txn_id)
        if before is not None:
            return Ending.NOTHING if before is action else Ending.CONFLICT
        self._remember(txn_id, action)
        return Ending.WRITE_MARKER if leaves_marker else Ending.NOTHING

    def ended_by(self, txn_id: TxnId) -> TxnAction | None:
        """End of the transaction; None: it has not ended, or that is not known any more."""
        return TxnAction.ABORT if txn_id in self.aborted else self._ended.get(txn_id)

    def still_open(self, txn_id: TxnId) -> None:
        """Reopens a transaction: its marker was certainly not stored. A transaction without any message is forgotten."""
        found = self._open.get(txn_id)
        if found is None:
            self._ended.pop(txn_id, None)
            return
        found.is_ending = False
        if not found.is_placed and not found.under_way:
            del self._open[txn_id]

    def ended(self, txn_id: TxnId, action: TxnAction, marker: Position) -> None:
        """Notes that the transaction's marker is stored there."""
        was_open = self._open.pop(txn_id, None) is not None
        if action is TxnAction.ABORT:
            self.aborted.add(txn_id, marker)
            self.aborted_count += was_open
        else:
            self.committed_count += was_open
        self._remember(txn_id, action)

    def _remember(self, txn_id: TxnId, action: TxnAction) -> None:
        self._ended[txn_id] = action
        if len(self._ended) > _ENDED_KEPT_MAX:
            self._ended.popitem(last=False)

    def low_water_mark(self, coordinator: int, least: int) -> list[TxnId]:
        """Open transactions that the coordinator does not know any more: to be aborted. Marks do not fall."""
        mark = self.low_water_marks.get(coordinator, -1)
        if least > mark:
            mark = self.low_water_marks[coordinator] = least
        return [
            txn_id
            for txn_id, found in self._open.items()
            if txn_id.most == coordinator and txn_id.least <= mark and not found.is_ending
        ]

    def check_invariants(self) -> None:
        """AssertionError when the state contradicts itself."""
        placed = [found.limit for found in self._open.values() if found.is_placed]
        assert placed == sorted(placed), "open transactions are not in the order of their first messages"
        found = self._open.values()
        assert all(each.is_placed or each.under_way > 0 or each.is_ending for each in found), "open without a message"
        self.aborted.check_invariants()
