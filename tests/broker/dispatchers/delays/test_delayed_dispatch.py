"""Shared and Key_Shared with messages that wait for their time: schedules against the truth, in virtual time, and single cases.

The judge knows each entry's time: none goes out before it (strict), none is out twice without having come back, and when all
time has passed every entry that is not acknowledged has gone out.
"""

from array import array
from dataclasses import replace
from random import Random

import pytest
from pyroaring import BitMap

from broker.dispatchers.contract import (
    AcknowledgeMarkers,
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    CursorReset,
    DelaysChanged,
    Deliver,
    Effect,
    EntriesAcknowledged,
    EntriesAvailable,
    EntriesPicked,
    EntriesRead,
    Event,
    MarkDeleteMoved,
    PermitsAdded,
    Read,
    ReadFailed,
    RedeliveryRequested,
    WakeAt,
    WallClockRead,
)
from broker.dispatchers.dispatchers import key_shared_dispatcher, shared_dispatcher
from broker.dispatchers.settings import DispatcherSettings
from tests.broker.dispatchers.topic_log import TopicLog
from wire.position import Position

START_MS = 1_700_000_000_000
KINDS = (shared_dispatcher, key_shared_dispatcher)
NEVER = (1 << 63) - 1


class Wait:
    """A driver in miniature: one topic, one subscription, one clock."""

    def __init__(self, make: object, *, is_strict: bool = True, tick_ms: int = 1000) -> None:
        self.machine = make(DispatcherSettings(dispatcher_read_failure_backoff_initial_time_in_ms=0))  # type: ignore[operator]
        self.log = TopicLog()
        self.times: dict[Position, int] = {}
        self.wall_ms = START_MS
        self.wake_ms: int | None = None
        self.read: Read | None = None
        self.reads = 0
        self.fails = False
        self.is_strict, self.tick_ms = is_strict, tick_ms
        self.out: dict[Position, ConsumerId] = {}
        self.deliveries: list[tuple[Position, int]] = []
        """With the time of day."""
        self.markers: list[Position] = []
        self.handle(DelaysChanged(True, tick_ms, is_strict))

    def publish(self, deliver_at_ms: int = -1, key_hash: int = 5) -> Position:
        self.log.publish(1, key_hash, is_marker=False)
        position = self.log.entries[-1].position
        self.times[position] = deliver_at_ms
        return position

    def handle(self, event: Event) -> None:
        events: list[Event] = [event]
        while events:
            for effect in self.machine.handle(events.pop(0), self.wall_ms - START_MS):
                self._perform(effect)
            self.machine.check_invariants()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Read():
                self.read = effect
            case WakeAt(wall_ms):
                self.wake_ms = wall_ms
            case AcknowledgeMarkers(ledger_id, entry_ids):
                self.markers += (Position(ledger_id, entry_id) for entry_id in entry_ids)
            case Deliver():
                for index in effect.indexes:
                    position = Position(effect.run.ledger_id, effect.run.first_entry_id + index)
                    assert effect.run.header_bytes or effect.run.offsets[index + 1] > effect.run.offsets[index], "not picked"
                    assert position not in self.out, f"{position} is out twice"
                    assert position not in self.log.acked
                    early = 0 if self.is_strict else self.tick_ms
                    assert self.times[position] <= self.wall_ms + early, f"{position} is early"
                    self.out[position] = effect.consumer
                    self.deliveries.append((position, self.wall_ms))

    def answer_reads(self, entries_max: int = 7) -> None:
        """Answers reads until the dispatcher asks for none."""
        while self.read is not None:
            read, self.read = self.read, None
            self.reads += 1
            if self.fails:
                self.fails = False
                self.handle(ReadFailed(read.read_id))
                continue
            self.handle(self._with_times(self.log.answer(read, min(entries_max, read.entries_max))))

    def _with_times(self, answer: Event) -> Event:
        if isinstance(answer, EntriesPicked):
            return replace(answer, parts=[self._entries_with_times(part) for part in answer.parts])
        return self._entries_with_times(answer) if isinstance(answer, EntriesRead) else answer

    def _entries_with_times(self, answer: EntriesRead) -> EntriesRead:
        run = answer.run
        times = [self.times[Position(run.ledger_id, entry_id)] for entry_id in range(run.first_entry_id, run.last_entry_id + 1)]
        return replace(answer, deliver_times=array("q", times), wall_ms=self.wall_ms) if max(times) >= 0 else answer

    def wait(self, milliseconds: int) -> None:
        """Time passes, and the dispatcher is woken when it asked for it."""
        end_ms = self.wall_ms + milliseconds
        while self.wake_ms is not None and self.wake_ms <= end_ms:
            self.wall_ms, self.wake_ms = max(self.wall_ms, self.wake_ms), None
            self.handle(WallClockRead(self.wall_ms))
            self.answer_reads()
        self.wall_ms = end_ms
        self.answer_reads()

    def join(self, number: int, permits: int = 1000) -> ConsumerId:
        consumer = ConsumerId(number)
        self.handle(ConsumerAdded(consumer, f"c{number}"))
        self.handle(PermitsAdded(consumer, permits))
        return consumer

    def leave(self, consumer: ConsumerId) -> None:
        self.out = {position: other for position, other in self.out.items() if other != consumer}
        self.handle(ConsumerRemoved(consumer))

    def acknowledge(self, position: Position) -> None:
        self.out.pop(position, None)
        self.log.acknowledge(position)
        self.handle(EntriesAcknowledged(position.ledger_id, BitMap([position.entry_id])))

    def skip_to(self, position: Position) -> None:
        """Clear backlog, expiry: everything up to it is acknowledged."""
        for entry in self.log.entries:
            if entry.position <= position:
                self.log.acknowledge(entry.position)
                self.out.pop(entry.position, None)
        self.handle(MarkDeleteMoved(self.log.mark_delete()))


