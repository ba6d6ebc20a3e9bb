"""SubscriptionModel: the rules of one durable subscription, judged by what its consumers saw. Pure.

A second delivery of a message needs a cause: a nack, the end of the session that had it, a seek, a crash before the
acknowledgement had to be persisted; on Failover also a change among the consumers. An acknowledgement is settled when a later
request on its connection was answered. Packets of different connections overtake each other, and a client learns of an end
later than the server: what may be explained so is a suspicion, dropped when one of the sessions that could explain it ends
without a sign of life after it, and a violation when all of them lived on.
"""

from dataclasses import dataclass, field

from broker.topic.contract import SubscriptionType
from simulation.checks.history import (
    AckAnswered,
    AckSent,
    ActiveNotified,
    Delivered,
    DrainStarted,
    LastMessageReported,
    Message,
    MessageId,
    Nacked,
    RoundTrip,
    SeekAsked,
    SeekDone,
    SeekRefused,
    ServerStopped,
    SessionEnded,
    Stop,
    Subscribed,
    Violation,
)
from simulation.checks.model import Publishes
from wire.position import Position

ORDERED = (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)
BEFORE_ALL = MessageId(-2, -2, -2)


@dataclass(slots=True)
class State:
    """State of one message in the subscription."""

    key: str
    holder: int
    delivered_at: float
    may_come_again: bool = False
    nacked: bool = False
    ack_sent: float | None = None
    settled: float | None = None
    is_stored: bool = False
    """The acknowledgement was answered: no crash may undo it."""


@dataclass(slots=True)
class Session:
    """One consumer."""

    id: int
    connection: int
    since: float
    last: MessageId = BEFORE_ALL
    is_active: bool = False
    rewinds: list[float] = field(default_factory=list)
    """Causes for the stream to go back, each with the time since which acknowledgements may have come too late for it."""
    held: dict[MessageId, None] = field(default_factory=dict)
    unsettled: dict[MessageId, float] = field(default_factory=dict)


@dataclass(slots=True)
class Suspicion:
    """Broken, unless one of these sessions was over for the server at that time."""

    at: float
    sessions: set[int]
    what: str


