"""Key_Shared: every entry to the owner of its key; the order of each key holds through joins, leaves, nacks and slow consumers.

Entries that cannot go now wait, and reading goes on for the other keys: up to keySharedLookAheadMsgInReplayThresholdPerConsumer
for each consumer and ...PerSubscription together. No new entry is read at that bound until a waiting one could go. Keys whose
slots no consumer brought (STICKY) are passed over, with a note of the place to read from once consumers change. `keys` has the
rules of order.
"""

from array import array
from collections.abc import Mapping

from pyroaring import BitMap

from broker.errors import ServerError
from wire.kernels.keys import slots_of
from wire.position import Position
from wire.run import FLAG_CHUNK

from .contract import (
    AcknowledgeMarkers,
    ConsumerAdded,
    ConsumerId,
    ConsumerState,
    DispatcherState,
    Effect,
    EntriesRead,
    KeySharedMode,
    KeySharedPolicy,
    Read,
    RefuseConsumer,
)
from .entry_sets import EntrySet, union
from .keys.begun_slots import BegunSlots
from .keys.chunks import chunk_of
from .keys.keys import Keys
from .keys.selectors import AutoSplit, ConsistentHashing, ExclusiveRanges, Selector, SlotsTaken
from .multiple import MultipleConsumersDispatcher
from .permits import UNLIMITED, Receiver
from .reading.readable import Readable, readable
from .reading.replays import picks_in
from .settings import DispatcherSettings


