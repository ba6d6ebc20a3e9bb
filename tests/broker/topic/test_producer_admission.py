"""The access modes: who may publish, who waits, who is fenced out, and a topic epoch that only grows."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import ServerError
from broker.topic.contract import AccessMode, ProducerRequest
from broker.topic.producer_events import (
    Admit,
    CloseProducer,
    Effect,
    Enqueue,
    EpochNotStored,
    EpochStored,
    ProducerArrived,
    ProducerKey,
    ProducerLeft,
    Refuse,
    ReplaceProducer,
    StoreEpoch,
)
from broker.topic.producers import ProducerAdmission
from tests.broker.topic.topic_world import PRODUCER

SHARED, EXCLUSIVE = AccessMode.SHARED, AccessMode.EXCLUSIVE
WAIT, FENCING = AccessMode.WAIT_FOR_EXCLUSIVE, AccessMode.EXCLUSIVE_WITH_FENCING
BUSY, FENCED = ServerError.PRODUCER_BUSY, ServerError.PRODUCER_FENCED


class Door:
    """The machine, with epochs stored at once unless the test does it."""

    def __init__(self, topic_epoch: int | None = None, *, stores: bool = True, **limits: int) -> None:
        self.machine = ProducerAdmission("t", topic_epoch, **limits)
        self.stores = stores
        self.requests: dict[ProducerKey, ProducerRequest] = {}

    def arrive(self, key: int, mode: AccessMode, name: str | None = None, **fields: Any) -> list[Effect]:
        request = replace(PRODUCER, name=name or f"p{key}", access_mode=mode, address=f"10.0.0.{key}:1", **fields)
        self.requests[ProducerKey(key)] = request
        return self._follow(self.machine.handle(ProducerArrived(ProducerKey(key), request)))

    def leave(self, key: int) -> list[Effect]:
        return self._follow(self.machine.handle(ProducerLeft(ProducerKey(key), self.requests[ProducerKey(key)].name)))

    def stored(self, key: int, epoch: int) -> list[Effect]:
        return self._follow(self.machine.handle(EpochStored(ProducerKey(key), epoch)))

    def not_stored(self, key: int) -> list[Effect]:
        return self._follow(self.machine.handle(EpochNotStored(ProducerKey(key), ServerError.PERSISTENCE, "no")))

    def _follow(self, effects: list[Effect]) -> list[Effect]:
        self.machine.check_invariants()
        seen: list[Effect] = []
        for effect in effects:
            if isinstance(effect, StoreEpoch) and self.stores:
                seen.extend(self.stored(effect.key, effect.epoch))
            else:
                seen.append(effect)
        return seen


def codes(effects: list[Effect]) -> list[ServerError]:
    return [effect.code for effect in effects if isinstance(effect, Refuse)]


def test_shared_producers_publish_side_by_side_without_an_epoch() -> None:
    door = Door()
    assert door.arrive(1, SHARED) == [Admit(ProducerKey(1), None)]
    assert door.arrive(2, SHARED) == [Admit(ProducerKey(2), None)]


def test_an_exclusive_producer_gets_the_first_epoch_and_keeps_everybody_else_out() -> None:
    door = Door()
    assert door.arrive(1, EXCLUSIVE) == [Admit(ProducerKey(1), 0)]
    assert codes(door.arrive(2, SHARED)) == [BUSY]
    assert codes(door.arrive(3, EXCLUSIVE)) == [FENCED]


def test_an_exclusive_producer_is_fenced_by_shared_ones() -> None:
    door = Door()
    door.arrive(1, SHARED)
    assert codes(door.arrive(2, EXCLUSIVE)) == [FENCED]


def test_nobody_is_admitted_before_the_epoch_is_stored() -> None:
    door = Door(4, stores=False)
    assert door.arrive(1, EXCLUSIVE) == [StoreEpoch(ProducerKey(1), 5)]
    assert codes(door.arrive(2, SHARED)) == [BUSY]
    assert codes(door.arrive(3, EXCLUSIVE)) == [FENCED]
    assert door.stored(1, 5) == [Admit(ProducerKey(1), 5)]


def test_when_the_epoch_cannot_be_stored_the_producer_is_refused_and_the_next_one_tries() -> None:
    door = Door(stores=False)
    door.arrive(1, EXCLUSIVE)
    assert door.arrive(2, WAIT) == [Enqueue(ProducerKey(2))]
    effects = door.not_stored(1)
    assert codes(effects) == [ServerError.PERSISTENCE]
    assert effects[1] == StoreEpoch(ProducerKey(2), 1)


def test_the_epoch_grows_with_every_exclusive_producer() -> None:
    door = Door()
    epochs = []
    for key in range(4):
        (admitted,) = door.arrive(key, EXCLUSIVE)
        assert isinstance(admitted, Admit)
        epochs.append(admitted.topic_epoch)
        door.leave(key)
    assert epochs == [0, 1, 2, 3]


def test_an_exclusive_producer_comes_back_with_its_epoch_if_nobody_was_there_meanwhile() -> None:
    door = Door()
    door.arrive(1, EXCLUSIVE)
    door.leave(1)
    assert door.arrive(2, EXCLUSIVE, topic_epoch=0) == [Admit(ProducerKey(2), 0)]


def test_an_exclusive_producer_that_comes_back_after_another_is_fenced() -> None:
    door = Door()
    door.arrive(1, EXCLUSIVE)
    door.leave(1)
    door.arrive(2, EXCLUSIVE)
    door.leave(2)
    assert codes(door.arrive(3, EXCLUSIVE, topic_epoch=0)) == [FENCED]
    assert codes(door.arrive(4, WAIT, topic_epoch=0)) == [FENCED]
    assert codes(door.arrive(5, FENCING, topic_epoch=0)) == [FENCED]


def test_waiting_producers_get_their_turn_in_order_of_arrival() -> None:
    door = Door()
    door.arrive(1, SHARED)
    assert door.arrive(2, WAIT) == [Enqueue(ProducerKey(2))]
    assert door.arrive(3, WAIT) == [Enqueue(ProducerKey(3))]
    assert codes(door.arrive(4, SHARED)) == [BUSY], "who waits goes first"
    assert door.leave(1) == [Admit(ProducerKey(2), 0)]
    assert door.leave(2) == [Admit(ProducerKey(3), 1)]


def test_a_waiting_producer_that_leaves_is_passed_over() -> None:
    door = Door()
    door.arrive(1, EXCLUSIVE)
    door.arrive(2, WAIT)
    door.arrive(3, WAIT)
    assert door.leave(2) == []
    assert door.leave(1) == [Admit(ProducerKey(3), 1)]


def test_fencing_ends_whoever_publishes_and_refuses_whoever_waits() -> None:
    door = Door()
    door.arrive(1, EXCLUSIVE)
    door.arrive(2, WAIT)
    effects = door.arrive(3, FENCING)
    assert [type(effect) for effect in effects] == [Refuse, CloseProducer, Admit]
    assert codes(effects) == [FENCED]
    assert effects[1].key == ProducerKey(1)
    assert effects[2] == Admit(ProducerKey(3), 1)
    assert door.leave(1) == []


def test_fencing_also_ends_shared_producers() -> None:
    door = Door()
    door.arrive(1, SHARED)
    door.arrive(2, SHARED)
    effects = door.arrive(3, FENCING)
    assert [effect.key for effect in effects if isinstance(effect, CloseProducer)] == [ProducerKey(1), ProducerKey(2)]


def test_fencing_refuses_one_that_is_about_to_be_admitted_and_uses_a_higher_epoch() -> None:
    door = Door(stores=False)
    door.arrive(1, EXCLUSIVE)
    effects = door.arrive(2, FENCING)
    assert codes(effects) == [FENCED]
    assert effects[1] == StoreEpoch(ProducerKey(2), 1)
    assert door.stored(1, 0) == [], "the fenced one is not admitted when its epoch turns up"
    assert door.stored(2, 1) == [Admit(ProducerKey(2), 1)]


def test_fencing_with_an_old_epoch_harms_nobody() -> None:
    door = Door()
    door.arrive(1, FENCING)
    door.arrive(2, FENCING)
    effects = door.arrive(3, FENCING, topic_epoch=0)
    assert codes(effects) == [FENCED]
    assert len(effects) == 1


def test_the_same_name_twice_is_refused() -> None:
    door = Door()
    door.arrive(1, SHARED, "same")
    assert codes(door.arrive(2, SHARED, "same")) == [BUSY]


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_generated_name_with_a_higher_epoch_replaces_itself(epoch: int) -> None:
    door = Door()
    door.arrive(1, SHARED, "same", epoch=0)
    effects = door.arrive(2, SHARED, "same", epoch=epoch)
    if epoch:
        assert effects == [ReplaceProducer(ProducerKey(1)), Admit(ProducerKey(2), None)]
        assert door.leave(1) == []
        assert door.machine.admitted_count == 1, "the old one leaving does not remove the new one"
    else:
        assert codes(effects) == [BUSY]


def test_a_name_that_the_user_chose_is_not_replaced_from_elsewhere() -> None:
    door = Door()
    door.arrive(1, SHARED, "same", name_is_generated=False)
    assert codes(door.arrive(2, SHARED, "same", name_is_generated=False, epoch=5)) == [BUSY]


def test_an_exclusive_producer_replaces_itself_when_its_old_connection_is_not_missed_yet() -> None:
    door = Door()
    door.arrive(1, EXCLUSIVE, "same", name_is_generated=False)
    door.arrive(9, WAIT)
    effects = door.arrive(2, EXCLUSIVE, "same", name_is_generated=False, epoch=1, topic_epoch=0)
    assert effects == [ReplaceProducer(ProducerKey(1)), Admit(ProducerKey(2), 0)]
    assert codes(door.arrive(3, EXCLUSIVE, "same", name_is_generated=False, epoch=2, topic_epoch=7)) == [FENCED]


def test_limits_on_producers_are_held() -> None:
    door = Door(producers_max=2)
    door.arrive(1, SHARED)
    door.arrive(2, SHARED)
    assert codes(door.arrive(3, SHARED)) == [BUSY]
    near = Door(same_address_max=1)
    near.arrive(1, SHARED)
    assert codes(near._follow(near.machine.handle(ProducerArrived(ProducerKey(2), near.requests[ProducerKey(1)])))) == [BUSY]
    assert near.arrive(3, SHARED) == [Admit(ProducerKey(3), None)]


Step = tuple[str, int, AccessMode]


class Crowd:
    """Naive twin: who may publish and who waits, kept from the effects alone."""

    def __init__(self) -> None:
        self.door = Door(stores=False)
        self.pending: list[StoreEpoch] = []
        self.publishing: dict[ProducerKey, AccessMode] = {}
        self.unanswered: set[ProducerKey] = set()
        self.waiting: set[ProducerKey] = set()
        self.granted: list[int] = []
        self.epochs: dict[ProducerKey, int] = {}
        self.keys = 0

    def step(self, what: str, number: int, mode: AccessMode) -> None:
        match what:
            case "arrive":
                self.arrive(mode, f"n{number}", None)
            case "return" if self.epochs:
                old = sorted(self.epochs)[number % len(self.epochs)]
                self.arrive(EXCLUSIVE, self.door.requests[old].name, self.epochs[old])
            case "leave" if self.keys:
                self.leave(ProducerKey(number % self.keys + 1))
            case "store" | "fail":
                self.settle(what == "store")

    def arrive(self, mode: AccessMode, name: str, topic_epoch: int | None) -> None:
        self.keys += 1
        self.unanswered.add(ProducerKey(self.keys))
        self.follow(self.door.arrive(self.keys, mode, name, epoch=self.keys, topic_epoch=topic_epoch))

    def leave(self, key: ProducerKey) -> None:
        self.publishing.pop(key, None)
        self.unanswered.discard(key)
        self.waiting.discard(key)
        self.follow(self.door.leave(key))

    def settle(self, is_stored: bool) -> None:
        if self.pending:
            store = self.pending.pop(0)
            self.follow(self.door.stored(store.key, store.epoch) if is_stored else self.door.not_stored(store.key))

    def follow(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Admit(key, epoch):
                    self.answered(key)
                    self.admitted(key, epoch)
                case Enqueue(key):
                    self.unanswered.remove(key)
                    self.waiting.add(key)
                case Refuse(key):
                    self.answered(key)
                case StoreEpoch():
                    self.pending.append(effect)
                case CloseProducer(key, _) | ReplaceProducer(key):
                    self.publishing.pop(key, None)
                    self.waiting.discard(key)
            assert len(self.publishing) <= 1 or set(self.publishing.values()) == {SHARED}

    def answered(self, key: ProducerKey) -> None:
        assert key in self.unanswered or key in self.waiting
        self.unanswered.discard(key)
        self.waiting.discard(key)

    def admitted(self, key: ProducerKey, epoch: int | None) -> None:
        mode = self.publishing[key] = self.door.requests[key].access_mode
        if mode is not SHARED:
            assert epoch is not None
            self.granted.append(epoch)
            self.epochs[key] = epoch


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["arrive", "leave", "store", "fail", "return"]),
            st.integers(0, 5),
            st.sampled_from(list(AccessMode)),
        ),
        max_size=40,
    )
)
def test_whatever_happens_one_exclusive_producer_at_most_and_epochs_only_grow(steps: list[Step]) -> None:
    crowd = Crowd()
    for step in steps:
        crowd.step(*step)
    while crowd.pending:
        crowd.settle(True)
    assert crowd.granted == sorted(crowd.granted)
    assert not crowd.unanswered, "everybody was answered"
    assert not crowd.waiting or crowd.publishing, "nobody waits for an empty topic"
