"""Door: authentication of a proxy's clients, where it is on. Brokers check clients' credentials only where they are
forwarded.
"""

from collections.abc import Mapping
from typing import Any

from wire.generated.pulsar_api_pb2 import CommandConnect

from ..errors import BrokerError, ServerError
from ..security.authentication.principals import AuthenticationRefused, Principal, Shown
from ..security.security import Security
from .clients import Client


class Door:
    """Door of one proxy with authenticationEnabled."""

    def __init__(self, security: Security, *, forwards: bool) -> None:
        self._security, self.forwards = security, forwards

    def admit(self, command: CommandConnect, certificate: Mapping[str, Any] | None) -> tuple[Client, Principal]:
        """BrokerError: not let in. AuthenticationRefused is its cause, for the log."""
        method = command.auth_method_name or "none"
        shown = Shown(command.auth_data, certificate)
        try:
            principal = self._security.authentication.of_connection(method, shown, self._security.now())
        except AuthenticationRefused as refused:
            raise BrokerError(ServerError.AUTHENTICATION, "Failed to authenticate") from refused
        data = (method, command.auth_data) if self.forwards else ("", b"")
        return Client(principal.role, *data), principal

    def admit_request(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> Client:
        """AuthenticationRefused."""
        return Client(self._security.authentication.of_request(headers, certificate, self._security.now()).role)

    def seconds_left(self, principal: Principal) -> float | None:
        """Time that a connection may go on with its credentials; None: for ever."""
        if principal.expires_at is None:
            return None
        left = principal.expires_at - self._security.now()
        return max(0.0, left) + self._security.settings.authentication_refresh_check_seconds
