"""The checker, on histories written by hand: silent on what the rules allow, and loud on each thing they forbid."""

import re
from collections.abc import Callable

import pytest

from broker.topic.contract import SubscriptionType
from simulation.checker import Checker
from simulation.history import (
    Acknowledged,
    AckSent,
    ActiveTold,
    Connected,
    Delivered,
    DrainEnded,
    DrainStarted,
    LastMessageTold,
    Message,
    MessageId,
    MessageKey,
    Nacked,
    ProducerOpened,
    RoundTrip,
    SeekAsked,
    SeekDone,
    Sent,
    ServerStopped,
    SessionEnded,
    Stop,
    Subscribed,
    Violation,
)
from wire.position import Position

PRODUCER = 99


class Story:
    """Writes a history line by line: time passes by itself; message n is entry n of ledger 1; consumer n is on connection n."""

    def __init__(self, kind: SubscriptionType, consumers: int = 1, messages: int = 5, key: str = "") -> None:
        self.checker = Checker()
        self.kind = kind
        self.now = 0.0
        self.checker.handle(ProducerOpened(self.tick(), PRODUCER, "p"))
        self.messages = [Message(-1, MessageKey("p", number), key, b"p:%d" % number) for number in range(messages)]
        for number in range(messages):
            self.publish(number)
        for consumer in range(1, consumers + 1):
            self.subscribe(consumer)

    def tick(self) -> float:
        self.now += 1.0
        return self.now

    def publish(self, number: int, at: int | None = None) -> None:
        self.checker.handle(Sent(self.tick(), PRODUCER, (self.messages[number],)))
        self.checker.handle(Acknowledged(self.tick(), PRODUCER, number, Position(1, number if at is None else at)))

    def subscribe(self, consumer: int) -> None:
        self.checker.handle(Connected(self.tick(), consumer))
        self.checker.handle(Subscribed(self.tick(), consumer, consumer, "s", self.kind, from_earliest=True))

    def deliver(self, consumer: int, *numbers: int) -> None:
        for number in numbers:
            self.checker.handle(Delivered(self.tick(), consumer, Position(1, number), (self.messages[number],)))

    def ack(self, consumer: int, *numbers: int, cumulative: bool = False) -> None:
        ids = tuple(MessageId(1, number, -1) for number in numbers)
        self.checker.handle(AckSent(self.tick(), consumer, ids, cumulative))

    def nack(self, consumer: int, *numbers: int) -> None:
        self.checker.handle(Nacked(self.tick(), consumer, tuple(MessageId(1, number, -1) for number in numbers)))

    def round_trip(self, *consumers: int) -> None:
        for consumer in consumers:
            self.checker.handle(RoundTrip(self.tick(), consumer, self.now - 0.5))

    def end(self, consumer: int) -> None:
        self.checker.handle(SessionEnded(self.tick(), consumer))

    def stop(self, how: Stop, kept_until: float = 0.0) -> None:
        self.checker.handle(ServerStopped(self.tick(), how, kept_until))

    def seek(self, consumer: int, number: int) -> None:
        self.checker.handle(SeekAsked(self.tick(), consumer, Position(1, number)))
        self.end(consumer)
        self.checker.handle(SeekDone(self.tick(), consumer))

    def tell(self, consumer: int, mark_delete: int) -> None:
        self.checker.handle(LastMessageTold(self.tick(), consumer, Position(1, 4), Position(1, mark_delete)))

    def drain(self, consumer: int, *numbers: int) -> None:
        self.checker.handle(DrainStarted(self.tick(), "s"))
        self.subscribe(consumer)
        self.deliver(consumer, *numbers)
        self.checker.handle(DrainEnded(self.tick(), "s"))


EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED
FAILOVER, KEY_SHARED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED


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


def an_ack_on_its_way_during_a_seek() -> None:
    story = Story(SHARED, consumers=2)
    story.deliver(2, 0, 1, 2, 3, 4)
    story.ack(2, 2)
    story.seek(1, 0)
    story.end(2)
    story.drain(3, 0, 1, 3, 4)


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
def test_what_is_forbidden_is_found(story: Callable[[], None], message: str) -> None:
    with pytest.raises(Violation, match=re.escape(message)):
        story()


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
    a_rewind_after_a_nack,
    a_failover,
    a_key_that_moves_when_it_is_done,
    everything_drained,
    a_cursor_as_far_as_the_acks,
]


@pytest.mark.parametrize("story", ALLOWED, ids=[story.__name__ for story in ALLOWED])
def test_what_is_allowed_is_not_complained_of(story: Callable[[], None]) -> None:
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
    story.checker.handle(ActiveTold(story.tick(), 1, True))
    story.deliver(1, 0, 1, 2, 3, 4)
    assert story.checker.left_behind() is None
    story.checker.handle(ActiveTold(story.tick(), 1, False))
    story.checker.handle(ActiveTold(story.tick(), 2, True))
    assert story.checker.left_behind() == "s: 1:0:-1"


def test_on_key_shared_a_message_may_wait_for_one_of_its_key_that_is_out() -> None:
    story = Story(KEY_SHARED, consumers=2, key="k")
    story.deliver(1, 0, 1)
    assert story.checker.left_behind() is None
    story.ack(1, 0, 1)
    story.round_trip(1)
    assert story.checker.left_behind() == "s: 1:2:-1"
