"""The checker, on histories written by hand, is loud on each thing that the rules forbid."""

import re
from collections.abc import Callable

import pytest

from simulation.checks.history import (
    Acknowledged,
    Delivered,
    Message,
    MessageKey,
    Sent,
    Stop,
    Violation,
)
from wire.position import Position

from .stories import EXCLUSIVE, KEY_SHARED, PRODUCER, SHARED, Story


def receipt_out_of_order() -> None:
    story = Story(EXCLUSIVE, messages=2)
    story.messages.append(Message(-1, MessageKey("p", 2), "", b"p:2"))
    story.checker.handle(Sent(10, PRODUCER, (story.messages[2],)))
    story.checker.handle(Acknowledged(11, PRODUCER, 3, Position(1, 3)))


def ids_that_do_not_grow() -> None:
    story = Story(EXCLUSIVE, messages=2)
    story.messages.append(Message(-1, MessageKey("p", 2), "", b"p:2"))
    story.publish(2, at=1)


def other_bytes() -> None:
    story = Story(SHARED)
    story.checker.handle(Delivered(20, 1, Position(1, 0), (Message(-1, MessageKey("p", 0), "", b"p:0!"),)))


def a_message_nobody_sent() -> None:
    story = Story(SHARED)
    story.checker.handle(Delivered(20, 1, Position(1, 7), (Message(-1, MessageKey("q", 0), "", b"q:0"),)))


def two_messages_in_one_place() -> None:
    story = Story(SHARED)
    story.checker.handle(Delivered(20, 1, Position(1, 0), (story.messages[1],)))


def again_without_a_cause() -> None:
    Story(SHARED).deliver(1, 0, 1, 0)


def to_another_while_the_first_lives() -> None:
    story = Story(SHARED, consumers=2)
    story.deliver(1, 0)
    story.deliver(2, 0)
    story.round_trip(1, 2)


def again_after_a_settled_ack() -> None:
    story = Story(SHARED, consumers=2)
    story.deliver(1, 0)
    story.ack(1, 0)
    story.round_trip(1)
    story.end(1)
    story.round_trip(2)
    story.deliver(2, 0)


def again_after_a_clean_stop() -> None:
    story = Story(SHARED)
    story.deliver(1, 0)
    story.ack(1, 0)
    story.round_trip(1)
    story.stop(Stop.CLEAN)
    story.end(1)
    story.subscribe(2)
    story.deliver(2, 0)


def again_after_a_kill_long_after_the_ack() -> None:
    story = Story(SHARED)
    story.deliver(1, 0)
    story.ack(1, 0)
    story.round_trip(1)
    story.stop(Stop.KILL, kept_until=story.now)
    story.end(1)
    story.subscribe(2)
    story.deliver(2, 0)


def again_after_a_kill_that_an_answered_ack_survives() -> None:
    story = Story(SHARED)
    story.deliver(1, 0)
    story.ack(1, 0)
    story.answer(1, 0)
    story.stop(Stop.KILL)
    story.end(1)
    story.subscribe(2)
    story.deliver(2, 0)


def out_of_order() -> None:
    Story(EXCLUSIVE).deliver(1, 0, 2, 1)


def out_of_order_for_a_key() -> None:
    story = Story(KEY_SHARED, consumers=2, key="k")
    story.deliver(1, 1)
    story.deliver(2, 0)


def a_key_at_two_consumers() -> None:
    story = Story(KEY_SHARED, consumers=2, key="k")
    story.deliver(1, 0)
    story.deliver(2, 1)
    story.round_trip(1, 2)


def two_exclusive_consumers() -> None:
    story = Story(EXCLUSIVE, consumers=2)
    story.round_trip(1)


def a_cursor_ahead() -> None:
    story = Story(EXCLUSIVE)
    story.deliver(1, 0, 1)
    story.ack(1, 0)
    story.tell(1, 1)


def a_cursor_beyond_the_end() -> None:
    Story(EXCLUSIVE).tell(1, 5)


def never_delivered() -> None:
    story = Story(SHARED)
    story.deliver(1, 0, 1, 3, 4)
    story.end(1)
    story.drain(2, 0, 1, 3, 4)


def a_hole_lost() -> None:
    story = Story(SHARED)
    story.deliver(1, 0, 1, 2, 3, 4)
    story.ack(1, 0, 2, 3, 4)
    story.end(1)
    story.drain(2)


def not_there_after_a_seek() -> None:
    story = Story(EXCLUSIVE)
    story.deliver(1, 0, 1, 2, 3, 4)
    story.ack(1, 4, cumulative=True)
    story.round_trip(1)
    story.seek(1, 2)
    story.drain(2, 3, 4)


FORBIDDEN: list[tuple[Callable[[], None], str]] = [
    (receipt_out_of_order, "receipt out of order for p: 3, expected 2"),
    (ids_that_do_not_grow, "ids of p do not grow"),
    (other_bytes, "not those that were sent"),
    (a_message_nobody_sent, "nobody sent"),
    (two_messages_in_one_place, "1:0:-1 holds"),
    (again_without_a_cause, "1:0:-1 comes again without a cause"),
    (to_another_while_the_first_lives, "1:0:-1 comes again without a cause"),
    (again_after_a_settled_ack, "its acknowledgement was settled"),
    (again_after_a_clean_stop, "its acknowledgement was settled"),
    (again_after_a_kill_long_after_the_ack, "its acknowledgement was settled"),
    (again_after_a_kill_that_an_answered_ack_survives, "its acknowledgement was settled"),
    (out_of_order, "1:1:-1 comes after 1:2:-1 on one session"),
    (out_of_order_for_a_key, "1:0:-1 is seen first after 1:1:-1, key k"),
    (a_key_at_two_consumers, "1:1:-1 goes to another consumer while 1:0:-1 of key k is out"),
    (two_exclusive_consumers, "two exclusive consumers"),
    (a_cursor_ahead, "mark-delete 1:1 is ahead of 1:1:-1"),
    (a_cursor_beyond_the_end, "beyond the end"),
    (never_delivered, "1:2:-1 was acknowledged to its producer and is lost, never delivered"),
    (a_hole_lost, "1:1:-1 was acknowledged to its producer and is lost, last delivered"),
    (not_there_after_a_seek, "1:2:-1 was acknowledged to its producer and is lost"),
]


@pytest.mark.parametrize(("story", "message"), FORBIDDEN, ids=[story.__name__ for story, _ in FORBIDDEN])
def test_a_forbidden_story_raises_its_violation(story: Callable[[], None], message: str) -> None:
    with pytest.raises(Violation, match=re.escape(message)):
        story()
