"""Base of Shared and Key_Shared: pending entries per consumer, redelivery, and reading for consumers with room.

Entries that are to be delivered again wait in a replay set, which the two keep in their own way. Replay comes first, then new
entries (Apache: PersistentDispatcherMultipleConsumers).
"""

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from typing import assert_never

from pyroaring import BitMap

from wire.picked_runs import Picks
from wire.position import Position

from .contract import (
    BatchIndexesAcknowledged,
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    ConsumerState,
    CursorReset,
    DelaysChanged,
    Deliver,
    DispatcherState,
    Effect,
    EntriesAcknowledged,
    EntriesPicked,
    EntriesRead,
    EntriesReturned,
    Event,
    IndexFound,
    IndexLoaded,
    IndexLoading,
    LimitsChanged,
    MarkDeleteMoved,
    PermitsAdded,
    Read,
    RedeliveryRequested,
    RefuseConsumer,
    WallClockRead,
    WritabilityChanged,
)
from .delays.delays import Delays
from .entry_sets import EntrySet, entry_set, union
from .machine import Machine, SubscriptionEvent
from .permits import Receiver, Receivers
from .reading.held_back import HeldBack
from .reading.readable import Readable
from .reading.replays import replay
from .redeliveries import Redeliveries
from .settings import DispatcherSettings


