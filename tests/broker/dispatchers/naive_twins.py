"""The dispatchers once more, message by message on lists and dicts, with nothing clever in them.

A twin takes the same events (reads only when they are not outdated) and says who gets what; it reads nothing itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from broker.dispatchers.contract import (
    BatchIndexesAcknowledged,
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    CursorReset,
    EntriesAcknowledged,
    EntriesPicked,
    EntriesRead,
    Event,
    MarkDeleteMoved,
    PermitsAdded,
    Read,
    RedeliveryRequested,
    WritabilityChanged,
)
from broker.dispatchers.settings import DispatcherSettings
from wire.position import Position
from wire.run import FLAG_MARKER

Delivery = tuple[Position, ConsumerId, int, int]
"""Position, consumer, messages, redelivery count."""


@dataclass
class NaiveConsumer:
    """A consumer as a twin knows it."""

    consumer: ConsumerId
    name: str
    level: int
    writable: bool
    permits: int = 0
    pending: dict[Position, int] = field(default_factory=dict)
    blocked: bool = False

    def unacked(self) -> int:
        return sum(self.pending.values())


def is_there(read: EntriesRead, index: int) -> bool:
    """Whether the entry was asked for: entries that a pick did not ask for are empty."""
    run = read.run
    return run.header_bytes > 0 or run.offsets[index + 1] > run.offsets[index]


def deliverable(read: EntriesRead) -> list[tuple[Position, int, int]]:
    """Position, messages and key hash of the entries of a read that are neither markers nor acknowledged."""
    found = []
    for index in range(read.run.count):
        position = Position(read.run.ledger_id, read.run.first_entry_id + index)
        if position <= read.mark_delete or position.entry_id in read.acknowledged:
            continue
        if read.metadata.flags[index] & FLAG_MARKER or not is_there(read, index):
            continue
        messages = read.metadata.message_counts[index]
        if position.entry_id in read.ack_sets:
            messages = min(messages, sum(bin(word).count("1") for word in read.ack_sets[position.entry_id]))
        found.append((position, messages, read.key_hashes[index] if read.key_hashes else 0))
    return found


class NaiveSingleActive:
    """Exclusive and Failover."""

    def __init__(self, settings: DispatcherSettings, partition_index: int) -> None:
        self.delay_ms = settings.active_consumer_failover_delay_time_millis
        self.partition_index = partition_index
        self.consumers: dict[ConsumerId, NaiveConsumer] = {}
        self.active: ConsumerId | None = None
        self.switch_at_ms: int | None = None
        self.last_delivered: Position | None = None

    def take(self, event: Event, read: Read | None, now_ms: int) -> list[Delivery]:
        deliveries: list[Delivery] = []
        if isinstance(event, ConsumerAdded):
            self.consumers[event.consumer] = NaiveConsumer(event.consumer, event.name, event.priority_level, event.is_writable)
        elif isinstance(event, ConsumerRemoved):
            self.consumers.pop(event.consumer, None)
        elif isinstance(event, PermitsAdded) and event.consumer in self.consumers:
            self.consumers[event.consumer].permits += event.permits
        elif isinstance(event, WritabilityChanged) and event.consumer in self.consumers:
            self.consumers[event.consumer].writable = event.is_writable
        elif isinstance(event, CursorReset):
            self.last_delivered = None
        elif isinstance(event, EntriesRead):
            deliveries = self.give(event)
        is_done = isinstance(event, MarkDeleteMoved) and self.last_delivered is not None
        is_done = (
            is_done and isinstance(event, MarkDeleteMoved) and event.mark_delete >= (self.last_delivered or event.mark_delete)
        )
        self.choose(now_ms, is_done or isinstance(event, CursorReset))
        return deliveries

    def pick(self) -> ConsumerId | None:
        if not self.consumers:
            return None
        top = min(consumer.level for consumer in self.consumers.values())
        names = sorted((each.name, each.consumer) for each in self.consumers.values() if each.level == top)
        return names[self.partition_index % len(names) if self.partition_index > 0 else 0][1]

    def choose(self, now_ms: int, may_switch: bool) -> None:
        pick = self.pick()
        if pick == self.active:
            self.switch_at_ms = None
            return
        if self.active in self.consumers and self.last_delivered is not None and self.delay_ms > 0:
            if self.switch_at_ms is None:
                self.switch_at_ms = now_ms + self.delay_ms
            if now_ms < self.switch_at_ms and not may_switch:
                return
        self.active, self.switch_at_ms, self.last_delivered = pick, None, None

    def give(self, read: EntriesRead) -> list[Delivery]:
        given: list[Delivery] = []
        assert self.active is not None
        active = self.consumers[self.active]
        for position, messages, _ in deliverable(read):
            if active.permits <= 0 or not active.writable:
                break
            active.permits -= messages
            self.last_delivered = position
            given.append((position, active.consumer, messages, 0))
        return given


class NaiveMultiple:
    """Base of the twins of Shared and Key_Shared."""

    def __init__(self, settings: DispatcherSettings) -> None:
        self.settings = settings
        self.limit = settings.max_unacked_messages_per_consumer or 1 << 60
        self.limit_together = settings.max_unacked_messages_per_subscription or 1 << 60
        self.consumers: dict[ConsumerId, NaiveConsumer] = {}
        self.blocked = False
        self.waiting: dict[Position, int] = {}
        """The replay set; the key hash of each."""
        self.redelivered: dict[Position, int] = {}
        self.hashes: dict[Position, int] = {}

    def unacked(self) -> int:
        return sum(consumer.unacked() for consumer in self.consumers.values())

    def room(self, consumer: NaiveConsumer) -> int:
        if self.blocked or consumer.blocked or not consumer.writable:
            return 0
        return max(0, min(consumer.permits, self.limit - consumer.unacked(), self.limit_together - self.unacked()))

    def take(self, event: Event, read: Read | None, now_ms: int) -> list[Delivery]:
        given: list[Delivery] = []
        consumer = self.consumers.get(getattr(event, "consumer", None) or ConsumerId(-1))
        if isinstance(event, ConsumerAdded):
            self.consumers[event.consumer] = NaiveConsumer(event.consumer, event.name, event.priority_level, event.is_writable)
        elif isinstance(event, EntriesRead) and read is not None:
            given = self.give(event, read.is_replay)
        elif isinstance(event, EntriesPicked):
            given = [each for part in event.parts for each in self.give(part, True)]
        elif consumer is not None and not isinstance(event, EntriesAcknowledged):
            self.take_of_consumer(event, consumer)
        else:
            self.take_of_entries(event)
        self.unblock()
        return given

    def take_of_consumer(self, event: Event, consumer: NaiveConsumer) -> None:
        if isinstance(event, ConsumerRemoved):
            self.leave(consumer)
        elif isinstance(event, PermitsAdded):
            consumer.permits += event.permits
        elif isinstance(event, WritabilityChanged):
            consumer.writable = event.is_writable
        elif isinstance(event, RedeliveryRequested):
            self.give_back(consumer, event)

    def take_of_entries(self, event: Event) -> None:
        if isinstance(event, EntriesAcknowledged):
            self.forget(lambda at: at.ledger_id == event.ledger_id and at.entry_id in event.entry_ids)
        elif isinstance(event, MarkDeleteMoved):
            self.forget(lambda at: at <= event.mark_delete)
        elif isinstance(event, BatchIndexesAcknowledged):
            for each in self.consumers.values():
                if event.position in each.pending:
                    each.pending[event.position] -= event.message_count
        elif isinstance(event, CursorReset):
            self.start_again()

    def leave(self, consumer: NaiveConsumer) -> None:
        del self.consumers[consumer.consumer]
        for position in consumer.pending:
            self.waiting[position] = self.hashes[position]
        if not self.consumers:
            self.start_again()

    def give_back(self, consumer: NaiveConsumer, event: RedeliveryRequested) -> None:
        for position in list(consumer.pending) if event.positions is None else event.positions:
            if position in consumer.pending:
                del consumer.pending[position]
                self.waiting[position] = self.hashes[position]
                self.redelivered[position] = self.redelivered.get(position, 0) + 1

    def forget(self, is_gone: Callable[[Position], bool]) -> None:
        for consumer in self.consumers.values():
            consumer.pending = {at: messages for at, messages in consumer.pending.items() if not is_gone(at)}
        self.waiting = {at: key_hash for at, key_hash in self.waiting.items() if not is_gone(at)}
        self.redelivered = {at: count for at, count in self.redelivered.items() if not is_gone(at)}

    def start_again(self) -> None:
        self.forget(lambda at: True)

    def unblock(self) -> None:
        for consumer in self.consumers.values():
            if consumer.unacked() <= self.limit // 2:
                consumer.blocked = False
        if self.unacked() <= self.limit_together // 2:
            self.blocked = False

    def give(self, read: EntriesRead, is_replay: bool) -> list[Delivery]:
        raise NotImplementedError

    def give_one(self, consumer: NaiveConsumer, position: Position, messages: int) -> Delivery:
        consumer.permits -= messages
        consumer.pending[position] = messages
        self.waiting.pop(position, None)
        consumer.blocked = consumer.blocked or consumer.unacked() >= self.limit
        self.blocked = self.blocked or self.unacked() >= self.limit_together
        return position, consumer.consumer, messages, self.redelivered.get(position, 0)


class NaiveShared(NaiveMultiple):
    """Turn by turn, message by message."""

    def __init__(self, settings: DispatcherSettings) -> None:
        super().__init__(settings)
        self.next: dict[int, ConsumerId] = {}
        """Next consumer by level; it may have left."""

    def give(self, read: EntriesRead, is_replay: bool) -> list[Delivery]:
        given: list[Delivery] = []
        permits_before = {consumer: each.permits for consumer, each in self.consumers.items()}
        turn: NaiveConsumer | None = None
        turn_left = 0
        for position, messages, key_hash in deliverable(read):
            if is_replay and position not in self.waiting:
                continue
            if turn_left <= 0:
                turn = self.whose_turn()
                if turn is None:
                    break
                turn_left = self.room(turn)
                if sum(1 for each in self.consumers.values() if each.level == turn.level and self.room(each)) > 1:
                    fair = max(1, permits_before[turn.consumer] // 8)
                    turn_left = min(turn_left, self.settings.dispatcher_max_round_robin_batch_size, fair)
            assert turn is not None
            turn_left -= messages
            self.hashes[position] = key_hash
            given.append(self.give_one(turn, position, messages))
        return given

    def whose_turn(self) -> NaiveConsumer | None:
        able = [consumer for consumer in self.consumers.values() if self.room(consumer)]
        if not able:
            return None
        level = min(consumer.level for consumer in able)
        able = [consumer for consumer in able if consumer.level == level]
        start = self.next.get(level, ConsumerId(0))
        chosen = next((consumer for consumer in able if consumer.consumer >= start), able[0])
        after = [each.consumer for each in self.consumers.values() if each.level == level and each.consumer > chosen.consumer]
        self.next[level] = after[0] if after else ConsumerId(0)
        return chosen


class NaiveKeyShared(NaiveMultiple):
    """Key by key. `owner_of` (slot to consumer) is asked anew after each change of consumers."""

    def __init__(self, settings: DispatcherSettings, owner_of: Callable[[int], ConsumerId | None], is_ordered: bool) -> None:
        super().__init__(settings)
        self.owner_of = owner_of
        self.is_ordered = is_ordered

    @staticmethod
    def slot(key_hash: int) -> int:
        return key_hash % 65536 or 1

    def owner(self, position: Position) -> NaiveConsumer | None:
        owner = self.owner_of(self.slot(self.hashes[position]))
        return None if owner is None else self.consumers[owner]

    def is_held_by_another(self, position: Position, owner: NaiveConsumer) -> bool:
        slot = self.slot(self.hashes[position])
        return self.is_ordered and any(
            self.slot(self.hashes[pending]) == slot
            for consumer in self.consumers.values()
            if consumer is not owner
            for pending in consumer.pending
        )

    def is_ready(self, position: Position) -> bool:
        """Whether the entry waits for nothing but room."""
        owner = self.owner(position)
        return owner is not None and not self.is_held_by_another(position, owner)

    def give(self, read: EntriesRead, is_replay: bool) -> list[Delivery]:
        return self.give_again(read) if is_replay else self.give_new(read)

    def give_new(self, read: EntriesRead) -> list[Delivery]:
        given: list[Delivery] = []
        for position, messages, key_hash in deliverable(read):
            if position in self.waiting or any(position in consumer.pending for consumer in self.consumers.values()):
                continue
            self.hashes[position] = key_hash
            owner = self.owner(position)
            if owner is None:
                continue
            slot = self.slot(key_hash)
            is_behind = self.is_ordered and any(self.slot(waiting) == slot for waiting in self.waiting.values())
            if is_behind or self.is_held_by_another(position, owner) or not self.room(owner):
                self.waiting[position] = key_hash
            else:
                given.append(self.give_one(owner, position, messages))
        return given

    def give_again(self, read: EntriesRead) -> list[Delivery]:
        given: list[Delivery] = []
        start = Position(read.run.ledger_id, read.run.first_entry_id)
        behind = {owner.consumer for at in self.waiting if at < start and self.is_ready(at) and (owner := self.owner(at))}
        messages_at = {position: messages for position, messages, _ in deliverable(read)}
        for entry_id in range(start.entry_id, read.run.last_entry_id + 1):
            position = Position(start.ledger_id, entry_id)
            if position not in self.waiting or not self.is_ready(position):
                continue
            owner = self.owner(position)
            if owner is not None and not is_there(read, entry_id - start.entry_id):
                behind.add(owner.consumer)
            messages = messages_at.get(position, 0)
            if messages and owner is not None and owner.consumer not in behind and self.room(owner):
                given.append(self.give_one(owner, position, messages))
        return given
