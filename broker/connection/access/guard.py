"""Guard: access checks of one connection, where authentication is on: the peer's role, its renewal, and its permissions.

Drives `identity` (pure) with a timer and `command_needs` (pure) with the grants in metadata. A connection without a guard is
open.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect

from ...errors import BrokerError, ServerError
from ...security.authorization.authorization import Denied
from ...security.authorization.callers import Caller
from ...security.security import Security
from .. import replies
from ..errors import ProtocolViolation
from ..link import Link
from .command_needs import FOR_OWNERS, NEEDS, OF_ITS_OWN
from .identity import REFRESH, Identity, Look
from .revocation import Attached, Revocation

SERVER_VERSION = "Pulsar Server (Interpulse)"


class Guard:
    """Guard of one connection. `close` last."""

    def __init__(
        self,
        security: Security,
        link: Link,
        certificate: Mapping[str, Any] | None,
        attached: Callable[[], Iterable[Attached]],
    ) -> None:
        self._security, self._link, self._attached = security, link, attached
        self._revocation: Revocation | None = None
        self._identity = Identity(security, link.address, certificate)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def caller(self) -> Caller | None:
        return self._identity.caller

    def connect(self, command: CommandConnect) -> None:
        """BrokerError: not let in."""
        self._identity.connect(command)
        self._watch()
        if self._security.authorization is not None:
            self._revocation = Revocation(self._security.authorization, self._link, lambda: self.caller, self._attached)

    def respond(self, command: BaseCommand) -> None:
        """BrokerError: not kept."""
        self._identity.respond(command.auth_response)
        self._watch()

    def must_ask(self, kind: int) -> bool:
        """Whether the command is put to `permitted`. ProtocolViolation for an undeclared command: it is denied."""
        if self._security.authorization is None:
            return False
        if kind not in NEEDS and kind not in OF_ITS_OWN and kind not in FOR_OWNERS:
            name = BaseCommand.Type.Name(BaseCommand.Type.ValueType(kind))
            raise ProtocolViolation(f"{name} is denied: its permissions are not declared")
        return kind in NEEDS

    async def permitted(self, command: BaseCommand, work: Coroutine[Any, Any, None]) -> None:
        """Does the work if it may be done. BrokerError."""
        try:
            await self._require(command)
        except BaseException:
            work.close()
            raise
        await work

    async def _require(self, command: BaseCommand) -> None:
        authorization, caller = self._security.authorization, self._identity.caller
        assert authorization is not None
        assert caller is not None, "commands come after CONNECT"
        try:
            for need in NEEDS[command.type](command):
                await authorization.require(caller, need)
        except Denied as denied:
            if command.type == BaseCommand.PARTITIONED_METADATA and not await authorization.has_tenant(need.tenant):
                message = f"Tenant or namespace or topic does not exist: {need.namespace}"
                raise BrokerError(ServerError.TOPIC_NOT_FOUND, message) from None  # of this command alone, as by Apache
            raise BrokerError(ServerError.AUTHORIZATION, str(denied)) from None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._revocation is not None:
            self._revocation.close()

    def _watch(self) -> None:
        if self._timer is None and self._identity.expires:
            seconds = self._security.settings.authentication_refresh_check_seconds
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        verdict = self._identity.look()
        if verdict is Look.CHALLENGE:
            version = self._link.protocol_version
            self._link.answer(replies.auth_challenge(SERVER_VERSION, version, self._identity.method, REFRESH))
        elif verdict is not Look.GOOD:
            self._link.end(verdict.value)
            return
        self._watch()
