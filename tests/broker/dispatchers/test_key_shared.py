"""Key_Shared, by example: joins, leaves, nacks, slow consumers, the look-ahead, policies."""

from array import array
from collections.abc import Sequence
from dataclasses import replace

from pyroaring import BitMap

from broker.dispatchers.contract import (
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    DelaysChanged,
    Deliver,
    Dispatcher,
    Effect,
    EntriesAcknowledged,
    EntriesAvailable,
    EntriesPicked,
    EntriesRead,
    Event,
    IndexLoaded,
    IndexLoading,
    KeySharedMode,
    KeySharedPolicy,
    MarkDeleteMoved,
    NothingToRead,
    PermitsAdded,
    Read,
    RedeliveryRequested,
    RefuseConsumer,
    WritabilityChanged,
)
from broker.dispatchers.dispatchers import key_shared_dispatcher
from broker.dispatchers.settings import DispatcherSettings
from broker.errors import ServerError
from wire.position import Position
from wire.run import EntryRun, RunMetadata

LEDGER = 3
ONE, TWO = ConsumerId(1), ConsumerId(2)
STICKY = KeySharedPolicy(KeySharedMode.STICKY)
LOW, HIGH = 10, 40_000
"""Keys, by their slots: ONE has 0..32767, TWO has the rest."""


class Topic:
    """A dispatcher on a list of keys, and who got what in which order."""

    def __init__(self, keys: Sequence[int], settings: DispatcherSettings | None = None) -> None:
        self.keys = list(keys)
        self.dispatcher: Dispatcher = key_shared_dispatcher(settings or DispatcherSettings())
        self.got: list[tuple[int, int]] = []
        self.read: Read | None = None
        self.entries_read = 0

    def feed(self, event: Event) -> list[Effect]:
        effects = self.dispatcher.handle(event, 0)
        self.dispatcher.check_invariants()
        for effect in effects:
            if isinstance(effect, Read):
                self.read = effect
            elif isinstance(effect, Deliver):
                self.got += [(effect.consumer, effect.run.first_entry_id + index) for index in effect.indexes]
        return effects

    def join(self, consumer: ConsumerId, *ranges: tuple[int, int], permits: int = 1000) -> None:
        self.feed(ConsumerAdded(consumer, f"c{consumer}", key_shared=STICKY, hash_ranges=ranges))
        self.feed(PermitsAdded(consumer, permits))

    def join_low_and_high(self, low_permits: int = 1000, high_permits: int = 1000) -> None:
        self.join(ONE, (0, 32767), permits=low_permits)
        self.join(TWO, (32768, 65535), permits=high_permits)

    def answer(self, entries_max: int = 1000) -> None:
        """Answer the read that is under way, with so many entries at most."""
        read, self.read = self.read, None
        assert read is not None
        if read.picks is not None:
            ((_, picks),) = read.picks
            self.feed(EntriesPicked(read.read_id, [self._run(read.read_id, each, each + 1) for each in picks]))
            return
        first = read.position.entry_id if read.position is not None else 0
        answer = self._run(read.read_id, first, first + min(entries_max, read.entries_max))
        self.feed(answer if answer.run.count else NothingToRead(read.read_id))

    def _run(self, read_id: int, first: int, end: int) -> EntriesRead:
        keys = self.keys[first:end]
        self.entries_read += len(keys)
        count = len(keys)
        run = EntryRun(LEDGER, first, b"", array("I", bytes(4 * count + 4)))
        metadata = RunMetadata(array("I", [1] * count), array("B", bytes(count)), 0, count)
        return EntriesRead(read_id, run, metadata, Position(-1, -1), BitMap(), {}, array("I", keys))

    def settle(self) -> list[tuple[int, int]]:
        """Answer reads until there are none; what was delivered meanwhile."""
        self.got.clear()
        for _ in range(1000):
            if self.read is None:
                return list(self.got)
            self.answer()
        raise AssertionError("it reads and reads")

    def acknowledge(self, consumer: ConsumerId, *entry_ids: int) -> None:
        self.feed(EntriesAcknowledged(LEDGER, BitMap(entry_ids), consumer))


def test_each_key_has_one_consumer() -> None:
    topic = Topic([LOW, HIGH, HIGH, LOW])
    topic.join_low_and_high()
    assert sorted(topic.settle(), key=lambda item: item[1]) == [(1, 0), (2, 1), (2, 2), (1, 3)]


