"""What Shared and Key_Shared have in common: pending entries per consumer, redelivery, and reading for whoever has room.

Entries that are to be delivered again wait in a replay set, which the two keep in their own way. Replay comes first, then new
entries (Apache: PersistentDispatcherMultipleConsumers).
"""

from abc import abstractmethod
from array import array
from typing import assert_never

from pyroaring import BitMap

from wire.position import Position

from .contract import (
    BatchIndexesAcknowledged,
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    ConsumerState,
    CursorReset,
    Deliver,
    DispatcherState,
    Effect,
    EntriesAcknowledged,
    LimitsChanged,
    MarkDeleteMoved,
    PermitsAdded,
    Read,
    RedeliveryRequested,
    RefuseConsumer,
    WritabilityChanged,
)
from .entry_sets import EntrySet, entry_set, union
from .machine import Machine, SubscriptionEvent
from .readable import Readable
from .receivers import Receiver, Receivers
from .redeliveries import Redeliveries
from .settings import DispatcherSettings


class MultipleConsumersDispatcher(Machine):
    """The frame; the choice of a consumer for each entry is the subclass's."""

    def __init__(self, settings: DispatcherSettings) -> None:
        super().__init__(settings)
        self._receivers = Receivers(settings)
        self._redeliveries = Redeliveries()

    @property
    def has_consumers(self) -> bool:
        return bool(len(self._receivers))

    def state(self) -> DispatcherState:
        receivers = self._receivers
        return DispatcherState(receivers.unacked_messages, receivers.is_blocked, len(self._replay_set()), None)

    def consumer_state(self, consumer: ConsumerId) -> ConsumerState | None:
        known = self._receivers.get(consumer)
        if known is None:
            return None
        return ConsumerState(consumer, known.name, known.permits, known.unacked_messages, known.is_blocked, True)

    # --- the subclass's part --------------------------------------------------------------------------------------------

    @abstractmethod
    def _replay_set(self) -> EntrySet: ...

    @abstractmethod
    def _join(self, added: ConsumerAdded, receiver: Receiver) -> RefuseConsumer | None:
        """A consumer is about to be among the receivers."""

    @abstractmethod
    def _leave(self, receiver: Receiver, pending: EntrySet) -> None:
        """A consumer is not among the receivers any more; others are. What it had is to be delivered again."""

    @abstractmethod
    def _give_back(self, receiver: Receiver, entries: EntrySet) -> None:
        """Entries that this consumer had are to be delivered again."""

    @abstractmethod
    def _drop(self, ledger_id: int, entry_ids: BitMap, had: BitMap) -> None:
        """Entries are acknowledged or gone; those in `had` were pending, the others may be in the replay set."""

    @abstractmethod
    def _drop_replay_between(self, start: Position, end: Position) -> EntrySet:
        """Entries in [start, end) of the replay set are gone; which these were."""

    @abstractmethod
    def _clear(self) -> None:
        """Forget everything but the consumers."""

    # --- events ---------------------------------------------------------------------------------------------------------

    def _take(self, event: SubscriptionEvent, now_ms: int, effects: list[Effect]) -> None:
        match event:
            case EntriesAcknowledged():
                self._on_acknowledged(event)
            case PermitsAdded() | WritabilityChanged():
                self._on_consumer_changed(event)
            case BatchIndexesAcknowledged(position, message_count):
                self._receivers.batch_indexes_acknowledged(position, message_count)
            case RedeliveryRequested():
                self._on_redelivery_requested(event)
            case ConsumerAdded():
                self._on_added(event, effects)
            case ConsumerRemoved(consumer):
                self._on_removed(consumer)
            case MarkDeleteMoved(mark_delete):
                self._on_mark_delete_moved(mark_delete)
            case CursorReset():
                self._start_again()
            case LimitsChanged(each, together):
                self._receivers.limit(each, together)
            case _:
                assert_never(event)

    def _on_acknowledged(self, event: EntriesAcknowledged) -> None:
        had = self._receivers.acknowledged(event.ledger_id, event.entry_ids, event.consumer)
        self._redeliveries.forget(event.ledger_id, event.entry_ids)
        self._drop(event.ledger_id, event.entry_ids, had)

    def _on_consumer_changed(self, event: PermitsAdded | WritabilityChanged) -> None:
        receiver = self._receivers.get(event.consumer)
        if receiver is None:
            return
        if isinstance(event, PermitsAdded):
            receiver.permits += event.permits
        else:
            receiver.is_writable = event.is_writable

    def _on_redelivery_requested(self, event: RedeliveryRequested) -> None:
        receiver = self._receivers.get(event.consumer)
        if receiver is None:
            return
        asked = receiver.pending if event.positions is None else entry_set(event.positions)
        returned = EntrySet()
        for ledger_id, entry_ids in asked.ledgers():
            had = self._receivers.taken_back(receiver, ledger_id, BitMap(entry_ids))
            returned.add(ledger_id, had)
            self._redeliveries.count(ledger_id, had)
        self._give_back(receiver, returned)

    def _on_added(self, event: ConsumerAdded, effects: list[Effect]) -> None:
        receiver = Receiver(event)
        refusal = self._join(event, receiver)
        if refusal is None:
            self._receivers.add(receiver)
        else:
            effects.append(refusal)

    def _on_removed(self, consumer: ConsumerId) -> None:
        receiver = self._receivers.get(consumer)
        if receiver is None:
            return
        pending = self._receivers.remove(receiver)
        self._leave(receiver, pending)
        if not len(self._receivers):
            self._start_again()

    def _on_mark_delete_moved(self, mark_delete: Position) -> None:
        end = Position(mark_delete.ledger_id, mark_delete.entry_id + 1)
        for receiver in self._receivers:
            for ledger_id, entry_ids in receiver.pending.between(_START, end).ledgers():
                self._drop(ledger_id, entry_ids, self._receivers.taken_back(receiver, ledger_id, entry_ids))
        self._drop_replay_between(_START, end)
        self._redeliveries.forget_up_to(mark_delete)
        if self._reader.position is not None and self._reader.position < end:
            self._reader.move_to(None)

    def _start_again(self) -> None:
        """At the cursor's place, with nothing delivered: a seek, or nobody is there any more."""
        self._receivers.clear()
        self._redeliveries.clear()
        self._reader.move_to(None)
        self._clear()

    def _on_nothing(self, read: Read) -> None:
        if read.is_replay and read.position is not None:
            self._forget_gone(read.position, _END)

    def _forget_gone(self, start: Position, end: Position) -> None:
        """A replay found no entries in [start, end): their ledger was deleted, so they are acknowledged or given up."""
        for ledger_id, entry_ids in self._drop_replay_between(start, end).ledgers():
            self._redeliveries.forget(ledger_id, entry_ids)

    def check_invariants(self) -> None:
        self._receivers.check_invariants()
        known = union(receiver.pending for receiver in self._receivers)
        known.update(self._replay_set())
        self._redeliveries.check_invariants(known)

    # --- deliveries -----------------------------------------------------------------------------------------------------

    def _deliver(
        self, found: Readable, receiver: Receiver, indexes: "range | array[int]", *, is_replay: bool
    ) -> tuple[Deliver, BitMap]:
        """Charge and note these entries; the effect, and the ids that are pending now."""
        entry_ids = found.entry_ids(indexes)
        costs = found.costs_at(indexes)
        message_count = len(indexes) if costs is None else sum(costs)
        self._receivers.delivered(receiver, found.run.ledger_id, entry_ids, costs, message_count)
        counts = self._redeliveries.of(found.run, indexes) if is_replay else None
        return found.deliver(receiver.consumer, indexes, message_count, counts), entry_ids


_START = Position(-1, 0)
_END = Position(1 << 63, 0)
