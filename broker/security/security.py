"""Security: authentication and authorization shared by the connections and the web server of one broker."""

from collections.abc import Callable, Mapping
from typing import Any

from metadata.store import MetadataStore

from .authentication.authentication import Authentication
from .authorization.authorization import Authorization
from .authorization.callers import Caller, checked_caller
from .settings import SecuritySettings

ORIGINAL_PRINCIPAL_HEADER = "x-original-principal"


class Security:
    """Security of a server with authenticationEnabled; others have none.

    `authorization` None: every authenticated client may do everything.
    """

    def __init__(
        self,
        settings: SecuritySettings,
        store: MetadataStore | None,
        environ: Mapping[str, str],
        now: Callable[[], float],
    ) -> None:
        """BadSetting. `now`: seconds since the epoch, by which tokens expire."""
        self.settings, self.now = settings, now
        self.authentication = Authentication(settings, environ)
        self.proxy_roles = frozenset(settings.proxy_roles)
        is_authorized = settings.authorization_enabled and store is not None
        self.authorization = Authorization(settings, store) if is_authorized and store is not None else None

    def caller_of(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> Caller:
        """Returns the caller of an HTTP request. AuthenticationRefused, BadCaller."""
        principal = self.authentication.of_request(headers, certificate, self.now())
        original = headers.get(ORIGINAL_PRINCIPAL_HEADER, "")
        if self.authorization is None:
            return Caller(principal.role)
        return checked_caller(principal.role, original, self.proxy_roles, may_be_equal=True)

    def close(self) -> None:
        if self.authorization is not None:
            self.authorization.close()


def security_of(
    settings: SecuritySettings, store: MetadataStore | None, environ: Mapping[str, str], now: Callable[[], float]
) -> Security | None:
    """None when authentication is off. BadSetting."""
    return Security(settings, store, environ, now) if settings.authentication_enabled else None
