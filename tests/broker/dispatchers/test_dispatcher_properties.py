"""Ten thousand generated schedules for each dispatcher, against its naive twin and against the truth of the log.

True of every schedule: no entry is lost and it comes to rest; no acknowledged entry, no marker, no entry beyond permits is
delivered; an entry that a consumer has is delivered to no other; and while a consumer could take an entry, a read is under
way. Each class adds its own claims.
"""

from broker.dispatchers.contract import (
    ConsumerAdded,
    ConsumerId,
    Deliver,
    Effect,
    Event,
    KeySharedMode,
    KeySharedPolicy,
    MarkDeleteMoved,
    NotifyActive,
    Read,
    RedeliveryRequested,
)
from broker.dispatchers.key_shared import KeySharedDispatcher
from broker.dispatchers.machine import Machine
from broker.dispatchers.shared import SharedDispatcher
from broker.dispatchers.single_active import SingleActiveDispatcher
from tests.broker.dispatchers.naive_twins import Delivery, NaiveKeyShared, NaiveMultiple, NaiveShared, NaiveSingleActive
from tests.broker.dispatchers.schedules import SCHEDULES, Schedule, Twin, check_schedules
from wire.position import Position


class SingleActiveSchedule(Schedule):
    """Deliveries in order and without a gap since the active consumer began or the cursor went back."""

    is_failover = True

    def build(self) -> tuple[Machine, Twin]:
        partition_index = self.rng.choice((-1, 0, 1, 2))
        self.naive = NaiveSingleActive(self.settings, partition_index)
        self.active: ConsumerId | None = None
        self.told: dict[ConsumerId, bool] = {}
        self.epochs: dict[ConsumerId, int] = {}
        self.reached = -1
        """The place in the log of the last delivery since then."""
        self.delivered: dict[Position, ConsumerId] = {}
        machine = SingleActiveDispatcher(self.settings, is_failover=self.is_failover, partition_index=partition_index)
        return machine, self.naive

    def holding(self) -> dict[Position, ConsumerId]:
        return {at: consumer for at, consumer in self.delivered.items() if at not in self.log.acked}

    def forget_consumer(self, consumer: ConsumerId) -> None:
        self.told.pop(consumer, None)
        self.epochs.pop(consumer, None)
        if consumer == self.active:
            self.begin_again()

    def forget_everything(self) -> None:
        self.begin_again()

    def begin_again(self) -> None:
        self.reached = -1
        self.delivered.clear()

    def acknowledge(self) -> None:
        held = self.holding()
        if held and self.rng.random() < 0.4:
            place = self.log.place[self.rng.choice(sorted(held))]
            for entry in self.log.entries[: place + 1]:
                self.log.acknowledge(entry.position)
            self.feed(MarkDeleteMoved(self.log.mark_delete()))
        else:
            super().acknowledge()

    def give_back(self, consumer: ConsumerId, positions: list[Position] | None) -> None:
        self.epochs[consumer] = self.epochs.get(consumer, 0) + 1
        if consumer == self.active:
            self.begin_again()
        self.feed(RedeliveryRequested(consumer, positions, self.epochs[consumer]))

    def judge_delivery(self, effect: Deliver, delivery: Delivery) -> None:
        position, consumer, _, _ = delivery
        assert consumer == self.active, "delivered to one that is not active"
        assert effect.consumer_epoch == self.epochs.get(consumer), "stamped with another epoch"
        place = self.log.place[position]
        assert place > self.reached, f"{position} is out of order"
        for entry in self.log.entries[self.reached + 1 : place]:
            assert entry.is_marker or entry.position in self.log.acked, f"{entry.position} was left out before {position}"
        self.reached = place
        self.delivered[position] = consumer

    def perform(self, effects: list[Effect], expected: list[Delivery]) -> None:
        for effect in effects:
            if isinstance(effect, NotifyActive):
                assert self.told.get(effect.consumer) is not effect.is_active, "told twice"
                self.told[effect.consumer] = effect.is_active
        super().perform(effects, expected)

    def judge(self, event: Event, effects: list[Effect]) -> None:
        active = self.machine.state().active_consumer
        assert active == self.naive.active
        if active != self.active:
            self.active = active
            self.begin_again()
        if self.is_failover:
            for consumer in self.joined:
                is_told = self.told.get(consumer)
                is_next = consumer != active and consumer == self.naive.pick()
                assert is_told is (consumer == active) or (is_next and is_told is None), "not told who is active"
        self.judge_progress()

    def judge_progress(self) -> None:
        reader = self.machine._reader
        if reader.outstanding is not None or reader.retry_at_ms is not None or self.naive.switch_at_ms is not None:
            return
        if self.active is not None and self.permits[self.active] > 0 and self.writable[self.active]:
            waiting = [entry.position for entry in self.log.entries[self.reached + 1 :] if entry.position not in self.log.acked]
            assert not waiting, f"{waiting} could go, and no read is under way"