def test_entries_of_a_leaving_consumer_go_in_order_before_newer_ones_of_its_keys() -> None:
    topic = Topic([LOW, LOW, LOW])
    topic.join(ONE, (0, 65535))
    assert topic.settle() == [(1, 0), (1, 1), (1, 2)]
    topic.keys += [LOW, LOW]
    topic.feed(EntriesAvailable())
    topic.acknowledge(ONE, 0)
    topic.feed(RedeliveryRequested(ONE, [Position(LEDGER, 2)]))
    topic.feed(ConsumerAdded(TWO, "c2", key_shared=STICKY, hash_ranges=((0, 65535),)))
    topic.feed(ConsumerRemoved(ONE))
    topic.join(TWO, (0, 65535))
    assert topic.settle() == [(2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]


def test_with_another_consumer_left_the_leavers_entries_are_replayed_first() -> None:
    settings = DispatcherSettings(subscription_key_shared_use_consistent_hashing=False)
    topic = Topic([LOW] * 4 + [HIGH], settings)
    for consumer in (ONE, TWO):
        topic.feed(ConsumerAdded(consumer, f"c{consumer}"))
        topic.feed(PermitsAdded(consumer, 4 if consumer == TWO else 100))
    assert topic.settle() == [(2, 0), (2, 1), (2, 2), (2, 3), (1, 4)]
    topic.keys += [LOW, LOW]
    topic.feed(EntriesAvailable())
    assert topic.settle() == []
    topic.feed(ConsumerRemoved(TWO))
    assert topic.settle() == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 5), (1, 6)]


def test_a_key_moves_to_its_new_owner_only_when_the_old_one_has_acknowledged_all_of_it() -> None:
    settings = DispatcherSettings(subscription_key_shared_use_consistent_hashing=False)
    topic = Topic([LOW, LOW, HIGH], settings)
    topic.feed(ConsumerAdded(ONE, "c1"))
    topic.feed(PermitsAdded(ONE, 100))
    assert topic.settle() == [(1, 0), (1, 1), (1, 2)]
    topic.feed(ConsumerAdded(TWO, "c2"))
    topic.feed(PermitsAdded(TWO, 100))
    topic.keys += [LOW, HIGH, LOW]
    topic.feed(EntriesAvailable())
    assert topic.settle() == [(1, 4)]
    assert topic.dispatcher.state().draining_hashes == 1
    topic.acknowledge(ONE, 0)
    assert topic.settle() == []
    topic.acknowledge(ONE, 1)
    assert topic.settle() == [(2, 3), (2, 5)]
    assert topic.dispatcher.state().draining_hashes == 0


def test_after_a_nack_nothing_newer_of_that_key_is_dispatched_before_it() -> None:
    topic = Topic([LOW, LOW, HIGH])
    topic.join_low_and_high(low_permits=2)
    topic.settle()
    topic.feed(RedeliveryRequested(ONE, [Position(LEDGER, 0)]))
    topic.keys += [LOW, HIGH]
    topic.feed(EntriesAvailable())
    assert topic.settle() == [(2, 4)]
    topic.feed(PermitsAdded(ONE, 10))
    assert topic.settle() == [(1, 0), (1, 3)]


def test_a_slow_consumer_stalls_its_own_keys_alone_and_each_entry_is_read_at_most_three_times() -> None:
    topic = Topic([LOW, HIGH] * 500)
    topic.join_low_and_high(low_permits=1, high_permits=10_000)
    got = topic.settle()
    assert [entry_id for consumer, entry_id in got if consumer == TWO] == list(range(1, 1000, 2))
    assert [entry_id for consumer, entry_id in got if consumer == ONE] == [0]
    for entry_id in range(0, 998, 2):
        topic.acknowledge(ONE, entry_id)
        topic.feed(PermitsAdded(ONE, 1))
        assert topic.settle() == [(1, entry_id + 2)]
    assert topic.entries_read <= 3 * 1000


