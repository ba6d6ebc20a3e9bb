"""The checker, on histories written by hand, is silent on what the rules allow, and says who waits for what."""

from collections.abc import Callable

import pytest

from simulation.checks.history import (
    ActiveNotified,
    Stop,
)

from .stories import EXCLUSIVE, FAILOVER, KEY_SHARED, SHARED, Story


def an_ack_on_its_way_during_a_seek() -> None:
    story = Story(SHARED, consumers=2)
    story.deliver(2, 0, 1, 2, 3, 4)
    story.ack(2, 2)
    story.seek(1, 0)
    story.end(2)
    story.drain(3, 0, 1, 3, 4)


def nacked_or_left() -> None:
    story = Story(SHARED, consumers=3)
    story.deliver(1, 0, 1, 2)
    story.nack(1, 0)
    story.deliver(2, 0)
    story.end(1)
    story.deliver(3, 1, 2)
    story.round_trip(2, 3)


def an_end_that_the_client_learns_of_later() -> None:
    story = Story(SHARED, consumers=2)
    story.deliver(1, 0)
    story.deliver(2, 0)
    story.round_trip(2)
    story.end(1)


def an_ack_that_a_crash_undid() -> None:
    story = Story(SHARED)
    story.deliver(1, 0)
    story.ack(1, 0)
    story.round_trip(1)
    story.stop(Stop.KILL)
    story.end(1)
    story.subscribe(2)
    story.deliver(2, 0)


def an_answered_ack_that_a_seek_undid() -> None:
    story = Story(EXCLUSIVE)
    story.deliver(1, 0, 1)
    story.ack(1, 0)
    story.answer(1, 0)
    story.seek(1, 0)
    story.stop(Stop.KILL)
    story.subscribe(2)
    story.deliver(2, 0, 1)


def a_rewind_after_a_nack() -> None:
    story = Story(EXCLUSIVE)
    story.deliver(1, 0, 1)
    story.nack(1)
    story.deliver(1, 2, 0, 1, 2, 3)


def a_failover() -> None:
    story = Story(FAILOVER)
    story.deliver(1, 0, 1, 2)
    story.ack(1, 0)
    story.subscribe(2)
    story.deliver(2, 1, 2, 3)
    story.deliver(1, 3)
    story.end(2)
    story.deliver(1, 1, 2, 3, 4)


def a_key_that_moves_when_it_is_done() -> None:
    story = Story(KEY_SHARED, consumers=2, key="k")
    story.deliver(1, 0, 1)
    story.ack(1, 0, 1)
    story.deliver(2, 2)
    story.round_trip(1, 2)


def everything_drained() -> None:
    story = Story(SHARED)
    story.deliver(1, 0, 1, 2)
    story.ack(1, 0, 2)
    story.round_trip(1)
    story.tell(1, 0)
    story.end(1)
    story.drain(2, 1, 3, 4)


def a_cursor_as_far_as_the_acks() -> None:
    story = Story(EXCLUSIVE)
    story.deliver(1, 0, 1, 2)
    story.ack(1, 1, cumulative=True)
    story.tell(1, 1)


ALLOWED = [
    an_ack_on_its_way_during_a_seek,
    nacked_or_left,
    an_end_that_the_client_learns_of_later,
    an_ack_that_a_crash_undid,
    an_answered_ack_that_a_seek_undid,
    a_rewind_after_a_nack,
    a_failover,
    a_key_that_moves_when_it_is_done,
    everything_drained,
    a_cursor_as_far_as_the_acks,
]


@pytest.mark.parametrize("story", ALLOWED, ids=[story.__name__ for story in ALLOWED])
def test_an_allowed_story_raises_no_violation(story: Callable[[], None]) -> None:
    story()


def test_a_seek_forward_is_no_loss() -> None:
    story = Story(EXCLUSIVE)
    story.deliver(1, 0, 1, 2)
    story.ack(1, 2, cumulative=True)
    story.round_trip(1)
    story.seek(1, 1)
    story.subscribe(2)
    story.deliver(2, 1, 2)
    story.seek(2, 4)
    story.drain(3, 4)


def test_a_message_that_somebody_could_have_is_left_behind() -> None:
    story = Story(SHARED, consumers=2)
    story.deliver(1, 0, 1, 2, 3)
    assert story.checker.left_behind() == "s: 1:4:-1"
    story.deliver(2, 4)
    assert story.checker.left_behind() is None
    story.nack(2, 4)
    assert story.checker.left_behind() == "s: 1:4:-1"
    story.deliver(1, 4)
    story.end(1)
    assert story.checker.left_behind() == "s: 1:0:-1"
    story.end(2)
    assert story.checker.left_behind() is None, "nobody is there"


def test_on_failover_the_active_consumer_is_to_have_everything() -> None:
    story = Story(FAILOVER, consumers=2)
    story.checker.handle(ActiveNotified(story.tick(), 1, True))
    story.deliver(1, 0, 1, 2, 3, 4)
    assert story.checker.left_behind() is None
    story.checker.handle(ActiveNotified(story.tick(), 1, False))
    story.checker.handle(ActiveNotified(story.tick(), 2, True))
    assert story.checker.left_behind() == "s: 1:0:-1"


def test_on_key_shared_a_message_may_wait_for_one_of_its_key_that_is_out() -> None:
    story = Story(KEY_SHARED, consumers=2, key="k")
    story.deliver(1, 0, 1)
    assert story.checker.left_behind() is None
    story.ack(1, 0, 1)
    story.round_trip(1)
    assert story.checker.left_behind() == "s: 1:2:-1"