class ExclusiveSchedule(SingleActiveSchedule):
    """One consumer at a time; the second one is refused."""

    is_failover = False

    def refuse(self, effects: list[Effect]) -> None:
        super().refuse(effects)
        assert len(self.joined) <= 1

    def feed(self, event: Event) -> None:
        if isinstance(event, ConsumerAdded) and len(self.joined) > 1:
            self.refuse(self.machine.handle(event, self.now_ms))
        else:
            super().feed(event)


class MultipleSchedule(Schedule):
    """Nothing is with two consumers, and redeliveries are counted right."""

    naive: NaiveMultiple

    def draw_holders(self) -> None:
        self.holders: dict[Position, ConsumerId] = {}
        self.redelivered: dict[Position, int] = {}

    def holding(self) -> dict[Position, ConsumerId]:
        return {at: consumer for at, consumer in self.holders.items() if at not in self.log.acked}

    def forget_consumer(self, consumer: ConsumerId) -> None:
        self.holders = {at: holder for at, holder in self.holders.items() if holder != consumer}
        if not self.joined:
            self.forget_everything()

    def forget_everything(self) -> None:
        self.holders.clear()
        self.redelivered.clear()

    def give_back(self, consumer: ConsumerId, positions: list[Position] | None) -> None:
        for position in [at for at, holder in self.holding().items() if holder == consumer]:
            if positions is None or position in positions:
                del self.holders[position]
                self.redelivered[position] = self.redelivered.get(position, 0) + 1
        self.feed(RedeliveryRequested(consumer, positions))

    def judge_delivery(self, effect: Deliver, delivery: Delivery) -> None:
        position, consumer, _, redelivery_count = delivery
        assert position not in self.holders, f"{position} is with consumer {self.holders[position]} already"
        assert redelivery_count == self.redelivered.get(position, 0)
        self.judge_choice(position, consumer)
        self.holders[position] = consumer

    def judge_choice(self, position: Position, consumer: ConsumerId) -> None:
        raise NotImplementedError

    def judge(self, event: Event, effects: list[Effect]) -> None:
        for consumer in self.joined:
            state = self.machine.consumer_state(consumer)
            twin = self.naive.consumers[consumer]
            assert state is not None
            assert (state.permits, state.unacked_messages) == (twin.permits, twin.unacked()), f"consumer {consumer}"
            assert state.permits == self.permits[consumer]
            assert state.is_blocked_on_unacked == twin.blocked
        assert self.machine.state().is_blocked_on_unacked == self.naive.blocked
        assert self.machine.state().entries_in_replay == len(self.naive.waiting)
        reader = self.machine._reader
        if reader.outstanding is None and reader.retry_at_ms is None:
            stalled = self.could_go()
            assert not stalled, f"{stalled} could go, and no read is under way"

    def could_go(self) -> list[Position]:
        raise NotImplementedError

    def undelivered(self) -> list[Position]:
        acked, holders = self.log.acked, self.holders
        return [at.position for at in self.log.entries if at.position not in acked and at.position not in holders]

    def has_room(self, consumer: ConsumerId) -> bool:
        return self.naive.room(self.naive.consumers[consumer]) > 0


class SharedSchedule(MultipleSchedule):
    """Priorities hold for every single entry."""

    def build(self) -> tuple[Machine, Twin]:
        self.draw_holders()
        self.naive = NaiveShared(self.settings)
        return SharedDispatcher(self.settings), self.naive

    def perform(self, effects: list[Effect], expected: list[Delivery]) -> None:
        for effect in effects:
            assert not isinstance(effect, Read) or effect.is_replay == bool(self.naive.waiting), "replay comes first"
        super().perform(effects, expected)

    def judge_choice(self, position: Position, consumer: ConsumerId) -> None:
        level = self.joined[consumer].priority_level
        for other, added in self.joined.items():
            if added.priority_level < level and self.writable[other] and self.permits[other] > 0:
                limited = self.settings.max_unacked_messages_per_consumer or self.settings.max_unacked_messages_per_subscription
                assert limited, f"{position} went past consumer {other} of a higher priority"

    def could_go(self) -> list[Position]:
        return self.undelivered() if any(self.has_room(consumer) for consumer in self.joined) else []