class MultipleConsumersDispatcher(Machine):
    """The frame; the choice of a consumer for each entry is the subclass's."""

    _receivers: Receivers
    _redeliveries: Redeliveries
    _held_back: HeldBack
    """Entries before the reader's position, and neither pending nor in the replay set."""

    def __init__(self, settings: DispatcherSettings) -> None:
        super().__init__(settings)
        self._receivers = Receivers(settings)
        self._redeliveries = Redeliveries()
        self._held_back = HeldBack()
        self._reads_far = False
        """Most entries of the last read are held back: permits do not give the size of a read."""
        self._is_loading = False
        """Whether stored held-back entries are being read: nothing new is read until then."""

    @property
    def needs_deliver_times(self) -> bool:  # type: ignore[override]  # of other dispatchers it is always the same
        return self._held_back.is_enabled

    @property
    def delays(self) -> Delays:
        return self._held_back.delays

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = super().handle(event, now_ms)
        if self._held_back:
            self._held_back.ask_for_time(effects)
        return effects

    @property
    def has_consumers(self) -> bool:
        return bool(len(self._receivers))

    def state(self) -> DispatcherState:
        return self._state(len(self._replay_set()), 0)

    def _state(self, in_replay: int, draining_hashes: int) -> DispatcherState:
        receivers, delays = self._receivers, self._held_back.delays
        return DispatcherState(
            receivers.unacked_messages,
            receivers.is_blocked,
            in_replay,
            None,
            draining_hashes,
            len(delays),
            delays.size_bytes,
            delays.bucket_count,
            self._reader.position,
            self._reader.is_at_end,
        )

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
        """A consumer has left, and others remain: its entries are to be delivered again."""

    @abstractmethod
    def _give_back(self, receiver: Receiver, entries: EntrySet) -> None:
        """Entries that this consumer had are to be delivered again."""

    @abstractmethod
    def _take_in(self, ledger_id: int, entry_ids: BitMap) -> None:
        """Entries before the reader's position that no consumer has, and that do not wait, are to be delivered."""

    @abstractmethod
    def _drop(self, ledger_id: int, entry_ids: BitMap, had: BitMap) -> None:
        """Entries are acknowledged or gone; those in `had` were pending, the others may be in the replay set."""

    @abstractmethod
    def _drop_replay_between(self, start: Position, end: Position) -> EntrySet:
        """Entries in [start, end) of the replay set are gone; which these were."""

    @abstractmethod
    def _came_due(self, entries: EntrySet) -> None:
        """Entries that were held back may be delivered now."""

    @abstractmethod
    def _rest(self) -> None:
        """The last consumer has left, and its entries are to be delivered again."""

    @abstractmethod
    def _clear(self) -> None:
        """Forget everything but the consumers."""

    # --- events ---------------------------------------------------------------------------------------------------------

    def _take(self, event: SubscriptionEvent, now_ms: int, effects: list[Effect]) -> None:
        match event:
            case EntriesAcknowledged() | EntriesReturned():
                self._on_entries(event)
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
            case LimitsChanged() | DelaysChanged() | WallClockRead() | IndexLoading() | IndexFound() | IndexLoaded():
                self._on_rule_or_time(event)
            case _:
                assert_never(event)

    def _on_rule_or_time(
        self, event: LimitsChanged | DelaysChanged | WallClockRead | IndexLoading | IndexFound | IndexLoaded
    ) -> None:
        match event:
            case LimitsChanged(each, together):
                self._receivers.limit(each, together)
            case DelaysChanged():
                self._came_due(self._held_back.change(event))
            case WallClockRead(wall_ms):
                self._came_due(self._held_back.take_due(wall_ms))
            case _:
                self._on_index(event)

    def _on_index(self, event: IndexLoading | IndexFound | IndexLoaded) -> None:
        match event:
            case IndexLoading():
                self._is_loading = True
            case IndexFound():
                replay = self._replay_set()
                for ledger_id in event.found:
                    self._held_back.take_known(event, ledger_id, self._in_hand(ledger_id, replay))
            case IndexLoaded(unacknowledged, end):
                self._is_loading = False
                if end is not None:
                    self._came_due(self._unknown_of(unacknowledged))
                    self._reader.move_to(end)

    def _in_hand(self, ledger_id: int, replay: EntrySet) -> BitMap:
        """Entries of a ledger that a consumer has, or is to get: due entries may have gone out while the rest was loaded."""
        found = BitMap(replay.in_ledger(ledger_id))
        for receiver in self._receivers:
            found |= receiver.pending.in_ledger(ledger_id)
        return found

    def _unknown_of(self, unacknowledged: Sequence[tuple[int, BitMap]]) -> EntrySet:
        """Entries that were stored nowhere: they came due before, or their index is lost. Each is looked at."""
        unknown, replay = EntrySet(), self._replay_set()
        for ledger_id, entry_ids in unacknowledged:
            unknown.add(ledger_id, entry_ids - self._held_back.delays.known_in(ledger_id) - self._in_hand(ledger_id, replay))
        return unknown

    def _on_entries(self, event: EntriesAcknowledged | EntriesReturned) -> None:
        if isinstance(event, EntriesReturned):
            self._on_returned(event.ledger_id, event.entry_ids)
        else:
            self._on_acknowledged(event)

    def _on_acknowledged(self, event: EntriesAcknowledged) -> None:
        had = self._receivers.acknowledged(event.ledger_id, event.entry_ids, event.consumer)
        self._redeliveries.forget(event.ledger_id, event.entry_ids)
        self._held_back.remove(event.ledger_id, event.entry_ids)
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

    def _on_returned(self, ledger_id: int, entry_ids: BitMap) -> None:
        rest = BitMap(entry_ids)
        for receiver in self._receivers:
            returned = EntrySet()
            returned.add(ledger_id, self._receivers.taken_back(receiver, ledger_id, rest))
            for _, had in returned.ledgers():
                self._redeliveries.count(ledger_id, had)
                self._give_back(receiver, returned)
                rest -= had
        reached = self._reader.position
        if reached is not None and reached.ledger_id == ledger_id:
            rest &= BitMap(range(reached.entry_id))
        if reached is not None and rest and reached.ledger_id >= ledger_id:
            self._take_in(ledger_id, rest)

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
        if len(self._receivers):
            return
        if self._held_back:
            self._stay()
        else:
            self._start_again()

    def _on_mark_delete_moved(self, mark_delete: Position) -> None:
        end = Position(mark_delete.ledger_id, mark_delete.entry_id + 1)
        for receiver in self._receivers:
            for ledger_id, entry_ids in receiver.pending.between(_START, end).ledgers():
                self._drop(ledger_id, entry_ids, self._receivers.taken_back(receiver, ledger_id, entry_ids))
        self._drop_replay_between(_START, end)
        self._held_back.remove_between(_START, end)
        self._redeliveries.forget_up_to(mark_delete)
        if self._reader.position is not None and self._reader.position < end:
            self._reader.move_to(None)

    def _start_again(self) -> None:
        """Starts at the cursor's position, with nothing delivered: after a seek, or when all consumers have left."""
        self._receivers.clear()
        self._redeliveries.clear()
        self._reader.move_to(None)
        self._held_back.delays.clear()
        self._clear()

    def _stay(self) -> None:
        """Keeps the place without consumers where much may be held back: the next one goes on here, without another read."""
        self._redeliveries.clear()
        self._reader.cancel()
        self._rest()

    def _entries_max(self, room: int) -> int:
        """Number of entries to read at once for that much room."""
        return self._settings.dispatcher_max_read_batch_size if self._reads_far else self._reader.entries_for(room)

    def _judge(self, answer: EntriesRead, wanted: BitMap | None) -> tuple[BitMap | None, BitMap | None]:
        """Splits these entries of a run (None: all) into those to deliver and those held back (None: nothing)."""
        held = self._held_back.of(answer)
        if held is None:
            return wanted, None
        run = answer.run
        every = BitMap(range(run.first_entry_id, run.last_entry_id + 1)) if wanted is None else wanted
        return every - held, held & every

    def _on_nothing(self, read: Read) -> None:
        if read.picks is not None:
            self._forget(read.picks)
        elif read.is_replay and read.position is not None:
            self._forget_gone(read.position, _END)

    def _read_again(self, waiting: Iterable[tuple[int, BitMap]], entries_max: int) -> Read:
        """See `replays.replay`."""
        return replay(self._reader, waiting, entries_max, self._settings.dispatcher_max_read_batch_size)

    def _forget_unread(self, read: Read, answer: EntriesRead) -> None:
        """Forgets entries that were to be read again and come before the run: they are not there."""
        if read.picks is None and read.position is not None:
            self._forget_gone(read.position, Position(answer.run.ledger_id, answer.run.first_entry_id))

    def _on_picked(self, read: Read, answer: EntriesPicked, effects: list[Effect]) -> None:
        self._forget(answer.gone)
        for part in answer.parts:
            self._on_read(read, part, effects)

    def _forget(self, gone: Picks) -> None:
        """These could not be picked, as `_forget_gone`."""
        for ledger_id, entry_ids in gone:
            self._drop(ledger_id, entry_ids, BitMap())
            self._redeliveries.forget(ledger_id, entry_ids)

    def _forget_gone(self, start: Position, end: Position) -> None:
        """A replay found no entries in [start, end): their ledger was deleted, so they are acknowledged or given up."""
        for ledger_id, entry_ids in self._drop_replay_between(start, end).ledgers():
            self._redeliveries.forget(ledger_id, entry_ids)

    def check_invariants(self) -> None:
        self._receivers.check_invariants()
        known = union(receiver.pending for receiver in self._receivers)
        known.update(self._replay_set())
        waiting = self._held_back.delays.waiting()
        self._held_back.delays.check_invariants()
        for ledger_id, entry_ids in waiting.ledgers():
            assert not known.in_ledger(ledger_id) & entry_ids, "held back and delivered"
        known.update(waiting)
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
