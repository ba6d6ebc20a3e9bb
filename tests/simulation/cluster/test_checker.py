"""The checker of clusters says no where a promise is broken, and nothing where Apache permits what happened."""

import pytest

from broker.topic.contract import SubscriptionType
from simulation.checks.history import (
    AckAnswered,
    Acknowledged,
    AckSent,
    Delivered,
    DrainEnded,
    DrainStarted,
    Message,
    MessageId,
    MessageKey,
    ProducerOpened,
    Sent,
    Subscribed,
    Violation,
)
from simulation.cluster.checker import ClusterChecker
from simulation.cluster.truth import LogTruth
from wire.position import Position


def message(sequence: int) -> Message:
    return Message(-1, MessageKey("p", sequence), "key", b"p:%d:" % sequence)


class Story:
    """One topic, one producer, one subscription, told event by event."""

    def __init__(self) -> None:
        self.checker = ClusterChecker("t")
        self.now = 0.0
        self.checker.handle(Subscribed(self.tick(), 1, 1, "s", SubscriptionType.EXCLUSIVE, from_earliest=True))
        self.checker.handle(ProducerOpened(self.tick(), 2, "p"))

    def tick(self) -> float:
        self.now += 1.0
        return self.now

    def publish(self, sequence: int, position: Position) -> None:
        self.checker.handle(Sent(self.tick(), 2, (message(sequence),)))
        self.checker.handle(Acknowledged(self.tick(), 2, sequence, position))

    def deliver(self, sequence: int, position: Position) -> None:
        self.checker.handle(Delivered(self.tick(), 1, position, (message(sequence),)))

    def acknowledge(self, position: Position) -> None:
        ids = (MessageId(*position, -1),)
        sent = self.tick()
        self.checker.handle(AckSent(sent, 1, ids))
        self.checker.handle(AckAnswered(self.tick(), 1, ids, False, sent))

    def take_over(self, *ledgers: tuple[int, int]) -> None:
        began = self.tick()
        self.checker.on_opened("b#1", began, self.tick(), ledgers, {})


def test_a_broker_that_opens_a_log_without_what_has_a_receipt_is_found() -> None:
    story = Story()
    story.checker.subscriptions["s"].made = 100.0  # cursors are not looked at here
    story.publish(0, Position(0, 0))
    story.take_over((0, 1))
    with pytest.raises(Violation, match="opens the log without 0:0"):
        story.take_over((0, 0))


def test_entries_that_every_subscription_has_acknowledged_may_be_gone() -> None:
    story = Story()
    story.checker.subscriptions["s"].made = 100.0
    story.publish(0, Position(0, 0))
    story.deliver(0, Position(0, 0))
    story.acknowledge(Position(0, 0))
    story.take_over()


def test_a_subscription_that_is_not_found_again_is_told() -> None:
    story = Story()
    with pytest.raises(Violation, match="does not find the subscription s"):
        story.take_over()


def test_a_message_that_is_never_delivered_is_lost() -> None:
    story = Story()
    story.publish(0, Position(0, 0))
    story.checker.handle(DrainStarted(story.tick(), "s"))
    with pytest.raises(Violation, match="is lost"):
        story.checker.handle(DrainEnded(story.tick(), "s"))


def test_an_entry_stored_as_acknowledged_comes_again_only_from_a_broker_that_opened_before() -> None:
    story = Story()
    story.checker.subscriptions["s"].made = 100.0
    story.publish(0, Position(0, 0))
    story.take_over((0, 1))
    story.deliver(0, Position(0, 0))
    story.acknowledge(Position(0, 0))
    story.checker.handle(DrainStarted(story.tick(), "s"))
    story.deliver(0, Position(0, 0))
    story.checker._opened_at = story.tick()
    with pytest.raises(Violation, match="comes again"):
        story.deliver(0, Position(0, 0))


def test_messages_that_were_sent_again_stand_behind_what_came_after_them() -> None:
    story = Story()
    for sequence, entry_id in ((0, 0), (1, 1), (0, 2), (1, 3), (2, 4)):
        story.checker.publishes.places[MessageId(0, entry_id, -1)] = MessageKey("p", sequence)
    story.checker.check_order()
    story.checker.publishes.places[MessageId(0, 5, -1)] = MessageKey("p", 4)
    story.checker.publishes.places[MessageId(0, 6, -1)] = MessageKey("p", 3)
    with pytest.raises(Violation, match="p's 3 is at 0:6:-1, after 4"):
        story.checker.check_order()


def test_a_former_owner_that_confirms_entries_unknown_to_the_next_is_a_violation() -> None:
    truth = LogTruth("t")
    first = truth.on_opened("a#1", [], 1.0)
    second = truth.on_opened("b#1", [(0, 2)], 2.0)
    truth.on_confirmed(first, Position(0, 1))  # the next owner has found it
    truth.on_confirmed(second, Position(1, 0))
    with pytest.raises(Violation, match="a#1 confirms 0:2"):
        truth.on_confirmed(first, Position(0, 2))


def test_an_owner_that_has_not_what_the_other_confirmed_must_not_confirm_anything() -> None:
    truth = LogTruth("t")
    first, second = truth.on_opened("a#1", [], 1.0), truth.on_opened("b#1", [], 2.0)
    truth.on_confirmed(first, Position(0, 0))
    with pytest.raises(Violation, match="b#1 confirms 1:0"):
        truth.on_confirmed(second, Position(1, 0))
