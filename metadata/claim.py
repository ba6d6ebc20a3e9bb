"""Claim: an ephemeral node that is to be there with our value, for as long as we want it. Pure.

Registration (a bookie under /ledgers/available), ownership (a bundle under /namespace) and leadership
(/loadbalance/leader) are claims. The node is ours by its session; a node with our value from an earlier session of ours
is taken away and made again, because it would go when that session's time is out (Pulsar's ResourceLockImpl). From
SESSION_LOST on another client may have it: the claim is not held, whatever the node says, until it is made again.
"""

from enum import Enum
from typing import assert_never

from metadata.sessions import SessionEvent
from wire.record import record


class Hold(Enum):
    """TAKING: asked for. HELD: ours. BUSY: another client's. FREE: not wanted."""

    TAKING = "taking"
    HELD = "held"
    BUSY = "busy"
    FREE = "free"


@record(frozen=True, slots=True)
class Wanted:
    """The node is to be ours from now on."""


@record(frozen=True, slots=True)
class Given:
    """The node is not wanted any more."""


@record(frozen=True, slots=True)
class Made:
    """The node was made, in answer to `Make`, with the version there is."""

    attempt: int


@record(frozen=True, slots=True)
class Taken:
    """A node was there, in answer to `Make`; None: it went meanwhile. `is_ours`: it is the one that we made last."""

    attempt: int
    value: bytes | None
    is_ours: bool = False


@record(frozen=True, slots=True)
class Failed:
    """No answer to `Make`, or one that does not tell."""

    attempt: int


@record(frozen=True, slots=True)
class NodeGone:
    """The store told that the node was deleted."""


@record(frozen=True, slots=True)
class SessionChanged:
    """The store told of its session."""

    event: SessionEvent


Event = Wanted | Given | Made | Taken | Failed | NodeGone | SessionChanged


@record(frozen=True, slots=True)
class Make:
    """Make the node, which must not be there; before it, delete what an earlier session of ours left, if `after_delete`."""

    attempt: int
    after_delete: bool = False


@record(frozen=True, slots=True)
class MakeLater:
    """Make the node after a pause: the store did not answer."""

    attempt: int


@record(frozen=True, slots=True)
class DeleteOurs:
    """Remove the node if it is still ours."""


@record(frozen=True, slots=True)
class TellHold:
    """Tell who owns the claim. `holder` is the value there when BUSY."""

    hold: Hold
    holder: bytes = b""


Effect = Make | MakeLater | DeleteOurs | TellHold


class ClaimMachine:
    """One claim. An answer to an attempt that is no longer the last one is ignored, but for a node that it made.

    A deletion told while HELD may be an old one, told again after a lost connection: the node is made anew or found to be
    ours, and only if it is another's the hold is lost.
    """

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.hold = Hold.FREE
        self.holder = b""
        self._attempt = 0
        self._is_asking = False
        self._went_meanwhile = False
        """A deletion was told since the last `Make`: what that found may be out of date."""

    def check_invariants(self) -> None:
        assert self.hold is not Hold.HELD or self.holder == self.value
        assert self.hold is not Hold.FREE or not (self.holder or self._is_asking)

    def handle(self, event: Event) -> list[Effect]:
        match event:
            case Wanted():
                return self._try() if self.hold is Hold.FREE else []
            case Given():
                return self._give()
            case Made():
                return self._on_made(event)
            case Taken():
                return self._on_taken(event)
            case Failed():
                return [MakeLater(self._next())] if self._is_last(event.attempt) else []
            case NodeGone():
                return self._on_gone()
            case SessionChanged():
                return self._on_session(event.event)
        assert_never(event)

    def _next(self) -> int:
        self._attempt += 1
        self._is_asking, self._went_meanwhile = True, False
        return self._attempt

    def _is_last(self, attempt: int) -> bool:
        return self._is_asking and attempt == self._attempt

    def _try(self) -> list[Effect]:
        return [*self._become(Hold.TAKING), Make(self._next())]

    def _on_gone(self) -> list[Effect]:
        if self._is_asking:
            self._went_meanwhile = True
            return []
        return {Hold.HELD: self._ask_again, Hold.BUSY: self._try}.get(self.hold, list)()

    def _ask_again(self) -> list[Effect]:
        return [Make(self._next())]

    def _become(self, hold: Hold, holder: bytes = b"") -> list[Effect]:
        if (hold, holder) == (self.hold, self.holder):
            return []
        self.hold, self.holder = hold, holder
        return [TellHold(hold, holder)]

    def _give(self) -> list[Effect]:
        if self.hold is Hold.FREE:
            return []
        was_others = self.hold is Hold.BUSY
        self._attempt += 1
        self._is_asking = False
        return [*self._become(Hold.FREE), *([] if was_others else [DeleteOurs()])]

    def _on_made(self, made: Made) -> list[Effect]:
        if self._is_last(made.attempt):
            return self._on_ours()
        return [DeleteOurs()] if self.hold is Hold.FREE else []

    def _on_ours(self) -> list[Effect]:
        """Once more where it may have gone since: an answer and a deletion may be told in either order."""
        again = self._ask_again() if self._went_meanwhile else []
        self._is_asking = bool(again)
        return [*self._become(Hold.HELD, self.value), *again]

    def _on_taken(self, taken: Taken) -> list[Effect]:
        if not self._is_last(taken.attempt):
            return []
        if taken.is_ours:
            return self._on_ours()
        if taken.value is None or (self._went_meanwhile and taken.value != self.value):
            return self._ask_again()
        if taken.value == self.value:
            return [Make(self._next(), after_delete=True)]
        self._is_asking = False
        return self._become(Hold.BUSY, taken.value)

    def _on_session(self, event: SessionEvent) -> list[Effect]:
        match event:
            case SessionEvent.SESSION_LOST if self.hold is Hold.HELD:
                self._attempt += 1
                self._is_asking = False
                return self._become(Hold.TAKING)
            case SessionEvent.SESSION_REESTABLISHED if self.hold is not Hold.FREE:
                return self._try()
        return []