class KeySharedDispatcher(MultipleConsumersDispatcher):
    """The machine. The policy is that of the first consumer, as long as any is there."""

    needs_key_hashes = True

    def __init__(self, settings: DispatcherSettings) -> None:
        super().__init__(settings)
        self._use_policy(KeySharedPolicy())
        self._unowned_from: Position | None = None
        """The first entry that was passed over because no consumer has its slot."""
        self._read_again_until: Position | None = None
        """Position before which entries may be read that are delivered or wait already."""
        self._was_replay = False
        """The last read. Replays come first, but a consumer without waiting entries gets every second read."""
        self._due = EntrySet()
        """Entries before the reader's position, to be dealt as if never seen: held back until now, or without a consumer."""
        self._due_unowned = EntrySet()
        """Entries taken from `_due` when they were read, whose slots have no consumer."""
        self._begun = BegunSlots()
        self._due_read: int | None = None
        """The id of the last read of due entries."""

    def _use_policy(self, policy: KeySharedPolicy) -> None:
        self._policy = policy
        self._selector: Selector = self._new_selector(policy)
        self._keys = Keys(self._selector.assignment(), is_ordered=not policy.allow_out_of_order)

    def _new_selector(self, policy: KeySharedPolicy) -> Selector:
        if policy.mode is KeySharedMode.STICKY:
            return ExclusiveRanges()
        if self._settings.subscription_key_shared_use_consistent_hashing:
            return ConsistentHashing(self._settings.subscription_key_shared_consistent_hashing_replica_points)
        return AutoSplit()

    def state(self) -> DispatcherState:
        return self._state(self._keys.waiting_entries + len(self._due) + len(self._due_unowned), self._keys.draining_slots)

    def consumer_state(self, consumer: ConsumerId) -> ConsumerState | None:
        known = self._receivers.get(consumer)
        if known is None:
            return None
        ranges = self._keys.assignment.ranges(consumer)
        return ConsumerState(consumer, known.name, known.permits, known.unacked_messages, known.is_blocked, True, ranges)

    # --- consumers ------------------------------------------------------------------------------------------------------

    def _join(self, added: ConsumerAdded, receiver: Receiver) -> RefuseConsumer | None:
        policy = added.key_shared or KeySharedPolicy()
        if not self.has_consumers:
            self._use_policy(policy)
        elif policy != self._policy:
            message = "the consumers of this subscription have another Key_Shared policy"
            return RefuseConsumer(added.consumer, ServerError.CONSUMER_BUSY, message)
        try:
            self._selector.add(added)
        except SlotsTaken as taken:
            return RefuseConsumer(added.consumer, ServerError.CONSUMER_ASSIGN, str(taken))
        self._assign()
        return None

    def _leave(self, receiver: Receiver, pending: EntrySet) -> None:
        self._selector.remove(receiver.consumer)
        self._begun.left(receiver.consumer)
        self._keys.given_back(pending)
        self._assign()

    def _assign(self) -> None:
        self._keys.assign(self._begun.kept_in(self._selector.assignment()))
        if self._unowned_from is not None:
            reached = self._reader.position
            if reached is not None and (self._read_again_until is None or self._read_again_until < reached):
                self._read_again_until = reached
            self._reader.move_to(self._unowned_from)
            self._unowned_from = None
        self._due.update(self._due_unowned)
        self._due_unowned.clear()

    # --- entries --------------------------------------------------------------------------------------------------------

    def first_to_read_again(self) -> Position | None:
        return self._keys.first_waiting()

    def _replay_set(self) -> EntrySet:
        return union((self._keys.waiting(), self._due, self._due_unowned))

    def _give_back(self, receiver: Receiver, entries: EntrySet) -> None:
        self._keys.given_back(entries)

    def _take_in(self, ledger_id: int, entry_ids: BitMap) -> None:
        """Deals these entries as if never seen, but for those that wait already; their owners are known when they are read."""
        self._due.add(ledger_id, self._unknown_of_these(ledger_id, entry_ids))

    def _drop(self, ledger_id: int, entry_ids: BitMap, had: BitMap) -> None:
        self._keys.gone(ledger_id, entry_ids, had)
        if self._due or self._due_unowned:
            self._due.remove(ledger_id, entry_ids)
            self._due_unowned.remove(ledger_id, entry_ids)
        if self._begun:
            self._begun.dropped(ledger_id, entry_ids)
            self._move_slots()

    def _move_slots(self) -> None:
        """Slots that were kept with a consumer that had begun a message, and need not be any more."""
        if self._begun.may_move:
            self._keys.assign(self._begun.kept_in(self._selector.assignment()))

    def _drop_replay_between(self, start: Position, end: Position) -> EntrySet:
        dropped = self._keys.waiting_between(start, end)
        for ledger_id, entry_ids in dropped.ledgers():
            self._keys.gone(ledger_id, entry_ids, BitMap())
        dropped.update(self._due.remove_between(start, end))
        dropped.update(self._due_unowned.remove_between(start, end))
        return dropped

    def _came_due(self, entries: EntrySet) -> None:
        self._due.update(entries)

    def _rest(self) -> None:
        """Deals waiting entries anew: the next consumer may have another policy. All of them go before unread entries."""
        self._due.update(self._keys.waiting())
        self._keys.clear()

    def _clear(self) -> None:
        self._keys.clear()
        self._due.clear()
        self._due_unowned.clear()
        self._begun.clear()
        self._unowned_from = self._read_again_until = None

    # --- reading --------------------------------------------------------------------------------------------------------

    def _go_on(self, now_ms: int, effects: list[Effect]) -> None:
        is_at_end = self._reader.is_at_end and not self._due
        if not self._reader.is_idle(now_ms) or (is_at_end and not self._keys.waiting_entries):
            return
        if self._is_loading:
            return  # the older one of two of a key may be found last
        rooms = self._rooms()
        if not rooms:
            return
        entries_max = self._reader.entries_for(sum(rooms.values()))
        new_max = 0 if is_at_end else min(entries_max, self._look_ahead_left())
        first = self._keys.first_ready(rooms)
        if first is not None and not (self._was_replay and new_max > 0 and self._keys.has_none_ready(rooms)):
            each = {consumer: self._reader.entries_for(room) for consumer, room in rooms.items()}
            wanted = self._keys.next_ready(each)
            effects.append(self._read_again(wanted.ledgers(), len(wanted)))
            self._was_replay = True
        elif new_max > 0:
            self._read_new(new_max, effects)
            self._was_replay = False

    def _read_new(self, entries_max: int, effects: list[Effect]) -> None:
        """Takes due entries first: some may be older than entries that were never read, and of the same key."""
        if self._due:
            read = self._read_again(self._due.ledgers(), entries_max)
            self._due_read = read.read_id
            effects.append(read)
        elif not self._held_back.delays.is_full:
            effects.append(self._reader.read_on(min(self._entries_max(entries_max), self._look_ahead_left())))

    def _rooms(self) -> dict[int, int]:
        """Consumers with room, and how much."""
        rooms: dict[int, int] = {receiver.consumer: self._receivers.room(receiver) for receiver in self._receivers}
        return {consumer: room for consumer, room in rooms.items() if room}

    def _look_ahead_left(self) -> int:
        settings = self._settings
        each = settings.key_shared_look_ahead_msg_in_replay_threshold_per_consumer * len(self._receivers)
        together = settings.key_shared_look_ahead_msg_in_replay_threshold_per_subscription
        return min(each or UNLIMITED, together or UNLIMITED) - self._keys.waiting_for_owners()

    def _on_read(self, read: Read, answer: EntriesRead, effects: list[Effect]) -> None:
        if read.is_replay:
            if read.read_id == self._due_read:
                self._on_due(read, answer, effects)
            else:
                self._on_replay(read, answer, effects)
            return
        wanted, held = self._judge(answer, self._unknown(answer))
        found, markers = readable(answer, wanted)
        self._reads_far = held is not None and 2 * len(held) > answer.run.count
        if held is not None:
            self._held_back.keep(answer, held - found.gone)
        if markers:
            effects.append(AcknowledgeMarkers(answer.run.ledger_id, markers))
        unowned = self._deal_new(answer, found, effects)
        if unowned:
            position = Position(answer.run.ledger_id, answer.run.first_entry_id + unowned[0])
            self._unowned_from = min(self._unowned_from or position, position)

    def _deal_new(self, answer: EntriesRead, found: Readable, effects: list[Effect]) -> "array[int]":
        """Deals new entries; returns the indexes of those without an owner."""
        if not found:
            return array("I")
        assert answer.key_hashes is not None, "Key_Shared needs the hashes of the keys"
        slots = slots_of(answer.key_hashes, found.indexes)
        given, unowned = self._keys.deal_new(found, slots, self._rooms(), self._receivers.room_together())
        self._send(found, given, effects, is_replay=False)
        self._note_chunks(answer, given)
        return unowned

    def _note_chunks(self, answer: EntriesRead, given: "Mapping[int, array[int]]") -> None:
        """Notes which consumers have begun which chunked message, and which have got the last chunk."""
        if not answer.metadata.any_flags & FLAG_CHUNK:
            return
        run, flags = answer.run, answer.metadata.flags
        for consumer, indexes in given.items():
            for index in indexes:
                position = Position(run.ledger_id, run.first_entry_id + index)
                chunk = chunk_of(run, position.entry_id) if flags[index] & FLAG_CHUNK else None
                if chunk is not None:
                    self._begun.delivered(chunk, position, self._keys.slot(*position), ConsumerId(consumer))
        self._move_slots()

    def _on_due(self, read: Read, answer: EntriesRead, effects: list[Effect]) -> None:
        """Places each entry: with a consumer, waiting for one, held back once more, or without an owner."""
        run = answer.run
        self._forget_unread(read, answer)
        here = BitMap(range(run.first_entry_id, run.last_entry_id + 1))
        if read.picks is not None:
            here &= picks_in(read.picks, run.ledger_id)
        wanted, held = self._judge(answer, self._due.in_ledger(run.ledger_id) & here)
        found, markers = readable(answer, wanted)
        if markers:
            effects.append(AcknowledgeMarkers(run.ledger_id, markers))
        self._due.remove(run.ledger_id, here)
        if held is not None:
            self._held_back.keep(answer, held - found.gone)
        unowned = self._deal_new(answer, found, effects)
        if unowned:
            self._due_unowned.add(run.ledger_id, found.entry_ids(unowned))

    def _on_replay(self, read: Read, answer: EntriesRead, effects: list[Effect]) -> None:
        run = answer.run
        start = Position(run.ledger_id, run.first_entry_id)
        self._forget_unread(read, answer)
        rooms = self._rooms()
        if read.picks is None:
            wanted = self._keys.ready_in(run.ledger_id, rooms, start)
        else:
            wanted = self._picked(run.ledger_id, rooms, start, picks_in(read.picks, run.ledger_id))
        chosen, held = self._judge(answer, wanted)
        found, _ = readable(answer, chosen)
        if found.gone:
            gone = found.gone & wanted
            self._keys.gone(run.ledger_id, gone, BitMap())
            self._redeliveries.forget(run.ledger_id, gone)
        if held:
            self._keys.gone(run.ledger_id, held, BitMap())
            self._held_back.keep(answer, held - found.gone)
        given = self._keys.deal_again(found, dict(rooms), self._receivers.room_together())
        self._send(found, given, effects, is_replay=True)
        self._note_chunks(answer, given)

    def _picked(self, ledger_id: int, rooms: Mapping[int, int], start: Position, picks: BitMap) -> BitMap:
        """Picked entries that may go: for each consumer none that comes after an unpicked entry which waits too."""
        found = BitMap()
        for consumer in rooms:
            ready = self._keys.ready_in(ledger_id, (consumer,), start)
            unread = ready - picks
            found |= ready & picks & BitMap(range(unread.min())) if unread else ready & picks
        return found

    def _unknown(self, answer: EntriesRead) -> BitMap | None:
        """Entries neither delivered nor waiting, where entries are read again after being passed over."""
        run = answer.run
        if self._read_again_until is None:
            return None
        if self._read_again_until <= (run.ledger_id, run.first_entry_id):
            self._read_again_until = None
            return None
        return self._unknown_of_these(run.ledger_id, BitMap(range(run.first_entry_id, run.last_entry_id + 1)))

    def _unknown_of_these(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        """Entries among these that are neither delivered, nor waiting, nor held back."""
        unknown = entry_ids - self._keys.known_in(ledger_id)
        for known in (self._held_back.delays.waiting(), self._due, self._due_unowned):
            unknown -= known.in_ledger(ledger_id)
        return unknown

    def _send(self, found: Readable, given: "Mapping[int, array[int]]", effects: list[Effect], *, is_replay: bool) -> None:
        for consumer, indexes in given.items():
            receiver = self._receivers.get(ConsumerId(consumer))
            assert receiver is not None, "dealt to somebody who is not there"
            effects.append(self._deliver(found, receiver, indexes, is_replay=is_replay)[0])

    def check_invariants(self) -> None:
        super().check_invariants()
        self._begun.check_invariants()
        self._keys.check_invariants({receiver.consumer: receiver.pending for receiver in self._receivers})
