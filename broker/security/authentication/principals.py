"""Principals: identities, and the credentials that prove them. Pure values. Credentials are never part of a text: neither an
error nor a repr holds a token or a password.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class AuthenticationRefused(Exception):
    """Refusal of credentials. The message is for the log alone: a peer that guesses learns nothing.

    `code`: the ErrorCode of Apache's provider.
    """

    def __init__(self, message: str, code: str = "UNKNOWN", *, is_expired: bool = False) -> None:
        super().__init__(message)
        self.code, self.is_expired = code, is_expired


@dataclass(frozen=True, slots=True)
class Shown:
    """Credentials of a peer: the bytes that its method knows, and the certificate of its TLS connection (`ssl`'s form)."""

    data: bytes = field(default=b"", repr=False)
    certificate: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """`role` is never empty. `expires_at`: seconds since the epoch, after which it has to be proved anew; None: never."""

    role: str
    method: str
    expires_at: float | None = None

    def has_expired(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class Provider(Protocol):
    """One way to prove an identity (Apache's AuthenticationProvider)."""

    method: str
    """Name of the method in CONNECT."""

    def authenticate(self, shown: Shown, now: float) -> Principal:
        """AuthenticationRefused. `now`: seconds since the epoch."""

    def shown_in(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> Shown | None:
        """Returns the credentials of this kind in an HTTP request; names of headers are in small letters. None: nothing."""
