"""SessionMachine: the meaning of a session's events. Pure; owns the state of the session, nothing else.

A client cut off from ZooKeeper is not told that its session has expired: it would learn it only after connecting again. So
silence counts here too, as in Pulsar's ZKSessionWatcher: after 5/6 of the session's time without a word from the server the
session is held to be lost, before another client can take over its nodes. If it turns out to live, it counts as re-established.
"""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from metadata.sessions import SessionEvent

SILENCE_MAX = 5 / 6
"""Share of the session's time; the rest is for the holders of ephemeral nodes to stop."""


class State(Enum):
    """State of the session. CONNECTING: not connected yet, first of all. LOST: expired, the next session is on its way."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    PRESUMED_LOST = "presumed lost"
    LOST = "lost"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Connected:
    """The server answered: this session, or after an expiry the next one, is connected."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection is gone; the session may live on."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The server said that the session is over."""


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time passed: `silence` seconds since the server was heard, of `timeout` seconds that the session has."""

    silence: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Closed:
    """The store ends the session itself."""


Event = Connected | Disconnected | Expired | Ticked | Closed


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the listeners."""

    event: SessionEvent


@dataclass(frozen=True, slots=True)
class Resume:
    """Set the watches again, find out what changed meanwhile, and let waiting requests go."""


@dataclass(frozen=True, slots=True)
class OpenNext:
    """Open the next session."""


Effect = Tell | Resume | OpenNext


class SessionMachine:
    """One store's sessions, one after the other."""

    def __init__(self) -> None:
        self.state = State.CONNECTING
        self._has_connection = False

    @property
    def can_send(self) -> bool:
        """Also while the session is only presumed lost: the connection may still bring an answer."""
        return self._has_connection and self.state is not State.CLOSED

    def handle(self, event: Event) -> list[Effect]:
        if self.state is State.CLOSED:
            return []
        match event:
            case Connected():
                return self._on_connected()
            case Disconnected():
                return self._on_disconnected()
            case Expired():
                return self._on_expired()
            case Ticked():
                return self._on_ticked(event)
            case Closed():
                self.state, self._has_connection = State.CLOSED, False
                return []
        assert_never(event)

    def _on_connected(self) -> list[Effect]:
        told: dict[State, SessionEvent] = {
            State.SUSPENDED: SessionEvent.RECONNECTED,
            State.PRESUMED_LOST: SessionEvent.SESSION_REESTABLISHED,
            State.LOST: SessionEvent.SESSION_REESTABLISHED,
        }
        before, self.state, self._has_connection = self.state, State.CONNECTED, True
        return [Resume(), *([Tell(told[before])] if before in told else [])]

    def _on_disconnected(self) -> list[Effect]:
        self._has_connection = False
        if self.state is not State.CONNECTED:
            return []
        self.state = State.SUSPENDED
        return [Tell(SessionEvent.CONNECTION_LOST)]

    def _on_expired(self) -> list[Effect]:
        """A session that was never connected cannot expire, but a server may refuse one: that too means the next."""
        known = self.state in (State.CONNECTING, State.PRESUMED_LOST, State.LOST)
        self._has_connection = False
        self.state = State.CONNECTING if self.state is State.CONNECTING else State.LOST
        return [OpenNext()] if known else [Tell(SessionEvent.SESSION_LOST), OpenNext()]

    def _on_ticked(self, tick: Ticked) -> list[Effect]:
        is_silent = tick.silence >= tick.timeout * SILENCE_MAX
        if is_silent and self.state in (State.CONNECTED, State.SUSPENDED):
            self.state = State.PRESUMED_LOST
            return [Tell(SessionEvent.SESSION_LOST)]
        if not is_silent and self.state is State.PRESUMED_LOST and self._has_connection:
            self.state = State.CONNECTED
            return [Tell(SessionEvent.SESSION_REESTABLISHED)]
        return []
