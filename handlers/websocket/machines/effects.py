"""Events' results: what a session's machine asks of its driver, and the form that all machines share. Pure values."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from wire.client_end import Received
from wire.generated.pulsar_api_pb2 import BaseCommand


class Now(NamedTuple):
    """One moment: `seconds` of a steady clock, and the wall clock's milliseconds since the epoch."""

    seconds: float
    ms: int


class Tell(NamedTuple):
    """Send a text to the client."""

    text: str


class Send(NamedTuple):
    """Send a frame to the broker of a place."""

    place: int
    frame: bytes


class Reattach(NamedTuple):
    """Make the producer or consumer of a place again. `is_closed`: the broker closed it; else the connection has to end."""

    place: int
    is_closed: bool = False


class Unsubscribe(NamedTuple):
    """Delete the subscription of a place."""

    place: int


class Bury(NamedTuple):
    """Publish a message, in a producer's JSON, to the dead letter topic, then report its context to `on_buried`."""

    text: str


class End(NamedTuple):
    """Close the session."""

    code: int
    reason: str


Effect = Tell | Send | Reattach | Unsubscribe | Bury | End


class Machine(Protocol):
    """A session without its sockets. A place is a topic without partitions, or one partition."""

    topics: Sequence[str]
    """Topic of each place."""

    @property
    def is_full(self) -> bool:
        """Whether the client is to wait before it sends more."""

    def introduction(self, place: int) -> BaseCommand:
        """Command that makes the producer or consumer of a place, without the number of its request."""

    def on_attached(self, place: int, answer: BaseCommand, now: Now) -> list[Effect]: ...
    def on_lost(self, place: int) -> None: ...
    def on_received(self, place: int, received: Received, now: Now) -> list[Effect]: ...
    def on_text(self, text: bytes, now: Now) -> list[Effect]: ...
    def on_timer(self, now: Now) -> list[Effect]: ...
    def due(self) -> float | None:
        """Moment in seconds at which `on_timer` has something to do; None: no such moment."""
