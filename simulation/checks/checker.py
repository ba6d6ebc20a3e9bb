"""Checker: takes the history as it happens and raises Violation at the first event that breaks a promise. Pure."""

from collections.abc import Callable
from typing import Any

from simulation.checks.history import (
    AckAnswered,
    Acknowledged,
    AckSent,
    ActiveNotified,
    Connected,
    ConsumerEvent,
    Delivered,
    DrainEnded,
    DrainStarted,
    Event,
    LastMessageReported,
    MessageId,
    Nacked,
    ProducerOpened,
    Refused,
    RoundTrip,
    SeekAsked,
    SeekDone,
    SeekRefused,
    Sent,
    ServerStopped,
    SessionEnded,
    Subscribed,
)
from simulation.checks.model import Publishes
from simulation.checks.subscription_model import SubscriptionModel

OF_CONSUMERS: dict[type, Callable[[SubscriptionModel, Any], None]] = {
    SessionEnded: SubscriptionModel.on_ended,
    AckSent: SubscriptionModel.on_ack_sent,
    AckAnswered: SubscriptionModel.on_ack_answered,
    Nacked: SubscriptionModel.on_nacked,
    SeekAsked: SubscriptionModel.on_seek_asked,
    SeekDone: SubscriptionModel.on_seek_done,
    SeekRefused: SubscriptionModel.on_seek_refused,
    LastMessageReported: SubscriptionModel.on_last_message,
    ActiveNotified: SubscriptionModel.on_active_notified,
    Delivered: SubscriptionModel.on_delivered,
}


class Checker:
    """Checker of one topic. A reader (not durable) is a subscription of its own for each session."""

    def __init__(self, publishes: Publishes | None = None) -> None:
        self.publishes = publishes or Publishes()
        self.subscriptions: dict[str, SubscriptionModel] = {}
        self.events = 0
        self._by_session: dict[int, SubscriptionModel] = {}
        self._trips: dict[int, float] = {}
        self._handlers: dict[type, Callable[[Any], None]] = {
            ProducerOpened: self.publishes.on_opened,
            Sent: self.publishes.on_sent,
            Acknowledged: self.publishes.on_acknowledged,
            Refused: self.publishes.on_refused,
            Connected: self._on_connected,
            RoundTrip: self._on_round_trip,
            ServerStopped: self._on_stopped,
            Subscribed: self._on_subscribed,
            DrainStarted: lambda event: self.subscriptions[event.subscription].on_drain_started(event),
            DrainEnded: lambda event: self.subscriptions[event.subscription].on_drain_ended(),
        }

    def handle(self, event: Event) -> None:
        self.events += 1
        if isinstance(event, Delivered):
            self._observe(event)
        if isinstance(event, ConsumerEvent):
            OF_CONSUMERS[type(event)](self._by_session[event.session], event)
        else:
            self._handlers[type(event)](event)

    def left_behind(self) -> str | None:
        """A message that waits although a consumer is there to take it; told with its subscription."""
        for model in self.subscriptions.values():
            where = model.left_behind()
            if where is not None:
                return f"{model.name}: {':'.join(map(str, where))}"
        return None

    def _on_connected(self, event: Connected) -> None:
        self._trips[event.connection] = event.at

    def _on_round_trip(self, event: RoundTrip) -> None:
        self._trips[event.connection] = max(self._trips[event.connection], event.started)
        for model in self.subscriptions.values():
            model.on_round_trip(event)

    def _on_stopped(self, event: ServerStopped) -> None:
        for model in self.subscriptions.values():
            model.on_stopped(event)

    def _on_subscribed(self, event: Subscribed) -> None:
        name = event.subscription if event.durable else f"{event.subscription}/{event.session}"
        model = self.subscriptions.get(name)
        if model is None:
            model = self.subscriptions[name] = SubscriptionModel(name, event, self.publishes, self._trips)
        self._by_session[event.session] = model
        model.on_subscribed(event)

    def _observe(self, event: Delivered) -> None:
        for message in event.messages:
            self.publishes.observe(MessageId(*event.position, message.batch_index), message)