class SubscriptionModel:
    """One subscription."""

    def __init__(self, name: str, first: Subscribed, publishes: Publishes, trips: dict[int, float]) -> None:
        self.name, self.type = name, first.type
        self.start = 0.0 if first.from_earliest else first.at
        self.sessions: dict[int, Session] = {}
        self.states: dict[MessageId, State] = {}
        self._publishes, self._trips = publishes, trips
        self._last_first: dict[str, MessageId] = {}
        self._suspicions: list[Suspicion] = []
        self._seek: SeekAsked | None = None
        self._settled_before_seek: list[MessageId] = []
        self._skipped_before = Position(-1, -1)
        self._has_sought = False
        self._sought_at = -1.0
        self._stopped_at = -1.0
        self._drain_since: float | None = None

    # Sessions

    def on_subscribed(self, event: Subscribed) -> None:
        if self.sessions and self.type is SubscriptionType.EXCLUSIVE:
            self._suspect(event.at, set(self.sessions), "two exclusive consumers")
        self.sessions[event.session] = Session(event.session, event.connection, event.at)
        self._members_changed()

    def on_ended(self, event: SessionEnded) -> None:
        session_id = event.session
        session = self.sessions.pop(session_id)
        for where in session.held:
            state = self.states[where]
            if state.holder == session_id and state.settled is None:
                state.may_come_again = True
        self._suspicions = [doubt for doubt in self._suspicions if session_id not in doubt.sessions]
        self._members_changed()

    def _members_changed(self) -> None:
        if self.type is SubscriptionType.FAILOVER:
            for session in self.sessions.values():
                session.rewinds.append(0.0)
                self._release_held(session, 0.0)

    def _release_held(self, session: Session, since: float) -> None:
        """Lets the messages of this session come again, except those that it acknowledged before `since`."""
        for where in session.held:
            if session.unsettled.get(where, since) >= since and self.states[where].settled is None:
                self.states[where].may_come_again = True

    # Signs of life

    def on_round_trip(self, event: RoundTrip) -> None:
        connection, started = event.connection, event.started
        for session in self.sessions.values():
            if session.connection == connection and session.since > self._stopped_at and self._seek is None:
                self._settle(session, started, event.at)
        alive = {session.id for session in self.sessions.values() if session.connection == connection}
        for doubt in self._suspicions:
            if started > doubt.at:
                doubt.sessions -= alive
                if not doubt.sessions:
                    raise Violation(f"{self.name} at {doubt.at:.6f}: {doubt.what}")

    def _settle(self, session: Session, started: float, at: float) -> None:
        for where, sent in list(session.unsettled.items()):
            if sent > started:
                return
            del session.unsettled[where]
            session.held.pop(where, None)
            self.states[where].settled = at
            self.states[where].may_come_again = False

    def _suspect(self, at: float, sessions: set[int], what: str) -> None:
        if not sessions:
            raise Violation(f"{self.name}: {what}")
        self._suspicions.append(Suspicion(at, sessions, what))

    # Deliveries

    def on_delivered(self, event: Delivered) -> None:
        session = self.sessions[event.session]
        for message in event.messages:
            where = MessageId(*event.position, message.batch_index)
            self._check_order(session, where, event.at)
            state = self.states.get(where)
            if state is None:
                self._check_first(where, message)
                self.states[where] = State(message.key, session.id, event.at)
            else:
                self._check_again(session, where, state, event.at)
                state.holder, state.delivered_at, state.may_come_again = session.id, event.at, False
                state.nacked = False
            if self.type is SubscriptionType.KEY_SHARED:
                self._check_key(session, where, message, event.at)
            session.held[where] = None

    def _check_order(self, session: Session, where: MessageId, at: float) -> None:
        if self.type in ORDERED and where <= session.last:
            since = session.rewinds.pop(0) if session.rewinds else None
            if since is None:
                others = set(self.sessions) - {session.id} if self.type is SubscriptionType.FAILOVER else set()
                self._suspect(at, others, f"{_text(where)} comes after {_text(session.last)} on one session")
            self._release_held(session, since or 0.0)
        session.last = where

    def _check_first(self, where: MessageId, message: Message) -> None:
        if self._has_sought or self.type is SubscriptionType.SHARED:
            return
        key = message.key if self.type is SubscriptionType.KEY_SHARED else ""
        last = self._last_first.get(key, BEFORE_ALL)
        if where < last:
            raise Violation(f"{self.name}: {_text(where)} is seen first after {_text(last)}{key and f', key {key}'}")
        self._last_first[key] = where

    def _check_again(self, session: Session, where: MessageId, state: State, at: float) -> None:
        if state.settled is not None:
            if self._trips.get(session.connection, -1.0) > state.settled:
                raise Violation(f"{self.name}: {_text(where)} comes again, its acknowledgement was settled {state.settled:.6f}")
            return
        if state.may_come_again:
            return
        if self.type is SubscriptionType.FAILOVER:
            if state.holder == session.id:
                self._suspect(at, set(self.sessions) - {session.id}, f"{_text(where)} comes again without a cause")
            return
        is_elsewhere = state.holder in self.sessions and state.holder != session.id
        others = {state.holder, session.id} if is_elsewhere else set()
        self._suspect(at, others, f"{_text(where)} comes again without a cause")

    def _check_key(self, session: Session, where: MessageId, message: Message, at: float) -> None:
        for other in self.sessions.values():
            if other is session:
                continue
            for earlier in other.held:
                state = self.states[earlier]
                if (
                    state.key == message.key
                    and earlier < where
                    and state.holder == other.id
                    and state.ack_sent is None
                    and not state.may_come_again
                ):
                    what = f"{_text(where)} goes to another consumer while {_text(earlier)} of key {message.key} is out"
                    self._suspect(at, {other.id, session.id}, what)

    # Actions of consumers

    def on_ack_sent(self, event: AckSent) -> None:
        session = self.sessions[event.session]
        ids = event.ids
        if event.cumulative:
            ids = tuple(where for where in self.states if where <= event.ids[0])
        for where in ids:
            state = self.states.get(where)
            if state is None:
                continue  # a part of a batch that another consumer had acknowledged
            state.ack_sent = event.at
            if state.settled is None:
                session.unsettled[where] = event.at

    def on_ack_answered(self, event: AckAnswered) -> None:
        """A seek since it was sent may have come after it."""
        if self._seek is not None or event.sent <= self._sought_at:
            return
        ids = event.ids
        if event.cumulative:
            ids = tuple(where for where in self.states if where <= ids[0])
        for where in ids:
            state = self.states.get(where)
            if state is not None and state.ack_sent is not None and state.settled is not None:
                state.is_stored = True

    def on_nacked(self, event: Nacked) -> None:
        session = self.sessions[event.session]
        if not event.ids and self.type in ORDERED:
            session.rewinds.append(event.at)
        if not event.ids:
            self._release_held(session, event.at)
        for where in event.ids:
            if self.states[where].settled is None:
                self.states[where].may_come_again = self.states[where].nacked = True

    def on_active_notified(self, event: ActiveNotified) -> None:
        self.sessions[event.session].is_active = event.is_active

    def on_seek_asked(self, event: SeekAsked) -> None:
        self._seek, self._has_sought, self._sought_at = event, True, event.at
        self._skipped_before = max(self._skipped_before, event.position)
        for session in self.sessions.values():
            session.rewinds.append(0.0)
            session.unsettled.clear()
        self._settled_before_seek = [where for where, state in self.states.items() if state.settled is not None]
        for state in self.states.values():
            state.settled, state.may_come_again, state.is_stored = None, True, False

    def on_seek_done(self, event: SeekDone) -> None:
        """Handles a seek that was done. Acknowledgements on their way at that time may have come before it."""
        self._sought_at = event.at
        for session in self.sessions.values():
            session.unsettled.clear()
        seek, self._seek = self._seek, None
        if seek is None or seek.session != event.session:
            return
        self._skipped_before = seek.position
        for where in self._settled_before_seek:  # others may have been on their way, and come after it
            state = self.states[where]
            if where.position >= seek.position and state.ack_sent is not None and state.ack_sent < seek.at:
                state.ack_sent = None

    def on_seek_refused(self, event: SeekRefused) -> None:
        """Handles a seek that was refused: it may have been done or not."""
        self._sought_at = event.at
        if self._seek is not None and self._seek.session == event.session:
            self._seek = None

    def on_last_message(self, event: LastMessageReported) -> None:
        if event.mark_delete is None:
            return
        is_somewhere = event.last.entry_id >= 0 and event.mark_delete.entry_id >= 0  # else it is a place before a ledger
        if is_somewhere and event.mark_delete > event.last:
            raise Violation(f"{self.name}: mark-delete {event.mark_delete} is beyond the end, {event.last}")
        for where in self._publishes.acknowledged:
            if where.position <= event.mark_delete and self._is_owed(where):
                raise Violation(f"{self.name}: mark-delete {event.mark_delete} is ahead of {_text(where)}")

    # The server

    def on_stopped(self, event: ServerStopped) -> None:
        self._stopped_at = event.at
        for state in self.states.values():
            is_old = state.settled is not None and state.settled <= event.acks_kept_until
            is_kept = event.how is Stop.CLEAN or state.is_stored or is_old
            if state.settled is None or not is_kept:
                state.settled, state.may_come_again = None, True
        for session in self.sessions.values():
            session.rewinds.append(0.0)

    # The end

    def on_drain_started(self, event: DrainStarted) -> None:
        self._drain_since = event.at

    def on_drain_ended(self) -> None:
        since = self._drain_since or 0.0
        for where in self._publishes.acknowledged:
            state = self.states.get(where)
            if self._is_owed(where) and (state is None or state.delivered_at < since):
                seen = "never delivered" if state is None else f"last delivered {state.delivered_at:.6f}"
                raise Violation(f"{self.name}: {_text(where)} was acknowledged to its producer and is lost, {seen}")

    def left_behind(self) -> MessageId | None:
        """A message that a connected consumer should have by now, when nothing goes wrong any more."""
        if not self.sessions or self._seek is not None:
            return None
        busy_keys = self._busy_keys() if self.type is SubscriptionType.KEY_SHARED else frozenset()
        for where, key in self._publishes.acknowledged.items():
            if self._is_owed(where) and self._publishes.partition_key(key) not in busy_keys and not self._is_held(where):
                return where
        return None

    def _is_held(self, where: MessageId) -> bool:
        state = self.states.get(where)
        if state is None or state.holder not in self.sessions or state.nacked:
            return False
        return self.type is not SubscriptionType.FAILOVER or self.sessions[state.holder].is_active

    def _busy_keys(self) -> frozenset[str]:
        """Keys of which a consumer has a message; the rest of such a key may have to wait."""
        held = (self.states[where] for session in self.sessions.values() for where in session.held)
        return frozenset(state.key for state in held if state.settled is None)

    def _is_owed(self, where: MessageId) -> bool:
        """Whether the subscription must not have passed over it."""
        state = self.states.get(where)
        if state is not None and state.ack_sent is not None:
            return False
        sent = self._publishes.first_sent[self._publishes.acknowledged[where]]
        return where.position >= self._skipped_before and sent >= self.start


def _text(where: MessageId) -> str:
    return ":".join(map(str, where))
