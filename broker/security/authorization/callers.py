"""Callers: the principals of a request. A proxy has a role of its own and speaks for an original principal. Pure."""

from collections.abc import Set
from dataclasses import dataclass


class BadCaller(Exception):
    """Caller that speaks for another without being a proxy, or a proxy that names no original principal. The message is for the
    log."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`original`: the principal that a proxy speaks for; empty: the caller speaks for itself."""

    role: str
    original: str = ""

    def roles(self, proxy_roles: Set[str]) -> tuple[str, ...]:
        """Roles that must all be allowed (AuthorizationService)."""
        return (self.role, self.original) if self.role in proxy_roles else (self.role,)

    @property
    def principal(self) -> str:
        return self.original or self.role

    def __str__(self) -> str:
        return f"{self.original} by {self.role}" if self.original else self.role


def checked_caller(role: str, original: str, proxy_roles: Set[str], *, may_be_equal: bool = False) -> Caller:
    """BadCaller (AuthorizationService.isValidOriginalPrincipal). `may_be_equal`: on HTTP one may name oneself."""
    if role in proxy_roles:
        if not original.strip():
            raise BadCaller("originalPrincipal must be provided when connecting with a proxy role")
        if original in proxy_roles:
            raise BadCaller("originalPrincipal cannot be a proxy role")
        return Caller(role, original)
    if original.strip() and not (may_be_equal and original == role):
        raise BadCaller("cannot specify originalPrincipal when connecting without valid proxy role")
    return Caller(role)
