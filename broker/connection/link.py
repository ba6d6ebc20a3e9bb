"""Link: the part of a connection that handlers of commands need. The connection implements it; tests may, too."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from wire.generated.pulsar_api_pb2 import BaseCommand

from ..errors import BrokerError
from ..security.authorization.callers import Caller

F = TypeVar("F")
Routes: TypeAlias = Mapping[int, Callable[[F, BaseCommand, memoryview], None]]
"""Handlers of a family of commands, by type: each gets its family's object, the command, and the payload section, which it must
not keep. ProtocolViolation ends the connection."""


class Link(Protocol):
    """The peer, and the ways to answer it. All of them do nothing once the connection is closed."""

    @property
    def address(self) -> str:
        """host:port of the peer."""

    @property
    def caller(self) -> Caller | None:
        """The peer; None without authentication."""

    @property
    def client_version(self) -> str: ...
    @property
    def protocol_version(self) -> int: ...
    @property
    def gets_broker_entry_metadata(self) -> bool:
        """Messages go to this peer with their broker entry metadata, which other peers must not get (PIP-90)."""

    @property
    def is_open(self) -> bool: ...
    @property
    def is_writable(self) -> bool:
        """False while the peer does not read."""

    async def is_alive(self) -> bool:
        """Whether the peer answers, within connectionLivenessCheckTimeoutMillis; when it does not, the connection has ended."""

    def answer(self, frames: bytes) -> None: ...
    def deliver(self, frames: bytes) -> None: ...
    def end(self, reason: str) -> None:
        """Close the connection; `reason` goes to the log."""

    def run(
        self,
        command: BaseCommand | None,
        work: Coroutine[Any, Any, None],
        on_failure: Callable[[BrokerError], None],
        *,
        is_making: bool = False,
    ) -> None:
        """Does the work of a command that takes time, once the peer is known to be permitted to (`access.command_needs`); None:
        work that needs no permission, or has it. A failure is given to `on_failure`, which answers it. `is_making`: the request
        makes or deletes something, and few of those begin in one turn of the loop, over all connections."""

    def in_slices(self, work: Iterator[None]) -> None:
        """Do the first part of a command's work now, up to a `yield`, and each further one in a turn of the loop of its own.
        Later commands of the peer are handled once all of it is done."""
