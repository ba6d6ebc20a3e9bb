"""ClusterChecker: the promises of one topic of a cluster, by what clients see and by what is true.

Beside what `checks.model`, `subscription` and `truth` check: a broker that opens the log finds the messages that producers have
receipts for, as long as a subscription is owed them; and in the log a producer's messages stand in the order of sending, except
those that were sent again. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from managed_ledger.contract import ManagedCursor
from simulation.checks.history import (
    AckAnswered,
    Acknowledged,
    AckSent,
    Delivered,
    DrainEnded,
    DrainStarted,
    Event,
    MessageId,
    Nacked,
    ProducerOpened,
    Refused,
    Sent,
    SessionEnded,
    Subscribed,
    Violation,
)
from simulation.checks.model import Publishes
from simulation.cluster.subscription import ClusterSubscription, text_of
from simulation.cluster.truth import LogTruth, Opening, check_cursor

OF_SESSIONS: Mapping[type, Callable[[ClusterSubscription, Any], None]] = {
    SessionEnded: ClusterSubscription.on_ended,
    Delivered: ClusterSubscription.on_delivered,
    AckSent: ClusterSubscription.on_ack_sent,
    AckAnswered: ClusterSubscription.on_ack_answered,
    Nacked: ClusterSubscription.on_nacked,
}


class ClusterChecker:
    """Checker of one topic."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.publishes = Publishes()
        self.truth = LogTruth(topic)
        self.subscriptions: dict[str, ClusterSubscription] = {}
        self._opened_at = 0.0
        self._by_session: dict[int, ClusterSubscription] = {}
        self._handlers: Mapping[type, Callable[[Any], None]] = {
            ProducerOpened: self.publishes.on_opened,
            Sent: self.publishes.on_sent,
            Acknowledged: self.publishes.on_acknowledged,
            Refused: self.publishes.on_refused,
            Subscribed: self._on_subscribed,
            DrainStarted: lambda event: self.subscriptions[event.subscription].on_drain_started(event),
            DrainEnded: lambda event: self.subscriptions[event.subscription].on_drain_ended(),
        }

    def handle(self, event: Event) -> None:
        """Handles an event; one about neither messages nor subscriptions has no effect."""
        kind = type(event)
        if isinstance(event, Delivered):
            for message in event.messages:
                self.publishes.observe(MessageId(*event.position, message.batch_index), message)
        if kind in OF_SESSIONS:
            OF_SESSIONS[kind](self._by_session[event.session], event)  # type: ignore[union-attr]  # those have one
        elif kind in self._handlers:
            self._handlers[kind](event)

    def _on_subscribed(self, event: Subscribed) -> None:
        model = self.subscriptions.get(event.subscription)
        if model is None:
            model = ClusterSubscription(event.subscription, event.type, self.publishes, event.at, lambda: self._opened_at)
            self.subscriptions[event.subscription] = model
        self._by_session[event.session] = model
        model.on_subscribed(event)

    def on_opened(
        self, life: str, began: float, at: float, ledgers: Iterable[tuple[int, int]], cursors: Mapping[str, ManagedCursor]
    ) -> Opening:
        """Checks a log that a broker began to open at `began`. If another has opened it meanwhile, this broker may be too late,
        and will notice when it writes; a subscription that it serves less than it owes until then shows later."""
        is_overtaken = self.truth.last_opened_at > began
        opening = self.truth.on_opened(life, ledgers, at)
        if is_overtaken:
            return opening
        self._opened_at = began
        for where in self.publishes.acknowledged:
            if where.entry_id >= opening.entries.get(where.ledger_id, 0):
                self._check_gone(where, life)
        for name, model in self.subscriptions.items():
            if name in cursors:
                what = f"{self.topic}, {name}, opened by {life}"
                stored = [where for where in model.stored_before(began) if opening.has(where.position)]
                check_cursor(what, cursors[name], stored, model.owed())
            elif model.made < began:
                raise Violation(f"{self.topic}: {life} does not find the subscription {name}")
        return opening

    def _check_gone(self, where: MessageId, life: str) -> None:
        for name, model in self.subscriptions.items():
            if model.is_owed(where):
                raise Violation(f"{self.topic}: {life} opens the log without {text_of(where)}, which {name} is owed")

    def left_behind(self) -> str | None:
        """A message that waits although a consumer is there to take it; told with its subscription."""
        for model in self.subscriptions.values():
            where = model.left_behind()
            if where is not None:
                return f"{self.topic}, {model.name}: {text_of(where)}"
        return None

    def check_order(self) -> None:
        """Checks the order of all messages that were seen in the log."""
        last: dict[str, int] = {}
        seen: set[tuple[str, int]] = set()
        for where, key in sorted(self.publishes.places.items()):
            if key not in seen and key.sequence < last.get(key.producer, -1):
                before = last[key.producer]
                raise Violation(f"{self.topic}: {key.producer}'s {key.sequence} is at {text_of(where)}, after {before}")
            seen.add(key)
            last[key.producer] = max(last.get(key.producer, -1), key.sequence)