def test_nothing_new_is_read_at_the_look_ahead_bound_until_waiting_entries_can_go() -> None:
    settings = DispatcherSettings(key_shared_look_ahead_msg_in_replay_threshold_per_consumer=10)
    topic = Topic([LOW] * 50 + [HIGH], settings)
    topic.join_low_and_high(low_permits=0)
    assert topic.settle() == []
    assert topic.dispatcher.state().entries_in_replay == 20
    topic.feed(PermitsAdded(ONE, 1000))
    assert topic.settle()[-1] == (2, 50)


def test_keys_that_nobody_has_are_passed_over_and_delivered_when_somebody_comes_for_them() -> None:
    settings = DispatcherSettings(key_shared_look_ahead_msg_in_replay_threshold_per_consumer=10)
    topic = Topic([LOW] * 50 + [HIGH] * 50, settings)
    topic.join(TWO, (32768, 65535))
    assert [entry_id for _, entry_id in topic.settle()] == list(range(50, 100))
    topic.join(ONE, (0, 32767))
    assert topic.settle() == [(1, entry_id) for entry_id in range(50)]


def test_overlapping_sticky_ranges_are_refused() -> None:
    topic = Topic([])
    topic.join(ONE, (0, 100))
    for ranges in (((100, 200),), (), ((300, 200),), ((200, 70_000),), ((200, 300), (250, 260))):
        (refusal,) = topic.feed(ConsumerAdded(TWO, "c2", key_shared=STICKY, hash_ranges=ranges))
        assert isinstance(refusal, RefuseConsumer)
        assert refusal.code == ServerError.CONSUMER_ASSIGN
    assert topic.feed(ConsumerAdded(TWO, "c2", key_shared=STICKY, hash_ranges=((101, 200),))) == []
    state = topic.dispatcher.consumer_state(TWO)
    assert state is not None
    assert state.hash_ranges == ((101, 200),)


def test_another_policy_is_refused_while_consumers_are_there_and_taken_when_they_have_gone() -> None:
    topic = Topic([])
    topic.join(ONE, (0, 100))
    (refusal,) = topic.feed(ConsumerAdded(TWO, "c2"))
    assert isinstance(refusal, RefuseConsumer)
    assert refusal.code == ServerError.CONSUMER_BUSY
    topic.feed(ConsumerRemoved(ONE))
    assert topic.feed(ConsumerAdded(TWO, "c2")) == []


def test_a_consumer_that_nacks_all_the_time_does_not_keep_others_from_new_entries() -> None:
    topic = Topic([LOW] * 200 + [HIGH] * 200)
    topic.join_low_and_high(low_permits=100)
    for _ in range(20):
        topic.answer()
        topic.feed(RedeliveryRequested(ONE, None))
        topic.feed(PermitsAdded(ONE, 50))
    assert sum(consumer == TWO for consumer, _ in topic.got) == 200


# ---- what only one line of the machine stands for


def test_entries_are_delivered_once_when_consumers_change_twice_while_they_are_read_again() -> None:
    topic = Topic([HIGH, LOW, LOW, LOW])
    topic.join(ONE, (0, 9), (10, 10))
    assert topic.settle() == [(1, 1), (1, 2), (1, 3)]
    topic.join(TWO, (60_000, 60_000))
    topic.answer(1)
    topic.join(ConsumerId(3), (60_001, 60_001))
    topic.answer(1)
    assert topic.settle() == []


def due(topic: Topic, *entry_ids: int) -> None:
    """These are found to be due, before the place where reading goes on."""
    topic.feed(IndexLoading())
    topic.feed(IndexLoaded([(LEDGER, BitMap(entry_ids))], Position(LEDGER, max(entry_ids) + 1)))


def test_a_due_entry_of_a_slot_without_an_owner_waits_for_its_consumer() -> None:
    topic = Topic([LOW, HIGH])
    due(topic, 0, 1)
    topic.join(ONE, (0, 32767))
    assert topic.settle() == [(1, 0)]
    assert topic.dispatcher.state().entries_in_replay == 1
    topic.join(TWO, (32768, 65535))
    assert topic.settle() == [(2, 1)]
    assert topic.dispatcher.state().entries_in_replay == 0


def test_a_due_entry_without_an_owner_is_forgotten_when_mark_delete_passes_it() -> None:
    topic = Topic([LOW, HIGH])
    due(topic, 0, 1)
    topic.join(ONE, (0, 32767))
    topic.settle()
    topic.feed(MarkDeleteMoved(Position(LEDGER, 1)))
    assert topic.dispatcher.state().entries_in_replay == 0
    topic.join(TWO, (32768, 65535))
    assert topic.settle() == []


