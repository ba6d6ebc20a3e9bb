"""The access modes: who may publish, who waits, who is fenced out, and a topic epoch that only grows."""

from dataclasses import replace

import pytest

from broker.errors import ServerError
from broker.topic.contract import AccessMode
from broker.topic.publish.admission_events import (
    Admit,
    CheckPredecessor,
    CloseProducer,
    Enqueue,
    ProducerArrived,
    ProducerKey,
    Refuse,
    ReplaceProducer,
    StoreEpoch,
)
from tests.broker.topic.publish.producer_door import BUSY, EXCLUSIVE, FENCED, FENCING, SHARED, WAIT, Door, codes


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


def test_no_producer_is_admitted_before_the_epoch_is_stored() -> None:
    door = Door(4, stores=False)
    assert door.arrive(1, EXCLUSIVE) == [StoreEpoch(ProducerKey(1), 5)]
    assert codes(door.arrive(2, SHARED)) == [BUSY]
    assert codes(door.arrive(3, EXCLUSIVE)) == [FENCED]
    assert door.stored(1, 5) == [Admit(ProducerKey(1), 5)]


def test_a_producer_whose_epoch_cannot_be_stored_is_refused_and_the_next_one_tries() -> None:
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


def test_the_same_name_is_free_once_its_holder_turns_out_to_be_gone() -> None:
    door = Door(dead=[1])
    door.arrive(1, SHARED, "same")
    assert door.arrive(2, SHARED, "same") == [Admit(ProducerKey(2), None)]
    assert door.asked == [CheckPredecessor(ProducerKey(2), ProducerKey(1))]


def test_a_predecessor_on_the_same_connection_is_not_asked() -> None:
    door = Door(checks=False)
    door.arrive(1, SHARED, "same")
    twin = door.requests[ProducerKey(1)]
    assert codes(door.machine.handle(ProducerArrived(ProducerKey(2), replace(twin, producer_id=9)))) == [BUSY]


@pytest.mark.parametrize("mode", [SHARED, EXCLUSIVE])
def test_an_exclusive_producer_that_is_gone_keeps_nobody_out(mode: AccessMode) -> None:
    door = Door(dead=[1])
    door.arrive(1, EXCLUSIVE)
    assert door.arrive(2, mode) == [Admit(ProducerKey(2), 0 if mode is SHARED else 1)]


def test_a_producer_waiting_for_a_dead_one_goes_before_the_one_that_found_it_dead() -> None:
    door = Door(dead=[1])
    door.arrive(1, EXCLUSIVE)
    door.arrive(2, WAIT)
    effects = door.arrive(3, EXCLUSIVE)
    assert effects[0] == Admit(ProducerKey(2), 1)
    assert codes(effects) == [FENCED]


def test_the_first_of_two_producers_gets_the_name_of_a_dead_one() -> None:
    door = Door(checks=False)
    door.arrive(1, SHARED, "same")
    assert door.arrive(2, SHARED, "same") == [CheckPredecessor(ProducerKey(2), ProducerKey(1))]
    assert door.arrive(3, SHARED, "same") == [CheckPredecessor(ProducerKey(3), ProducerKey(1))]
    door.leave(1)
    assert door.checked(2) == [Admit(ProducerKey(2), None)]
    assert codes(door.checked(3)) == [BUSY], "it is asked once for each arrival"


def test_one_that_leaves_while_its_predecessor_is_asked_is_not_admitted() -> None:
    door = Door(checks=False)
    door.arrive(1, SHARED, "same")
    door.arrive(2, SHARED, "same")
    assert door.leave(2) == []
    assert door.leave(1) == []
    assert door.checked(2) == []
    assert door.machine.admitted_count == 0


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
