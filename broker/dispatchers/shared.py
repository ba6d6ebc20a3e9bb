"""Shared: every entry to one of the consumers, in turns, by priority. Only of messages in chunks the order matters."""

from collections.abc import Sequence

from pyroaring import BitMap

from wire.kernels.delivery_rows import SHARED
from wire.position import Position
from wire.run import FLAG_CHUNK, EntryRun, RunMetadata

from .contract import AcknowledgeMarkers, ConsumerAdded, ConsumerId, Effect, EntriesPicked, EntriesRead, Read, RefuseConsumer
from .entry_sets import EntrySet, union
from .keys.chunks import Chunk, ChunkedMessages, chunk_of
from .machine import LOOKED_AT_SINGLY
from .multiple import MultipleConsumersDispatcher
from .permits import Receiver
from .reading.readable import Readable, Span, readable
from .reading.replays import picks_in
from .settings import DispatcherSettings
from .turns import Turns


class SharedDispatcher(MultipleConsumersDispatcher):
    """The machine. The replay set holds entries that were given back or never given: bounded by the limits on unacked
    messages.
    """

    _chunked: ChunkedMessages
    _replay: EntrySet
    _turns: Turns
    _picked_to: Position | None
    """End of the last pick: the next goes on from there, so that entries at the end have their turn."""

    def __init__(self, settings: DispatcherSettings) -> None:
        super().__init__(settings)
        self.deals = SHARED
        self._turns = Turns(settings.dispatcher_max_round_robin_batch_size)
        self._replay = EntrySet()
        self._chunked = ChunkedMessages()
        self._picked_to = None

    def first_to_read_again(self) -> Position | None:
        return self._replay.first()

    def _replay_set(self) -> EntrySet:
        return union((self._replay, self._chunked.waiting)) if self._chunked else self._replay

    def _join(self, added: ConsumerAdded, receiver: Receiver) -> RefuseConsumer | None:
        self._turns.add(receiver)
        return None

    def _leave(self, receiver: Receiver, pending: EntrySet) -> None:
        self._turns.remove(receiver)
        self._replay.update(pending)
        self._replay.update(self._chunked.left(receiver))

    def _give_back(self, receiver: Receiver, entries: EntrySet) -> None:
        self._replay.update(entries)

    def _take_in(self, ledger_id: int, entry_ids: BitMap) -> None:
        self._replay.add(ledger_id, entry_ids)

    def _drop(self, ledger_id: int, entry_ids: BitMap, had: BitMap) -> None:
        if self._replay:
            self._replay.remove(ledger_id, entry_ids)
        if self._chunked:
            self._chunked.drop(ledger_id, entry_ids)

    def _drop_replay_between(self, start: Position, end: Position) -> EntrySet:
        dropped = self._replay.remove_between(start, end)
        if self._chunked:
            dropped.update(self._chunked.drop_between(start, end))
        return dropped

    def _came_due(self, entries: EntrySet) -> None:
        self._replay.update(entries)

    def _rest(self) -> None:
        """Pending entries wait in the replay set already."""

    def _clear(self) -> None:
        self._replay.clear()
        self._chunked.clear()

    def _go_on(self, now_ms: int, effects: list[Effect]) -> None:
        if self._chunked:
            self._replay.update(self._chunked.take_ready(self._receivers.room))
        first = self._first()
        if not self._reader.is_idle(now_ms) or (first is None and (self._reader.is_at_end or self._is_loading)):
            return
        room = sum(map(self._receivers.room, self._receivers))
        if not room or (first is None and self._held_back.delays.is_full):
            return
        entries_max = self._reader.entries_for(room)
        if first is not None:
            effects.append(self._read_again(self._replay.ledgers_from(first), entries_max))
        else:
            effects.append(self._reader.read_on(self._entries_max(room)))

    def take_newest(self, run: EntryRun, metadata: RunMetadata) -> ConsumerId | None:
        if self._replay or self._chunked or self._held_back or self._is_loading or self._picked_to is not None:
            return None
        if metadata.any_flags & LOOKED_AT_SINGLY or not self._reader.is_before(run):
            return None
        receiver = self._receiver_of_all(len(run.offsets) - 1, metadata.message_count)
        if receiver is None:
            return None
        self._reads_far = False
        self._receivers.delivered_run(receiver, run, metadata)
        self._reader.passed(run, metadata.message_count)
        return receiver.consumer

    def _receiver_of_all(self, entries: int, messages: int) -> Receiver | None:
        """Receiver of all entries together: the next in turn takes one entry, a single consumer all that there is room for."""
        receivers = self._receivers
        if entries == 1:
            turn = self._turns.take(receivers.room)
            return None if turn is None else turn[0]
        receiver = receivers.only()
        return receiver if receiver is not None and messages <= receivers.room(receiver) else None

    def _first(self) -> Position | None:
        """First position to read again."""
        if self._picked_to is not None:
            first = self._replay.first_from(self._picked_to)
            if first is not None:
                return first
            self._picked_to = None
        return self._replay.first()

    def entry_acknowledged(self, consumer: ConsumerId, ledger_id: int, entry_id: int) -> bool:
        if self._replay or self._chunked or self._held_back or self._redeliveries or self._picked_to is not None:
            return False
        return self._reader.is_resting and self._receivers.entry_acknowledged(consumer, ledger_id, entry_id)

    def _on_picked(self, read: Read, answer: EntriesPicked, effects: list[Effect]) -> None:
        self._forget(answer.gone)
        for part in answer.parts:
            self._on_read(read, part, effects)
            if self._picked_to != Position(part.run.ledger_id, part.run.last_entry_id + 1):
                return  # no room for the rest of it, nor for later entries, which are picked again

    def _on_read(self, read: Read, answer: EntriesRead, effects: list[Effect]) -> None:
        run = answer.run
        wanted = None
        if read.is_replay:
            self._forget_unread(read, answer)
            wanted = self._replay.in_ledger(run.ledger_id)
            if read.picks is not None:
                wanted = wanted & picks_in(read.picks, run.ledger_id)
        waiting = wanted
        wanted, held = self._judge(answer, wanted)
        found, markers = readable(answer, wanted)
        if waiting:
            self._redeliveries.forget(run.ledger_id, found.gone & self._replay.in_ledger(run.ledger_id))
            self._replay.remove(run.ledger_id, found.gone)
        if markers:
            effects.append(AcknowledgeMarkers(run.ledger_id, markers))
            self._replay.remove(run.ledger_id, markers)
        if answer.metadata.any_flags & FLAG_CHUNK:
            given = self._hand_out_singly(found, answer.metadata.flags, effects, is_replay=read.is_replay)
        else:
            given = self._hand_out(found, effects, is_replay=read.is_replay)
        if not read.is_replay and given < len(found):
            self._reader.stay_at(found.position(given))
        if read.is_replay:
            end = found.position(given) if given < len(found) else Position(run.ledger_id, run.last_entry_id + 1)
            self._picked_to = None if read.picks is None else end
        self._hold(answer, held, found, read)

    def _hold(self, answer: EntriesRead, held: BitMap | None, found: Readable, read: Read) -> None:
        """Holds the rest of a run that could not be delivered as a whole, for another read: held-back entries too."""
        if not read.is_replay:
            self._reads_far = held is not None and 2 * len(held) > answer.run.count
        if held is None:
            return
        held -= found.gone
        reached = self._reader.position
        if read.is_replay:
            self._replay.remove(answer.run.ledger_id, held)
        elif reached is not None:
            held &= BitMap(range(answer.run.first_entry_id, reached.entry_id))
        self._held_back.keep(answer, held)

    def _hand_out(self, found: Readable, effects: list[Effect], *, is_replay: bool) -> int:
        """Deals turn by turn; each consumer gets its entries in one delivery. Returns the end of the dealt entries."""
        place = 0
        spans: dict[Receiver, list[Span]] = {}
        room = {receiver: self._receivers.room(receiver) for receiver in self._receivers}
        left = self._receivers.room_together()
        while left > 0 and place < len(found):
            turn = self._turns.take(room.__getitem__)
            if turn is None:
                break
            receiver, messages = turn
            stop = found.fit(place, min(messages, left))
            cost = found.cost(place, stop)
            room[receiver] = max(0, room[receiver] - cost)
            left -= cost
            spans.setdefault(receiver, []).append((place, stop))
            place = stop
        self._deliver_spans(found, spans, effects, is_replay=is_replay)
        return place

    def _deliver_spans(
        self, found: Readable, spans: dict[Receiver, list[Span]], effects: list[Effect], *, is_replay: bool
    ) -> None:
        for receiver, theirs in spans.items():
            effect, entry_ids = self._deliver(found, receiver, found.picked(theirs), is_replay=is_replay)
            effects.append(effect)
            if is_replay:
                self._replay.remove(found.run.ledger_id, entry_ids)

    def _hand_out_singly(self, found: Readable, flags: Sequence[int], effects: list[Effect], *, is_replay: bool) -> int:
        """Same as `_hand_out`, for a run with chunks: one entry at a time, each chunk to the receiver of its message."""
        place = 0
        spans: dict[Receiver, list[Span]] = {}
        room = {receiver: self._receivers.room(receiver) for receiver in self._receivers}
        left = self._receivers.room_together()
        while left > 0 and place < len(found) and any(room.values()):
            position = found.position(place)
            chunk = chunk_of(found.run, position.entry_id) if flags[found.indexes[place]] & FLAG_CHUNK else None
            receiver = self._receiver_of(chunk, position, room)
            if receiver is not None:
                cost = found.cost(place, place + 1)
                room[receiver] = max(0, room[receiver] - cost)
                left -= cost
                self._replay.remove(position.ledger_id, BitMap((position.entry_id,)))
                spans.setdefault(receiver, []).append((place, place + 1))
            place += 1
        self._deliver_spans(found, spans, effects, is_replay=is_replay)
        return place

    def _receiver_of(self, chunk: Chunk | None, position: Position, room: dict[Receiver, int]) -> Receiver | None:
        """None: the chunk is put off, until the consumer of earlier chunks has room, or until those have been delivered."""
        receiver = None
        if chunk is not None:
            receiver = self._chunked.read(chunk, position)
            if receiver is not None and not room[receiver]:
                self._replay.remove(position.ledger_id, BitMap((position.entry_id,)))
                self._chunked.wait(receiver, position)
                return None
            if self._chunked.is_behind(chunk, position, self._replay):
                self._replay.add(position.ledger_id, BitMap((position.entry_id,)))
                return None
        if receiver is None:
            turn = self._turns.take(room.__getitem__)
            assert turn is not None, "somebody has room"
            receiver = turn[0]
        if chunk is not None:
            self._chunked.begun(chunk, receiver)
        return receiver

    def check_invariants(self) -> None:
        super().check_invariants()
        self._replay.check_invariants()
        self._chunked.check_invariants()