def test_a_due_entry_is_forgotten_when_it_is_acknowledged() -> None:
    topic = Topic([LOW, LOW])
    due(topic, 0, 1)
    topic.feed(EntriesAcknowledged(LEDGER, BitMap([0])))
    assert topic.dispatcher.state().entries_in_replay == 1
    topic.join(ONE, (0, 32767))
    assert topic.settle() == [(1, 1)]


def test_due_entries_that_no_longer_exist_are_forgotten() -> None:
    topic = Topic([LOW] * 4)
    due(topic, 0, 1, 2, 3)
    topic.join(ONE, (0, 32767))
    read, topic.read = topic.read, None
    assert read is not None
    assert (read.position, read.picks) == (Position(LEDGER, 0), None)
    topic.feed(topic._run(read.read_id, 2, 4))
    assert topic.dispatcher.state().entries_in_replay == 0
    assert topic.got == [(1, 2), (1, 3)]


def scattered(topic: Topic) -> Read:
    """ONE has no room for entries 0, 9 and 20, which wait; now it has, and they are being picked."""
    topic.join_low_and_high(low_permits=0)
    topic.settle()
    topic.feed(PermitsAdded(ONE, 100))
    read, topic.read = topic.read, None
    assert read is not None
    assert read.picks is not None
    assert [(ledger_id, list(picks)) for ledger_id, picks in read.picks] == [(LEDGER, [0, 9, 20])]
    return read


def scattered_topic() -> Topic:
    return Topic([LOW if entry_id in (0, 9, 20) else HIGH for entry_id in range(21)])


def test_an_entry_acknowledged_while_it_is_picked_is_not_delivered() -> None:
    topic = scattered_topic()
    read = scattered(topic)
    topic.acknowledge(TWO, 9)
    topic.got.clear()
    topic.feed(EntriesPicked(read.read_id, [topic._run(read.read_id, each, each + 1) for each in (0, 9, 20)]))
    assert topic.got == [(1, 0), (1, 20)]


def test_entries_that_can_no_longer_be_picked_are_forgotten() -> None:
    topic = scattered_topic()
    read = scattered(topic)
    topic.feed(EntriesPicked(read.read_id, [topic._run(read.read_id, 0, 1)], [(LEDGER, BitMap([9, 20]))]))
    assert topic.dispatcher.state().entries_in_replay == 0
    assert topic.read is None or topic.read.picks is None


def test_a_read_on_that_finds_nothing_takes_nothing_from_what_waits() -> None:
    topic = Topic([HIGH, LOW])
    topic.join(ONE, (0, 32767))
    topic.feed(WritabilityChanged(ONE, False))
    assert topic.settle() == []
    topic.join(TWO, (60_000, 60_000))
    read, topic.read = topic.read, None
    assert read is not None
    assert (read.is_replay, read.position) == (False, Position(LEDGER, 0)), "before the entry that waits"
    topic.feed(NothingToRead(read.read_id))
    topic.feed(WritabilityChanged(ONE, True))
    assert topic.settle() == [(1, 1)]


def test_entries_that_wait_for_no_consumer_do_not_hold_up_the_others() -> None:
    settings = DispatcherSettings(key_shared_look_ahead_msg_in_replay_threshold_per_subscription=2)
    topic = Topic([HIGH, HIGH, LOW], settings)
    topic.join_low_and_high()
    topic.settle()
    topic.feed(ConsumerRemoved(TWO))
    topic.keys.append(LOW)
    topic.feed(EntriesAvailable())
    assert topic.settle() == [(1, 3)]


def test_permits_bound_the_next_read_when_half_of_a_run_is_delayed() -> None:
    topic = Topic([LOW, LOW])
    topic.feed(DelaysChanged(True, 1000, True))
    topic.join(ONE, (0, 32767), permits=10)
    read, topic.read = topic.read, None
    assert read is not None
    run = topic._run(read.read_id, 0, 2)
    topic.feed(replace(run, deliver_times=array("q", [0, 5000]), wall_ms=1))
    assert topic.got == [(1, 0)]
    again: Read | None = topic.read
    assert again is not None
    assert again.entries_max == 9
