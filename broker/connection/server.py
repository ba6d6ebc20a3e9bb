"""Server: the shared parts of one server's connections. The listener implements it; tests may, too."""

from typing import Protocol

from ports.loop.starts import Starts
from ports.network.read_buffer import SharedRoom
from ports.network.server_port import Closable

from ..security.security import Security
from ..service.broker_service import BrokerService
from ..transaction.coordinators import Coordinators
from .producers.publish_gate import PublishMemory
from .settings import ConnectionSettings


class Server(Protocol):
    """Parts that the connections of one server share."""

    service: BrokerService
    settings: ConnectionSettings
    room: SharedRoom
    memory: PublishMemory
    starts: Starts
    """Starts of the requests that make something."""
    security: Security | None
    """None: everybody may do everything."""
    coordinators: Coordinators | None
    """Coordinators of transactions; None: there are none."""

    def admit(self, connection: Closable, host: str) -> str | None:
        """Why the connection cannot be taken; None when it can."""

    def dismiss(self, connection: Closable, host: str) -> None:
        """The connection is gone."""