class KeySharedSchedule(MultipleSchedule):
    """An entry goes to the owner of its key alone, and only while every older one of its key is with that consumer too."""

    modes = (KeySharedPolicy(), KeySharedPolicy(KeySharedMode.STICKY))
    is_ordered = True

    def build(self) -> tuple[Machine, Twin]:
        self.draw_holders()
        self.policy = self.rng.choice(self.modes)
        self.sets = (((0, 20000),), ((20001, 40000), (60000, 65535)), ((40001, 59999),), ((0, 65535),), ((30000, 30001),))
        machine = KeySharedDispatcher(self.settings)
        self.naive = NaiveKeyShared(self.settings, self.owner_of, self.is_ordered)
        self.ranges: list[tuple[int, int, ConsumerId]] = []
        self.ranged: list[ConsumerId] = []
        """Consumers for which `ranges` was made."""
        return machine, self.naive

    def joining(self, consumer: ConsumerId) -> ConsumerAdded:
        name = self.rng.choice(("a", "b", "c"))
        ranges = self.rng.choice(self.sets) if self.policy.mode is KeySharedMode.STICKY else ()
        return ConsumerAdded(consumer, name, 0, None, True, self.policy, ranges)

    def owner_of(self, slot: int) -> ConsumerId | None:
        return next((consumer for start, end, consumer in self.ranges if start <= slot <= end), None)

    def refuse(self, effects: list[Effect]) -> None:
        super().refuse(effects)
        if self.ranged == list(self.joined):
            return
        self.ranged = list(self.joined)
        self.ranges.clear()
        for consumer in self.joined:
            state = self.machine.consumer_state(consumer)
            assert state is not None
            self.ranges += [(start, end, consumer) for start, end in state.hash_ranges]

    def is_owed(self, key_hash: int) -> bool:
        return self.owner_of(key_hash % 65536 or 1) is not None

    def bound(self) -> int:
        settings = self.settings
        each = settings.key_shared_look_ahead_msg_in_replay_threshold_per_consumer * len(self.joined)
        return min(each, settings.key_shared_look_ahead_msg_in_replay_threshold_per_subscription)

    def perform(self, effects: list[Effect], expected: list[Delivery]) -> None:
        for effect in effects:
            if isinstance(effect, Read) and not effect.is_replay:
                assert len(self.naive.waiting) + effect.entries_max <= self.bound() + self.unowned_waiting(), (
                    "looks too far ahead"
                )
        super().perform(effects, expected)

    def unowned_waiting(self) -> int:
        return sum(not self.is_owed(key_hash) for key_hash in self.naive.waiting.values())

    def judge_choice(self, position: Position, consumer: ConsumerId) -> None:
        slot = self.log.entry(position).key_hash % 65536 or 1
        assert consumer == self.owner_of(slot), f"{position} went to one that does not own its key"
        if not self.is_ordered:
            return
        for entry in self.log.entries:
            at = entry.position
            if at == position or at in self.log.acked or entry.is_marker or (entry.key_hash % 65536 or 1) != slot:
                continue
            holder = self.holders.get(at)
            assert holder in (None, consumer), f"{position} went to {consumer}, {at} of that key is with {holder}"
            assert holder is not None or at > position, f"{position} overtook {at}"

    def could_go(self) -> list[Position]:
        """Entries that an owner with room waits for; unless the look-ahead is used up and they were never read."""
        rooms = {consumer for consumer in self.joined if self.has_room(consumer)}
        if not rooms:
            return []
        is_at_bound = len(self.naive.waiting) - self.unowned_waiting() >= self.bound()
        slots_seen: set[int] = set()
        held = {self.log.entry(at).key_hash % 65536 or 1: holder for at, holder in self.holding().items()}
        found = []
        for position in self.undelivered():
            entry = self.log.entry(position)
            slot = entry.key_hash % 65536 or 1
            owner = self.owner_of(slot)
            is_first = slot not in slots_seen or not self.is_ordered
            slots_seen.add(slot)
            if entry.is_marker:
                found += [] if is_at_bound else [position]
                continue
            if owner not in rooms or not is_first or (self.is_ordered and held.get(slot, owner) != owner):
                continue
            if position in self.naive.waiting or not is_at_bound:
                found.append(position)
        return found


class OutOfOrderSchedule(KeySharedSchedule):
    """allow_out_of_order: keys have owners, and no order."""

    modes = (KeySharedPolicy(allow_out_of_order=True), KeySharedPolicy(KeySharedMode.STICKY, allow_out_of_order=True))
    is_ordered = False


def test_failover_and_exclusive_deliver_in_order_to_the_active_consumer_alone() -> None:
    check_schedules(SingleActiveSchedule, SCHEDULES * 7 // 10)
    check_schedules(ExclusiveSchedule, SCHEDULES * 3 // 10)


def test_shared_delivers_each_entry_to_one_consumer_by_permits_and_priority() -> None:
    check_schedules(SharedSchedule, SCHEDULES)


def test_key_shared_keeps_the_order_of_every_key_and_stalls_no_other() -> None:
    check_schedules(KeySharedSchedule, SCHEDULES)


def test_key_shared_out_of_order_delivers_each_entry_to_the_owner_of_its_key() -> None:
    check_schedules(OutOfOrderSchedule, SCHEDULES // 10)
