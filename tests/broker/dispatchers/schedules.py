"""Generated schedules: a driver in miniature that feeds a dispatcher, its twin and a judge, one event at a time.

A schedule is a seed. Its steps are drawn one after the other from the seed, so that a prefix of a schedule is a schedule: a
failure is shrunk by cutting off its end, and the message holds the events of what is left.
"""

import os
from collections.abc import Callable
from random import Random
from typing import Protocol

from pyroaring import BitMap

from broker.dispatchers.contract import (
    AcknowledgeMarkers,
    BatchIndexesAcknowledged,
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    CursorReset,
    Deliver,
    Effect,
    EntriesAcknowledged,
    EntriesAvailable,
    EntriesPicked,
    EntriesRead,
    Event,
    KeySharedPolicy,
    MarkDeleteMoved,
    NothingToRead,
    NotifyActive,
    PermitsAdded,
    Read,
    ReadFailed,
    RefuseConsumer,
    SetTimer,
    TimerFired,
    WritabilityChanged,
)
from broker.dispatchers.machine import Machine
from broker.dispatchers.settings import DispatcherSettings
from tests.broker.dispatchers.naive_twins import Delivery
from tests.broker.dispatchers.topic_log import BEFORE_ALL, TopicLog, publish_some
from wire.position import Position

SCHEDULES = int(os.environ.get("DISPATCHER_SCHEDULES", "10000"))
"""Per dispatcher. More of them: DISPATCHER_SCHEDULES=1000000 bin/test tests/broker/dispatchers."""

FIRST_SEED = int(os.environ.get("DISPATCHER_FIRST_SEED", "0"))

STEPS = int(os.environ.get("DISPATCHER_STEPS", "22"))


class Twin(Protocol):
    """The naive dispatcher beside the real one."""

    def take(self, event: Event, read: Read | None, now_ms: int) -> list[Delivery]: ...


