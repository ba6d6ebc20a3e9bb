"""Guard: requests of a peer before it is known, and their answers (AuthHandler.ServerSideHandler). Pure.

The peer may begin TLS and authenticate; every other request is answered with EUA in its own form, and where a version has
no such form the connection ends.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from wire.bookie.codes import BookieCode
from wire.bookie.requests import Add, Authenticate, Read, Request
from wire.bookie.version3 import Version3Answers

EUA = BookieCode.EUA


class Refused(Exception):
    """The proof of the peer's identity does not hold; the message says why, for the log alone."""


class Exchange(Protocol):
    """Exchange on one connection. `plugin` is the name that both sides' messages carry."""

    plugin: str

    def secured(self, certificate: Mapping[str, Any]) -> bool:
        """TLS is up; the certificate as `ssl.SSLSocket.getpeercert` gives it, empty when none was asked for. Whether that
        proves enough; Refused."""

    def heard(self, payload: bytes) -> tuple[bytes, bool]:
        """The answer to a message, and whether the peer has proved enough now. Refused."""


class Verdict(NamedTuple):
    """Answer to the peer, and the reason to end the connection after it (empty: the connection goes on)."""

    answer: bytes = b""
    end: str = ""


class Guard:
    """Guard of one connection."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.is_satisfied = False

    def secured(self, certificate: Mapping[str, Any]) -> str:
        """TLS is up. Why that does not let the peer in; empty when it does, or when it has messages to say."""
        try:
            self.is_satisfied = self._exchange.secured(certificate)
        except Refused as refused:
            return str(refused)
        return ""

    def judge(self, request: Request) -> Verdict:
        """Verdict on a request other than START_TLS, while the peer is not known."""
        operation, answers = request.operation, request.answers
        if isinstance(operation, Authenticate):
            return self._authenticate(operation, request)
        if isinstance(answers, Version3Answers):
            return Verdict(answers.failed(EUA))
        match operation:
            case Add():
                return Verdict(answers.added(EUA, operation.entries.ledger_id, operation.entries.first_entry_id))
            case Read():
                return Verdict(answers.read(EUA, operation.ledger_id, operation.entry_id))
        return Verdict(end=f"{type(operation).__name__} before the peer was authenticated")

    def _authenticate(self, message: Authenticate, request: Request) -> Verdict:
        answers = request.answers
        version3 = answers if isinstance(answers, Version3Answers) else None
        if message.plugin != self._exchange.plugin:
            reason = f"authentication by {message.plugin!r}, not by {self._exchange.plugin!r}"
            return Verdict(version3.failed(EUA)) if version3 else Verdict(end=reason)
        try:
            payload, self.is_satisfied = self._exchange.heard(message.payload)
        except Refused as refused:
            return Verdict(version3.failed(EUA) if version3 else b"", f"authentication failed: {refused}")
        return Verdict(answers.authenticated(message.plugin, payload))
