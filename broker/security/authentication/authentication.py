"""Authentication: the providers of one broker or proxy, and the principals that they find (Apache's AuthenticationService).
Pure. A client without known credentials is anonymousUserRole, if there is one, and otherwise has no principal.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ports.metrics.histogram import Histogram

from ..settings import BASIC, TLS, TOKEN, SecuritySettings
from .certificates import CertificateProvider
from .principals import AuthenticationRefused, Principal, Provider, Shown

ANONYMOUS = "none"
METHOD_HEADER = "x-pulsar-auth-method-name"
EXPIRING_BOUNDS_MINUTES = (5.0, 10.0, 60.0, 240.0)


class AuthenticationMeters:
    """Meters of one broker, since its start."""

    def __init__(self) -> None:
        self.succeeded: Counter[str] = Counter()
        """Accepted authentications by method."""
        self.failed: Counter[tuple[str, str]] = Counter()
        """Failed authentications by method and Apache's code of the reason."""
        self.expired_tokens = 0
        self.expiring_minutes = Histogram(EXPIRING_BOUNDS_MINUTES)
        """Remaining times of accepted tokens that expire."""

    def let_in(self, principal: Principal, now: float) -> None:
        self.succeeded[principal.method] += 1
        if principal.expires_at is not None:
            self.expiring_minutes.record((principal.expires_at - now) / 60)

    def refused(self, method: str, refused: AuthenticationRefused) -> None:
        self.failed[method, refused.code] += 1
        self.expired_tokens += refused.is_expired


def _token(settings: SecuritySettings, environ: Mapping[str, str]) -> Provider:
    from .tokens import TokenProvider  # imports a third of a second's worth of cryptography

    return TokenProvider(settings, environ)


def _basic(settings: SecuritySettings, environ: Mapping[str, str]) -> Provider:
    from .passwords import PasswordProvider

    return PasswordProvider(settings, environ)


_MAKERS: Mapping[str, Callable[[SecuritySettings, Mapping[str, str]], Provider]] = {
    TOKEN: _token,
    BASIC: _basic,
    TLS: lambda settings, environ: CertificateProvider(),
}


class Authentication:
    """BadSetting for a key that cannot be read."""

    def __init__(self, settings: SecuritySettings, environ: Mapping[str, str]) -> None:
        providers = [_MAKERS[name](settings, environ) for name in dict.fromkeys(settings.authentication_providers)]
        self._providers = {provider.method: provider for provider in providers}
        self._anonymous = settings.anonymous_user_role
        self.meters = AuthenticationMeters()

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self._providers)

    def of_connection(self, method: str, shown: Shown, now: float) -> Principal:
        """Returns the principal of a connection, by the method that CONNECT names. AuthenticationRefused."""
        provider = self._providers.get(method)
        if provider is None:
            return self._nobody(f"no provider of the method {method[:64]!r}")
        return self._by(provider, shown, now)

    def of_request(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None, now: float) -> Principal:
        """Returns the principal of an HTTP request; names of headers are in small letters. The first provider that accepts the
        credentials decides. AuthenticationRefused.
        """
        named = headers.get(METHOD_HEADER)
        if named is not None and named not in self._providers:
            raise AuthenticationRefused(f"no provider of the method {named[:64]!r}")
        reasons = []
        for provider in self._providers.values() if named is None else (self._providers[named],):
            shown = provider.shown_in(headers, certificate)
            if shown is None:
                continue
            try:
                return self._by(provider, shown, now)
            except AuthenticationRefused as refused:
                reasons.append(str(refused))
        if named is not None or reasons:
            raise AuthenticationRefused("; ".join(reasons) or f"nothing that the method {named!r} knows")
        return self._nobody("no credentials")

    def _by(self, provider: Provider, shown: Shown, now: float) -> Principal:
        try:
            principal = provider.authenticate(shown, now)
        except AuthenticationRefused as refused:
            self.meters.refused(provider.method, refused)
            raise
        self.meters.let_in(principal, now)
        return principal

    def _nobody(self, reason: str) -> Principal:
        if self._anonymous is None:
            raise AuthenticationRefused(reason)
        return Principal(self._anonymous, ANONYMOUS)
