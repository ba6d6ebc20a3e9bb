"""Identity: who a connection's peer is, from its CONNECT on, and whether it still is. Pure: commands and the time in, verdicts
out.

A token that has expired is asked for anew (AUTH_CHALLENGE). A peer that does not know how, or does not answer until the next
look, is given up, and so is one whose credentials a proxy keeps to itself (Apache's ServerCnx; CVE-2023-31007).
"""

import logging
from collections.abc import Mapping
from enum import Enum
from typing import Any

from ports.logs import line
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import CommandAuthResponse, CommandConnect

from ...errors import BrokerError, ServerError
from ...security.authentication.principals import AuthenticationRefused, Principal, Shown
from ...security.authorization.callers import BadCaller, Caller, checked_caller
from ...security.security import Security

log = logging.getLogger(__name__)

REFRESH = b"PulsarAuthRefresh"
"""Data of a challenge that asks for nothing but the current credentials."""
_FAILED = BrokerError(ServerError.AUTHENTICATION, "Failed to authenticate")
_METHOD_PREFIX = "AuthMethod"


class Look(Enum):
    """Check of the credentials, each authenticationRefreshCheckSeconds."""

    GOOD = "good"
    CHALLENGE = "challenge"
    KEPT_BY_PROXY = "the credentials have expired, and the proxy does not forward the client's"
    CANNOT_REFRESH = "the credentials have expired, and the client cannot refresh them"
    UNANSWERED = "the credentials have expired, and no new ones came in time"


class Identity:
    """Identity of the peer of one connection, where authentication is on. `caller` once it is connected."""

    def __init__(self, security: Security, address: str, certificate: Mapping[str, Any] | None) -> None:
        self._security, self._address, self._certificate = security, address, certificate
        self._own: Principal | None = None
        self._original: Principal | None = None
        self._has_original = self._can_refresh = self._is_challenged = False
        self._original_method = ""
        self.method = ""
        self.caller: Caller | None = None

    @property
    def expires(self) -> bool:
        """Whether there is anything to look after."""
        held = self._original or self._own
        return held is not None and held.expires_at is not None

    def connect(self, command: CommandConnect) -> None:
        """BrokerError when the peer is not let in."""
        self.method = _method(command)
        try:
            self._own = self._authenticate(self.method, command.auth_data)
            original = self._originally(command)
        except AuthenticationRefused as refused:
            raise self._refusal(refused) from None
        self._has_original = bool(original)
        self._can_refresh = command.feature_flags.supports_auth_refresh
        self.caller = self._checked(command, self._own.role, original)

    def look(self) -> Look:
        """Whether the credentials are still good."""
        held = self._original or self._own
        if held is None or not held.has_expired(self._security.now()):
            return Look.GOOD
        if self._has_original and self._original is None:
            return Look.KEPT_BY_PROXY
        if not self._can_refresh:
            return Look.CANNOT_REFRESH
        if self._is_challenged:
            return Look.UNANSWERED
        self._is_challenged = True
        return Look.CHALLENGE

    def respond(self, command: CommandAuthResponse) -> None:
        """New credentials of the same principal. BrokerError when they are not."""
        self._is_challenged = False
        before = self._original or self._own
        assert before is not None, "AUTH_RESPONSE comes after CONNECT"
        method = self._original_method if self._original is not None else self.method
        try:
            renewed = self._authenticate(method, command.response.auth_data)
        except AuthenticationRefused as refused:
            raise self._refusal(refused) from None
        if renewed.role != before.role:
            raise self._refusal(AuthenticationRefused(f"the principal cannot become {renewed.role[:200]!r}"))
        if self._original is not None:
            self._original = renewed
        else:
            self._own = renewed
        log.info(line("credentials renewed", peer=self._address, role=renewed.role[:200]))

    def _authenticate(self, method: str, data: bytes) -> Principal:
        security = self._security
        return security.authentication.of_connection(method, Shown(data, self._certificate), security.now())

    def _originally(self, command: CommandConnect) -> str:
        """Returns the principal that a proxy speaks for: its own word, or the client's credentials where these have to be
        forwarded."""
        if not command.HasField("original_principal"):
            return ""
        if not self._security.settings.authenticate_original_auth_data:
            return command.original_principal
        self._original_method = command.original_auth_method or "none"
        security, shown = self._security, Shown(command.original_auth_data.encode())
        self._original = security.authentication.of_connection(self._original_method, shown, security.now())
        return self._original.role

    def _checked(self, command: CommandConnect, role: str, original: str) -> Caller:
        security = self._security
        if security.authorization is None:
            return Caller(role, original)
        try:
            caller = checked_caller(role, original, security.proxy_roles)
        except BadCaller as bad:
            log.warning(line("not let in", peer=self._address, role=role[:200], original=original[:200], reason=bad))
            raise BrokerError(ServerError.AUTHORIZATION, "Invalid roles.") from None
        if command.HasField("proxy_version") and role not in security.proxy_roles:
            raise BrokerError(ServerError.AUTHORIZATION, "Must not set proxyVersion without connecting as a ProxyRole.")
        return caller

    def _refusal(self, refused: AuthenticationRefused) -> BrokerError:
        """The reason is for the log alone."""
        log.warning(line("not authenticated", peer=self._address, method=self.method[:64], reason=refused))
        return _FAILED


def _method(command: CommandConnect) -> str:
    """Clients of long ago name it by a number."""
    if command.HasField("auth_method_name"):
        return command.auth_method_name
    if command.HasField("auth_method"):
        return api.AuthMethod.Name(command.auth_method).removeprefix(_METHOD_PREFIX).lower()
    return "none"
