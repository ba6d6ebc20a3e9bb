"""Transactions of a coordinator: their states, the changes allowed, and the records that these write into its log. Pure.

Owns the transactions that have not ended, a bounded memory of those that have, and the times at which they are due. Never
writes or waits: it gives a record for the log and takes it for done; the driver answers no client before the record is durable,
and drops the machine when that fails, to begin again from the log.

Apache: MLTransactionMetadataStore, TxnMetaImpl, TransactionTimeoutTracker. We differ in one: ending a transaction again in the
same way succeeds, because a client that missed the answer sends it again; Apache calls it unknown by then.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, assert_never

from wire.transactions import TxnAction, TxnId

from ..errors import BrokerError, ServerError
from .records import (
    Opened,
    Participant,
    PartitionsAdded,
    Place,
    Record,
    StatusChanged,
    SubscriptionsAdded,
    TxnStatus,
    TxnSubscription,
    name_of,
)

R = TypeVar("R", bound=Record)

ACTIVE_MAX = 1_000_000
"""Transactions of a coordinator where the settings have no bound."""
ENDED_MAX = 10_000
"""Ended transactions whose outcome is still known."""
PARTICIPANTS_MAX = 10_000
"""Partitions and subscriptions of one transaction."""
AGAINST_MAX = 10
"""Participants remembered of those that ended one transaction the other way."""

_NEXT = {
    (TxnStatus.OPEN, TxnStatus.COMMITTING),
    (TxnStatus.OPEN, TxnStatus.ABORTING),
    (TxnStatus.COMMITTING, TxnStatus.COMMITTED),
    (TxnStatus.ABORTING, TxnStatus.ABORTED),
}
_ENDING = {TxnAction.COMMIT: TxnStatus.COMMITTING, TxnAction.ABORT: TxnStatus.ABORTING}
_ENDED = {TxnStatus.COMMITTING: TxnStatus.COMMITTED, TxnStatus.ABORTING: TxnStatus.ABORTED}


@dataclass(slots=True)
class Transaction:
    """One that has not ended. `places`: of its records, in order of the log, as far as they are stored."""

    least: int
    start_ms: int
    timeout_ms: int
    owner: str | None
    status: TxnStatus = TxnStatus.OPEN
    partitions: dict[str, None] = field(default_factory=dict)
    subscriptions: dict[TxnSubscription, None] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    against: tuple[Participant, ...] = ()
    """Participants that had ended it the other way before."""

    @property
    def due_ms(self) -> int:
        return self.start_ms + self.timeout_ms


@dataclass(frozen=True, slots=True)
class Ended:
    """Memory of a transaction that has ended."""

    status: TxnStatus
    owner: str | None
    against: tuple[Participant, ...] = ()


class TransactionMachine:
    """Transactions of one coordinator."""

    def __init__(self, coordinator_id: int, active_max: int = 0) -> None:
        self.coordinator_id = coordinator_id
        self.last_sequence = -1
        self._active_max = min(active_max or ACTIVE_MAX, ACTIVE_MAX)
        self._active: dict[int, Transaction] = {}
        """Transactions in the order of their numbers, in which they are opened."""
        self._ended: OrderedDict[int, Ended] = OrderedDict()
        self._due: list[tuple[int, int]] = []
        """A heap of (due_ms, number), in which those that have ended stay until they come up or are swept out."""

    # ---- What there is

    @property
    def active_count(self) -> int:
        return len(self._active)

    def active(self) -> Iterator[Transaction]:
        return iter(self._active.values())

    @property
    def low_water_mark(self) -> int:
        """All up to here have ended; Apache says 0 where there is none that has not."""
        return next(iter(self._active), 1) - 1

    def get(self, least: int) -> Transaction:
        """BrokerError(TRANSACTION_NOT_FOUND)."""
        found = self._active.get(least)
        if found is None:
            raise self.not_found(least)
        return found

    def not_found(self, least: int) -> BrokerError:
        text = f"The transaction with this txdID `{TxnId(self.coordinator_id, least)}`not found "
        return BrokerError(ServerError.TRANSACTION_NOT_FOUND, text)

    def owner(self, least: int) -> str | None:
        """None: every client may use it. BrokerError(TRANSACTION_NOT_FOUND)."""
        ended = self._ended.get(least)
        return self.get(least).owner if ended is None else ended.owner

    # ---- Decisions: each gives the record to write, or None where nothing has to be

    def open(self, owner: str | None, timeout_ms: int, now_ms: int) -> Opened:
        """BrokerError(TOO_MANY_REQUESTS) when there are as many as there may be (in Apache the client gets no answer at
        all).
        """
        if len(self._active) >= self._active_max:
            text = f"New txn op reach max active txn! tcId : {self.coordinator_id} (maxActiveTransactionsPerCoordinator)"
            raise BrokerError(ServerError.TOO_MANY_REQUESTS, text)
        record = Opened(self.last_sequence + 1, now_ms, timeout_ms, owner)
        self._apply(record)
        return record

    def add_partitions(self, least: int, partitions: Sequence[str]) -> PartitionsAdded | None:
        """TRANSACTION_NOT_FOUND, INVALID_TXN_STATUS, NOT_ALLOWED for too many."""
        there = self._open(least).partitions
        new = tuple(dict.fromkeys(each for each in partitions if each not in there))
        self._check_room(least, len(new))
        return self._done(PartitionsAdded(least, new)) if new else None

    def add_subscriptions(self, least: int, subscriptions: Sequence[TxnSubscription]) -> SubscriptionsAdded | None:
        """Adds subscriptions, like `add_partitions`."""
        there = self._open(least).subscriptions
        new = tuple(dict.fromkeys(each for each in subscriptions if each not in there))
        self._check_room(least, len(new))
        return self._done(SubscriptionsAdded(least, new)) if new else None

    def end(self, least: int, action: TxnAction) -> StatusChanged | None:
        """None: it is on its way to that end, or has come there. TRANSACTION_NOT_FOUND, INVALID_TXN_STATUS; and see
        `require_whole`."""
        ended = self._ended.get(least)
        if ended is not None and ended.status.action is action:
            self.require_whole(least)
            return None
        found = self.get(least)
        if found.status is not TxnStatus.OPEN:
            if found.status.action is action:
                return None
            raise self._wrong_status(least, _ENDING[action], found.status)
        return self._done(StatusChanged(least, TxnStatus.OPEN, _ENDING[action]))

    def is_ending(self, least: int) -> bool:
        """Whether it is decided how it ends, and not done yet."""
        found = self._active.get(least)
        return found is not None and found.status in _ENDED

    def finish(self, least: int, against: Sequence[Participant] = ()) -> StatusChanged:
        """All participants have ended it, except those that had ended it the other way. Call `ended` once the record is
        stored.
        """
        now, named = self.get(least).status, against[:AGAINST_MAX]
        partitions = tuple(each for each in named if isinstance(each, str))
        subscriptions = tuple(each for each in named if not isinstance(each, str))
        return self._done(StatusChanged(least, now, _ENDED[now], partitions, subscriptions))

    def require_whole(self, least: int) -> None:
        """BrokerError(TRANSACTION_CONFLICT) of a transaction that is known to have ended the other way at some participants."""
        ended = self._ended.get(least)
        if ended is not None and ended.against:
            names = ", ".join(map(name_of, ended.against))
            text = f"Transaction {TxnId(self.coordinator_id, least)} is {ended.status.name}, but was ended otherwise at {names}"
            raise BrokerError(ServerError.TRANSACTION_CONFLICT, text)

    def due(self, now_ms: int) -> list[int]:
        """Open transactions whose time is up. Each is returned once."""
        found: list[int] = []
        while self._due and self._due[0][0] <= now_ms:
            _, least = heapq.heappop(self._due)
            if least in self._active and self._active[least].status is TxnStatus.OPEN:
                found.append(least)
        return found

    def next_due_ms(self) -> int | None:
        """None: there is none."""
        return self._due[0][0] if self._due else None

    # ---- What came of it

    def stored(self, record: Record, place: Place) -> None:
        """Notes the place of a record of one of the decisions above."""
        found = self._active.get(record.least)
        if found is not None:
            found.places.append(place)

    def ended(self, least: int) -> list[Place]:
        """Forgets a transaction whose last record is stored; returns the places of its records, which may be deleted."""
        gone = self._active.pop(least)
        assert gone.status.has_ended, gone
        self._remember(least, Ended(gone.status, gone.owner, gone.against))
        if len(self._due) > 2 * len(self._active) + 1000:
            self._due = [each for each in self._due if each[1] in self._active]
            heapq.heapify(self._due)
        return gone.places

    def replay(self, record: Record, place: Place, last_sequence: int) -> list[Place]:
        """Replays a record of the log, in its order; returns the places that are not needed any more. Reading may begin
        amid ended transactions: their later records are not needed.
        """
        self.last_sequence = max(self.last_sequence, last_sequence)
        found = self._active.get(record.least)
        if found is None:
            if isinstance(record, StatusChanged) and record.new.has_ended:
                self._remember(record.least, Ended(record.new, None, _against(record)))
            if not isinstance(record, Opened):
                return [place]
        elif not self._is_next(found, record):
            return [place]
        self._apply(record)
        self.stored(record, place)
        if isinstance(record, StatusChanged) and record.new.has_ended:
            return self.ended(record.least)
        return []

    # ---- Within

    def _is_next(self, found: Transaction, record: Record) -> bool:
        match record:
            case Opened():
                return False
            case PartitionsAdded() | SubscriptionsAdded():
                return found.status is TxnStatus.OPEN
            case StatusChanged():
                return found.status is record.expected and (record.expected, record.new) in _NEXT
        assert_never(record)

    def _done(self, record: R) -> R:
        self._apply(record)
        return record

    def _apply(self, record: Record) -> None:
        match record:
            case Opened():
                new = Transaction(record.least, record.start_ms, record.timeout_ms, record.owner)
                self._active[record.least] = new
                self.last_sequence = max(self.last_sequence, record.least)
                heapq.heappush(self._due, (new.due_ms, record.least))
            case PartitionsAdded():
                self._active[record.least].partitions.update(dict.fromkeys(record.partitions))
            case SubscriptionsAdded():
                self._active[record.least].subscriptions.update(dict.fromkeys(record.subscriptions))
            case StatusChanged():
                assert (record.expected, record.new) in _NEXT, record
                self._active[record.least].status = record.new
                self._active[record.least].against = _against(record)
            case _:
                assert_never(record)

    def _remember(self, least: int, ended: Ended) -> None:
        self._ended[least] = ended
        if len(self._ended) > ENDED_MAX:
            self._ended.popitem(last=False)

    def _open(self, least: int) -> Transaction:
        found = self.get(least)
        if found.status is not TxnStatus.OPEN:
            raise self._wrong_status(least, TxnStatus.OPEN, found.status)
        return found

    def _wrong_status(self, least: int, expected: TxnStatus, actual: TxnStatus) -> BrokerError:
        txn_id = TxnId(self.coordinator_id, least)
        text = f"Expect Txn `{txn_id}` to be in {expected.name} status but it is in {actual.name} status"
        return BrokerError(ServerError.INVALID_TXN_STATUS, text)

    def _check_room(self, least: int, more: int) -> None:
        found = self.get(least)
        if len(found.partitions) + len(found.subscriptions) + more > PARTICIPANTS_MAX:
            text = (
                f"Transaction {TxnId(self.coordinator_id, least)} has more than {PARTICIPANTS_MAX} partitions and subscriptions"
            )
            raise BrokerError(ServerError.NOT_ALLOWED, text)

    def check_invariants(self, durable: Iterable[int] = ()) -> None:
        """Asserts the invariants, for tests."""
        assert list(self._active) == sorted(self._active), "in the order of their numbers"
        assert all(least <= self.last_sequence for least in self._active)
        assert not set(self._active) & set(self._ended)
        assert len(self._ended) <= ENDED_MAX
        assert all(each.status is not TxnStatus.OPEN or (each.due_ms, each.least) in self._due for each in self.active())


def _against(record: StatusChanged) -> tuple[Participant, ...]:
    return (*record.partitions, *record.subscriptions)