def delayed(wait: Wait) -> int:
    return wait.machine.state().delayed_entries  # type: ignore[no-any-return]


def come_or_go(wait: Wait, rng: Random, consumers: list[ConsumerId]) -> None:
    if not consumers or rng.random() < 0.25:
        consumers.append(wait.join((max(consumers) if consumers else 0) + 1, rng.randint(0, 30)))
    elif rng.random() < 0.3:
        wait.leave(consumers.pop(rng.randrange(len(consumers))))
    else:
        wait.handle(PermitsAdded(rng.choice(consumers), rng.randint(1, 20)))


def publish_some(wait: Wait, rng: Random, hashes: list[int]) -> None:
    if rng.random() < 0.2:
        wait.log.roll_over()
    for _ in range(rng.randint(1, 10)):
        time = wait.wall_ms + rng.choice((0, 100, 900, 5_000, 60_000, 4_000_000)) + rng.randint(-50, 400)
        wait.publish(time if rng.random() < 0.6 else -1, rng.choice(hashes))
    wait.handle(EntriesAvailable())


def give_back_or_acknowledge(wait: Wait, rng: Random) -> None:
    positions = sorted(wait.out)
    if not positions:
        return
    if rng.random() < 0.3:
        position = rng.choice(positions)
        wait.handle(RedeliveryRequested(wait.out.pop(position), [position]))
        return
    for position in rng.sample(positions, rng.randint(1, len(positions))):
        wait.acknowledge(position)


def move_place(wait: Wait, rng: Random) -> None:
    entries = wait.log.entries
    if entries and rng.random() < 0.3:
        wait.skip_to(rng.choice(entries).position)
    elif entries and rng.random() < 0.2:
        wait.out.clear()
        wait.log.reset(rng.randrange(len(entries)))
        wait.handle(CursorReset())


def step(wait: Wait, rng: Random, consumers: list[ConsumerId], hashes: list[int]) -> None:
    match rng.randint(0, 13):
        case 0 | 1 | 2:
            publish_some(wait, rng, hashes)
        case 3 | 4 | 5 | 6:
            come_or_go(wait, rng, consumers)
        case 7 | 8 | 9:
            give_back_or_acknowledge(wait, rng)
        case 10:
            move_place(wait, rng)
        case 12:
            wait.wall_ms += rng.choice((-3_000, -200, 40_000))  # the clock is set
            wait.fails = rng.random() < 0.3
    if rng.random() < 0.7:
        wait.answer_reads(rng.randint(1, 9))
    wait.wait(rng.choice((0, 10, 100, 1000)))


@pytest.mark.parametrize("make", KINDS)
def test_schedules_lose_nothing_repeat_nothing_and_are_never_early(make: object) -> None:
    for seed in range(150):
        rng = Random(seed)
        wait = Wait(make, is_strict=rng.random() < 0.7)
        hashes = [rng.getrandbits(31) for _ in range(4)]
        consumers: list[ConsumerId] = []
        for _ in range(rng.randint(5, 40)):
            step(wait, rng, consumers, hashes)
        for consumer in consumers:  # who has no permits keeps its keys from others
            wait.leave(consumer)
        wait.join(1000, 100_000)
        wait.answer_reads()
        wait.wait(5_000_000)
        unacked = {entry.position for entry in wait.log.unacked()}
        assert unacked == wait.out.keys(), f"seed {seed}"
        assert delayed(wait) == 0, f"seed {seed}"


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("delay_ms", [1, 999, 1000, 1001, 30_000, 86_400_000])
def test_strict_mode_delivers_a_message_at_its_time_or_up_to_a_tenth_of_a_tick_later(make: object, delay_ms: int) -> None:
    wait = Wait(make)
    wait.join(1)
    position = wait.publish(START_MS + delay_ms)
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    assert delayed(wait) == 1
    wait.wait(delay_ms + 1000)
    ((came, at_ms),) = wait.deliveries
    assert came == position
    assert 0 <= at_ms - (START_MS + delay_ms) <= 100