class Schedule:
    """One topic, one subscription, one seed. Subclasses judge."""

    step_limit = STEPS

    def __init__(self, seed: int | Random) -> None:
        self.rng = Random(seed) if isinstance(seed, int) else seed
        self.settings = self.draw_settings()
        self.log = TopicLog()
        self.now_ms = 0
        self.timer_ms: int | None = None
        self.joined: dict[ConsumerId, ConsumerAdded] = {}
        self.permits: dict[ConsumerId, int] = {}
        self.writable: dict[ConsumerId, bool] = {}
        self.reads: list[Read] = []
        """The last one may be outstanding, the others are outdated."""
        self.reads_made = 0
        self.last_consumer = 0
        self.hashes = [self.rng.getrandbits(31) for _ in range(self.rng.randint(1, 6))]
        self.trace: list[str] | None = None
        self.machine, self.twin = self.build()

    # --- the subclass's part --------------------------------------------------------------------------------------------

    def build(self) -> tuple[Machine, Twin]:
        raise NotImplementedError

    def draw_settings(self) -> DispatcherSettings:
        rng = self.rng
        return DispatcherSettings(
            dispatcher_max_read_batch_size=rng.choice((3, 10, 100)),
            dispatcher_max_round_robin_batch_size=rng.choice((1, 3, 20)),
            max_unacked_messages_per_consumer=rng.choice((0, 0, 5, 20)),
            max_unacked_messages_per_subscription=rng.choice((0, 0, 8, 30)),
            active_consumer_failover_delay_time_millis=rng.choice((0, 1000)),
            subscription_key_shared_use_consistent_hashing=rng.random() < 0.5,
            subscription_key_shared_consistent_hashing_replica_points=3,
            key_shared_look_ahead_msg_in_replay_threshold_per_consumer=rng.choice((4, 10, 2000)),
            key_shared_look_ahead_msg_in_replay_threshold_per_subscription=rng.choice((6, 20000)),
        )

    def joining(self, consumer: ConsumerId) -> ConsumerAdded:
        name = self.rng.choice(("a", "b", "c"))
        return ConsumerAdded(consumer, name, self.rng.choice((0, 0, 1)), None, True, KeySharedPolicy())

    def holding(self) -> dict[Position, ConsumerId]:
        """Consumers that may acknowledge each position."""
        raise NotImplementedError

    def judge_delivery(self, effect: Deliver, delivery: Delivery) -> None:
        raise NotImplementedError

    def judge(self, event: Event, effects: list[Effect]) -> None:
        """After an event: what must hold now."""

    # --- steps ----------------------------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.drain()

    def step(self) -> None:
        choice = self.rng.random()
        if choice < 0.34:
            self.answer_read()
        elif choice < 0.46:
            publish_some(self.log, self.rng, self.hashes)
            self.feed(EntriesAvailable())
        elif choice < 0.58:
            self.add_permits()
        elif choice < 0.72:
            self.acknowledge()
        elif choice < 0.84:
            self.change_consumers()
        elif choice < 0.92:
            self.ask_for_redelivery()
        else:
            self.rare_step()

    def add_permits(self) -> None:
        if self.joined:
            consumer = self.rng.choice(list(self.joined))
            permits = self.rng.choice((1, 2, 3, 10, 100))
            self.permits[consumer] += permits
            self.feed(PermitsAdded(consumer, permits))

    def change_consumers(self) -> None:
        choice = self.rng.random()
        if choice < 0.5 and len(self.joined) < 4:
            self.last_consumer += 1
            consumer = ConsumerId(self.last_consumer)
            self.joined[consumer] = added = self.joining(consumer)
            self.permits[consumer] = 0
            self.writable[consumer] = added.is_writable
            self.feed(added)
            if consumer in self.joined:
                permits = self.rng.choice((1, 3, 20))
                self.permits[consumer] += permits
                self.feed(PermitsAdded(consumer, permits))
        elif choice < 0.75 and self.joined:
            consumer = self.rng.choice(list(self.joined))
            self.writable[consumer] = not self.writable[consumer]
            self.feed(WritabilityChanged(consumer, self.writable[consumer]))
        elif self.joined:
            self.remove(self.rng.choice(list(self.joined)))

    def remove(self, consumer: ConsumerId) -> None:
        del self.joined[consumer], self.permits[consumer], self.writable[consumer]
        self.forget_consumer(consumer)
        self.feed(ConsumerRemoved(consumer))

    def forget_consumer(self, consumer: ConsumerId) -> None:
        raise NotImplementedError

    def acknowledge(self) -> None:
        held = self.holding()
        unacked = [entry.position for entry in self.log.unacked()]
        choice = self.rng.random()
        if held and choice < 0.15:
            position = self.rng.choice(list(held))
            messages = self.log.acknowledge_part(position)
            if messages:
                self.feed(BatchIndexesAcknowledged(position, messages))
        elif held and choice < 0.9:
            chosen = self.rng.sample(sorted(held), self.rng.randint(1, len(held)))
            consumer = self.rng.choice((held[chosen[0]], held[chosen[0]], None, *self.joined))  # it need not be who has them
            self.acknowledge_entries([each for each in chosen if each.ledger_id == chosen[0].ledger_id], consumer)
        elif unacked:
            self.acknowledge_entries([self.rng.choice(unacked)], None)

    def acknowledge_entries(self, positions: list[Position], consumer: ConsumerId | None) -> None:
        for position in positions:
            self.log.acknowledge(position)
        self.feed(EntriesAcknowledged(positions[0].ledger_id, BitMap([at.entry_id for at in positions]), consumer))

    def ask_for_redelivery(self) -> None:
        if not self.joined:
            return
        consumer = self.rng.choice(list(self.joined))
        theirs = sorted(position for position, holder in self.holding().items() if holder == consumer)
        positions: list[Position] | None = None
        if self.rng.random() < 0.7:
            positions = self.rng.sample(theirs, self.rng.randint(1, len(theirs))) if theirs else []
            if self.log.entries and self.rng.random() < 0.3:
                positions.append(self.rng.choice(self.log.entries).position)
        self.give_back(consumer, positions)

    def give_back(self, consumer: ConsumerId, positions: list[Position] | None) -> None:
        raise NotImplementedError

    def rare_step(self) -> None:
        choice = self.rng.random()
        if choice < 0.3:
            self.now_ms += self.rng.choice((1, 500, 20_000))
            self.fire_timer()
        elif choice < 0.45 and self.reads:
            self.feed(ReadFailed(self.reads[-1].read_id))
        elif choice < 0.6 and len(self.reads) > 1:
            self.feed(self.log.answer(self.rng.choice(self.reads[:-1]), 10))
        elif choice < 0.75 and self.log.entries:
            self.log.reset(self.rng.randrange(len(self.log.entries) + 1))
            self.forget_everything()
            self.feed(CursorReset())
        elif self.log.entries:
            place = self.rng.randrange(len(self.log.entries))
            for entry in self.log.entries[: place + 1]:
                self.log.acknowledge(entry.position)
            self.feed(MarkDeleteMoved(self.log.entries[place].position))

    def forget_everything(self) -> None:
        raise NotImplementedError

    def fire_timer(self) -> None:
        if self.timer_ms is not None and self.now_ms >= self.timer_ms:
            self.timer_ms = None
            self.feed(TimerFired())

    def answer_read(self) -> None:
        if self.reads:
            read = self.reads[-1]
            answer = self.log.answer(read, self.rng.randint(1, read.entries_max))
            if isinstance(answer, NothingToRead) and self.rng.random() < 0.5:
                publish_some(self.log, self.rng, self.hashes)  # after the read looked, before its answer is heard
                self.feed(EntriesAvailable())
            self.feed(answer)

    def drain(self) -> None:
        """Heal everything, take everything, acknowledge everything: what is then left was lost."""
        if not self.joined:
            self.last_consumer += 1
            consumer = ConsumerId(self.last_consumer)
            self.joined[consumer], self.permits[consumer], self.writable[consumer] = self.joining(consumer), 0, True
            self.feed(self.joined[consumer])
        for consumer in list(self.joined):
            self.writable[consumer] = True
            self.feed(WritabilityChanged(consumer, True))
            self.permits[consumer] += 1000
            self.feed(PermitsAdded(consumer, 1000))
        for _ in range(12 * len(self.log.entries) + 30):
            if self.machine._reader.outstanding is not None:
                self.feed(self.log.answer(self.reads[-1], self.reads[-1].entries_max))
            elif self.timer_ms is not None:
                self.now_ms = max(self.now_ms, self.timer_ms)
                self.fire_timer()
            else:
                held = self.holding()
                if not held:
                    break
                first = min(held)
                self.acknowledge_entries([at for at in held if at.ledger_id == first.ledger_id], held[first])
        else:
            raise AssertionError("it does not come to rest")
        lost = [entry.position for entry in self.log.unacked() if self.is_owed(entry.key_hash)]
        assert not lost, f"never delivered, though there are permits: {lost}"

    def is_owed(self, key_hash: int) -> bool:
        """Whether a consumer for this key is there."""
        return True

    # --- the driver -----------------------------------------------------------------------------------------------------

    def feed(self, event: Event) -> None:
        outstanding = self.machine._reader.outstanding
        if self.trace is not None:
            self.trace.append(f"{self.now_ms:>6} {event}")
        is_answer = isinstance(event, EntriesRead | EntriesPicked | NothingToRead | ReadFailed)
        is_current = is_answer and outstanding is not None and outstanding.read_id == event.read_id  # type: ignore[union-attr]
        effects = self.machine.handle(event, self.now_ms)
        if self.trace is not None:
            self.trace += [f"           -> {effect}" for effect in effects]
        if is_current and outstanding in self.reads:
            self.reads.remove(outstanding)
        self.refuse(effects)
        is_ignored = (is_answer and not is_current) or any(isinstance(effect, RefuseConsumer) for effect in effects)
        expected = [] if is_ignored else self.twin.take(event, outstanding, self.now_ms)
        self.perform(effects, expected)
        self.machine.check_invariants()
        self.judge(event, effects)

    def refuse(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, RefuseConsumer):
                del self.joined[effect.consumer], self.permits[effect.consumer], self.writable[effect.consumer]

    def perform(self, effects: list[Effect], expected: list[Delivery]) -> None:
        deliveries: list[tuple[Delivery, Deliver]] = []
        for effect in effects:
            match effect:
                case Read():
                    assert effect.entries_max >= 1
                    self.reads = [*self.reads[-2:], effect]
                    self.reads_made += 1
                case Deliver():
                    deliveries += [(delivery, effect) for delivery in self.unfold(effect)]
                case AcknowledgeMarkers(ledger_id, entry_ids):
                    for entry_id in entry_ids:
                        assert self.log.entry(Position(ledger_id, entry_id)).is_marker
                        self.log.acknowledge(Position(ledger_id, entry_id))
                case SetTimer(at_ms):
                    self.timer_ms = at_ms
                case NotifyActive() | RefuseConsumer():
                    pass
        deliveries.sort(key=_position)
        assert [delivery for delivery, _ in deliveries] == sorted(expected), "the twin says otherwise"
        for delivery, effect in deliveries:
            self.judge_one(effect, delivery)

    def unfold(self, effect: Deliver) -> list[Delivery]:
        found: list[Delivery] = []
        for place, index in enumerate(effect.indexes):
            position = Position(effect.run.ledger_id, effect.run.first_entry_id + index)
            assert effect.run.header_bytes or effect.run.offsets[index + 1] > effect.run.offsets[index], "not picked"
            count = effect.redelivery_counts[place] if effect.redelivery_counts is not None else 0
            left = self.log.left.get(position)
            assert (effect.ack_sets or {}).get(index) == (None if left is None else (left,)), "another ack set"
            found.append((position, effect.consumer, self.log.cost(position), count))
        assert effect.message_count == sum(cost for _, _, cost, _ in found)
        return found

    def judge_one(self, effect: Deliver, delivery: Delivery) -> None:
        """Checks that every delivery of every dispatcher has to pass."""
        position, consumer, cost, _ = delivery
        assert position not in self.log.acked, f"{position} is acknowledged"
        assert not self.log.entry(position).is_marker, f"{position} is a marker"
        assert self.permits[consumer] > 0, f"consumer {consumer} has no permits for {position}"
        assert self.writable[consumer], f"consumer {consumer} does not read"
        self.judge_delivery(effect, delivery)
        self.permits[consumer] -= cost


def _position(item: tuple[Delivery, Deliver]) -> Position:
    return item[0][0]


def check_schedules(build: Callable[[int], Schedule], count: int) -> None:
    """Run them; the first one that fails is cut as short as it fails, and told."""
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        schedule = build(seed)
        try:
            schedule.run(schedule.step_limit)
        except Exception:
            _tell(build, seed, schedule.step_limit)
            raise


def _tell(build: Callable[[int], Schedule], seed: int, step_limit: int) -> None:
    for steps in range(step_limit + 1):
        schedule = build(seed)
        schedule.trace = []
        try:
            schedule.run(steps)
        except Exception as error:
            events = "\n".join(schedule.trace)
            raise AssertionError(f"seed {seed}, {steps} steps, {schedule.settings}\n{events}\n{error!r}") from error


__all__ = ["BEFORE_ALL", "SCHEDULES", "Schedule", "check_schedules"]
