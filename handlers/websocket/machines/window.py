"""Window: the permits of a session's consumers, and the messages that came and are not sent to the client yet. Pure.

A broker gets permits only for messages that the client may be sent at once: nothing waits here for a client that asked for
nothing. A batch may bring more messages than there were permits; these wait in `ready`, and are decoded as they are sent.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from wire.errors import RemoteError
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandFlow
from wire.received import Message

from .effects import Effect, Send


class Arrived(NamedTuple):
    """A message that waits for the client."""

    place: int
    ledger_id: int
    entry_id: int
    batch_size: int
    redelivery_count: int
    message: Message


@dataclass(slots=True)
class _Entry:
    """Entry with messages that wait. `left`: number of them."""

    place: int
    messages: Iterator[Arrived]
    left: int


@dataclass(slots=True)
class _Place:
    is_attached: bool = False
    granted: int = 0
    """Permits that the broker has."""
    ready: int = 0
    """Messages of the place in `ready`."""


@dataclass(slots=True)
class Window:
    """Window of one session. `allowed`: messages that the client may still be sent."""

    allowed: int
    places: list[_Place] = field(default_factory=list)
    ready: deque[_Entry] = field(default_factory=deque)

    def open(self, count: int) -> None:
        """Adds a place for each topic of a session."""
        self.places = [_Place() for _ in range(count)]

    @property
    def has_next(self) -> bool:
        return self.allowed > 0 and bool(self.ready)

    def take(self, place: int, permits: int, messages: Iterator[Arrived], count: int) -> None:
        """Messages of one entry, which used this number of permits."""
        own = self.places[place]
        own.granted = max(0, own.granted - permits)
        own.ready += count
        self.ready.append(_Entry(place, messages, count))

    def next(self) -> Arrived | None:
        """Message that the client is sent now. The rest of an entry that cannot be read is left out."""
        while self.has_next:
            entry = self.ready[0]
            try:
                arrived = next(entry.messages, None)
            except RemoteError:
                arrived = None
            if arrived is None:
                self._used(entry.place, entry.left)
                self.ready.popleft()
                continue
            entry.left -= 1
            self._used(entry.place, 1)
            self.allowed -= 1
            return arrived
        return None

    def _used(self, place: int, count: int) -> None:
        self.places[place].ready = max(0, self.places[place].ready - count)

    def attached(self, place: int) -> None:
        self.places[place].is_attached = True

    def lost(self, place: int) -> None:
        """Forgets the permits of a lost consumer, and its messages, which come again."""
        self.forget(place)
        self.places[place].is_attached, self.places[place].granted = False, 0

    def forget(self, place: int) -> None:
        """Forgets the waiting messages of a place, which come again."""
        self.ready = deque(entry for entry in self.ready if entry.place != place)
        self.places[place].ready = 0

    def flow(self) -> list[Effect]:
        """Permits that are due, for the brokers."""
        effects: list[Effect] = []
        for place in range(len(self.places)):
            permits = self._due_permits(place)
            if permits:
                flow = CommandFlow(consumer_id=place, message_permits=permits)
                effects.append(Send(place, encode(BaseCommand(type=BaseCommand.FLOW, flow=flow))))
        return effects

    def _due_permits(self, place: int) -> int:
        """Permits to grant now: half of the share of the place or more, or any where it has none; 0 for none."""
        if not self.places[place].is_attached:
            return 0
        own, share = self.places[place], max(1, self.allowed // len(self.places)) if self.allowed > 0 else 0
        held = own.granted + own.ready
        missing = share - held
        if missing <= 0 or (held > 0 and missing * 2 < share):
            return 0
        own.granted += missing
        return missing