@pytest.mark.parametrize("make", KINDS)
def test_a_message_due_within_a_tick_comes_at_once_unless_strict(make: object) -> None:
    for is_strict in (False, True):
        wait = Wait(make, is_strict=is_strict)
        wait.join(1)
        wait.publish(START_MS + 1000)
        wait.publish(START_MS + 1001)
        wait.handle(EntriesAvailable())
        wait.answer_reads()
        assert len(wait.out) == (0 if is_strict else 1)


@pytest.mark.parametrize("make", KINDS)
def test_a_message_without_a_time_does_not_wait_behind_those_that_have_one(make: object) -> None:
    wait = Wait(make)
    wait.join(1, 1)
    for _ in range(500):
        wait.publish(START_MS + 3_600_000, key_hash=9)
    last = wait.publish()
    wait.handle(EntriesAvailable())
    wait.answer_reads(100)
    assert list(wait.out) == [last]
    assert wait.reads <= 9, "one permit, but what is held back costs none"


@pytest.mark.parametrize("make", KINDS)
def test_delayed_entries_are_not_read_again_for_a_consumer_after_the_last_one_left(make: object) -> None:
    wait = Wait(make)
    first = wait.join(1)
    pending = wait.publish()
    for _ in range(300):
        wait.publish(START_MS + 60_000)
    wait.handle(EntriesAvailable())
    wait.answer_reads(100)
    assert list(wait.out) == [pending]
    wait.leave(first)
    before = wait.reads
    wait.join(2)
    wait.answer_reads(100)
    assert list(wait.out) == [pending]
    assert wait.reads - before <= 2
    wait.wait(61_000)
    assert len(wait.out) == 301


@pytest.mark.parametrize("make", KINDS)
def test_they_come_due_while_nobody_is_there(make: object) -> None:
    wait = Wait(make)
    first = wait.join(1)
    for _ in range(30):
        wait.publish(START_MS + 5000)
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    wait.leave(first)
    wait.wait(10_000)
    wait.join(2)
    wait.answer_reads()
    assert len(wait.out) == 30


@pytest.mark.parametrize("make", KINDS)
def test_switched_off_what_waits_comes_at_once(make: object) -> None:
    wait = Wait(make)
    wait.join(1)
    wait.times = {wait.publish(NEVER): NEVER}
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    assert delayed(wait) == 1
    wait.times = dict.fromkeys(wait.times, -1)  # the judge asks for no time either
    wait.handle(DelaysChanged(False, 1000, True))
    wait.answer_reads()
    assert len(wait.out) == 1
    assert not wait.machine.needs_deliver_times


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("time", [-(1 << 63), -1, 0, 1, START_MS - 1])
def test_times_that_are_past_or_make_no_sense_are_no_delay(make: object, time: int) -> None:
    wait = Wait(make)
    wait.join(1)
    wait.publish(max(time, -1))
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    assert len(wait.out) == 1


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("time", [253_402_300_799_000, NEVER])
def test_the_year_9999_and_the_largest_time_wait_and_hold_nobody_up(make: object, time: int) -> None:
    wait = Wait(make)
    wait.join(1)
    wait.publish(time)
    other = wait.publish(START_MS + 2000)
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    wait.wait(3000)
    assert list(wait.out) == [other]
    assert delayed(wait) == 1


@pytest.mark.parametrize("make", KINDS)
def test_f18_a_message_whose_read_fails_when_it_is_due_is_delivered_later_once(make: object) -> None:
    """P#18098, P#5489."""
    wait = Wait(make)
    wait.join(1)
    wait.publish(START_MS + 2000)
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    wait.fails = True
    wait.wait(2500)
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    assert len(wait.deliveries) == 1


@pytest.mark.parametrize("make", KINDS)
def test_f19_what_expired_while_it_waited_neither_comes_nor_is_counted(make: object) -> None:
    """P#26230, P#26080: there a bitmap said what the queue did not."""
    wait = Wait(make)
    wait.join(1)
    positions = [wait.publish(START_MS + 5000) for _ in range(20)]
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    wait.skip_to(positions[11])
    assert delayed(wait) == 8
    wait.acknowledge(positions[15])
    assert delayed(wait) == 7
    wait.wait(6000)
    assert sorted(wait.out) == [*positions[12:15], *positions[16:]]


@pytest.mark.parametrize("make", KINDS)
def test_a_clock_that_is_set_back_holds_again_what_was_due_and_not_delivered(make: object) -> None:
    wait = Wait(make)
    consumer = wait.join(1, 0)
    wait.handle(PermitsAdded(consumer, 1))
    wait.publish(START_MS + 1000)
    wait.publish(START_MS + 1000, key_hash=77)
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    wait.wait(1500)
    assert len(wait.out) == 1
    wait.wall_ms = START_MS
    wait.handle(PermitsAdded(consumer, 1))
    wait.answer_reads()
    assert len(wait.out) == 1
    assert delayed(wait) == 1
    wait.wait(1200)
    assert len(wait.out) == 2
