"""ClusterSubscription: what one subscription is owed while its topic moves from broker to broker. Pure.

Weaker than `subscription_model`, which knows a single server: for a while two brokers may deliver, each from what it knows, and
messages whose acknowledgement is not yet stored come again from the next owner (Apache permits both). Checked here:
- In Exclusive and Failover, messages first come in the order of the log; in Key_Shared, in that order for each key.
- A message whose acknowledgement was answered does not come again from a broker that opened the log later, when all is healed.
  (A broker that opened it before may not know: another one that still believed to own it stored that; it notices on storing.)
- In the end every message has come whose receipt a producer has, and that no consumer acknowledged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broker.topic.contract import SubscriptionType
from simulation.checks.history import (
    AckAnswered,
    AckSent,
    Delivered,
    DrainStarted,
    Message,
    MessageId,
    Nacked,
    SessionEnded,
    Subscribed,
    Violation,
)
from simulation.checks.model import Publishes
from wire.position import Position

BEFORE_ALL = MessageId(-2, -2, -2)


@dataclass(slots=True)
class State:
    """State of one message in the subscription. `holder` is the session that got it last."""

    holder: int
    delivered_at: float
    is_nacked: bool = False
    ack_sent: bool = False
    stored: float | None = None
    """Time of the answer that the acknowledgement is stored."""


class ClusterSubscription:
    """One subscription."""

    def __init__(
        self, name: str, kind: SubscriptionType, publishes: Publishes, made: float, opened_at: Callable[[], float]
    ) -> None:
        """`opened_at`: when the broker that has the log now began to open it."""
        self.name, self.type, self.made, self._opened_at = name, kind, made, opened_at
        self.sessions: dict[int, None] = {}
        self.states: dict[MessageId, State] = {}
        self._publishes = publishes
        self._last_first: dict[str, MessageId] = {}
        self._furthest = BEFORE_ALL
        """Last message of the cumulative acknowledgements."""
        self._drain_since: float | None = None

    # Events

    def on_subscribed(self, event: Subscribed) -> None:
        self.sessions[event.session] = None

    def on_ended(self, event: SessionEnded) -> None:
        self.sessions.pop(event.session, None)

    def on_delivered(self, event: Delivered) -> None:
        for message in event.messages:
            where = MessageId(*event.position, message.batch_index)
            state = self.states.get(where)
            if state is None:
                self._check_first(where, message)
                self.states[where] = State(event.session, event.at)
                continue
            if self._drain_since is not None and state.stored is not None and state.stored < self._opened_at():
                raise Violation(
                    f"{self.name}: {text_of(where)} comes again, that it is acknowledged was answered {state.stored:.6f}"
                )
            state.holder, state.delivered_at, state.is_nacked = event.session, event.at, False

    def _check_first(self, where: MessageId, message: Message) -> None:
        if self.type is SubscriptionType.SHARED:
            return
        key = message.key if self.type is SubscriptionType.KEY_SHARED else ""
        last = self._last_first.get(key, BEFORE_ALL)
        if where < last:
            raise Violation(f"{self.name}: {text_of(where)} is seen first after {text_of(last)}{key and f', key {key}'}")
        self._last_first[key] = where

    def on_ack_sent(self, event: AckSent) -> None:
        if event.cumulative:
            self._furthest = max(self._furthest, event.ids[0])
        for state in self._named(event.ids, cumulative=event.cumulative):
            state.ack_sent = True

    def on_ack_answered(self, event: AckAnswered) -> None:
        for state in self._named(event.ids, cumulative=event.cumulative):
            state.stored = state.stored if state.stored is not None else event.at

    def on_nacked(self, event: Nacked) -> None:
        for where in event.ids:
            self.states[where].is_nacked = True

    def _named(self, ids: tuple[MessageId, ...], *, cumulative: bool) -> Iterator[State]:
        if cumulative:
            yield from (state for where, state in self.states.items() if where <= ids[0])
        else:
            yield from (self.states[where] for where in ids if where in self.states)

    # Promises

    def stored_before(self, at: float) -> list[MessageId]:
        """Messages whose acknowledgement was confirmed to a client by then."""
        return [where for where, state in self.states.items() if state.stored is not None and state.stored < at]

    def is_owed(self, where: MessageId) -> bool:
        """Whether no consumer has acknowledged a message whose receipt a producer has."""
        if where <= self._furthest:
            return False
        state = self.states.get(where)
        return state is None or not state.ack_sent

    def owed(self) -> list[MessageId]:
        return [where for where in self._publishes.acknowledged if self.is_owed(where)]

    def left_behind(self) -> MessageId | None:
        """A message that no connected consumer has, although one is there: it must come when nothing goes wrong any more."""
        if not self.sessions or self.type is SubscriptionType.KEY_SHARED:
            return None  # there a message waits for those before it of its key
        return next((where for where in self.owed() if not self._is_held(where)), None)

    def _is_held(self, where: MessageId) -> bool:
        state = self.states.get(where)
        return state is not None and state.holder in self.sessions and not state.is_nacked

    def on_drain_started(self, event: DrainStarted) -> None:
        self._drain_since = event.at

    def on_drain_ended(self) -> None:
        since = self._drain_since or 0.0
        for where in self.owed():
            state = self.states.get(where)
            if state is None or state.delivered_at < since:
                seen = "never delivered" if state is None else f"last delivered {state.delivered_at:.6f}"
                raise Violation(f"{self.name}: {text_of(where)} was acknowledged to its producer and is lost, {seen}")


def text_of(where: MessageId | Position) -> str:
    return ":".join(map(str, where))
