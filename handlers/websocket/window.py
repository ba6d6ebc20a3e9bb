"""Window: the permits of a session's consumers, and the messages that came and are not sent to the client yet. Pure.

A broker gets permits only for messages that the client may be sent at once: nothing waits here for a client that asked for
nothing. A batch may bring more messages than there were permits; these wait in `ready`.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from wire.received import Message


class Arrived(NamedTuple):
    """A message that waits for the client."""

    place: int
    ledger_id: int
    entry_id: int
    batch_size: int
    redelivery_count: int
    message: Message


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
    ready: deque[Arrived] = field(default_factory=deque)

    def open(self, count: int) -> None:
        """Adds a place for each topic of a session."""
        self.places = [_Place() for _ in range(count)]

    def take(self, place: int, permits: int, messages: list[Arrived]) -> None:
        """Messages of one entry, which used this number of permits."""
        own = self.places[place]
        own.granted = max(0, own.granted - permits)
        own.ready += len(messages)
        self.ready.extend(messages)

    def next(self) -> Arrived | None:
        """Message that the client is sent now."""
        if self.allowed <= 0 or not self.ready:
            return None
        self.allowed -= 1
        arrived = self.ready.popleft()
        self.places[arrived.place].ready -= 1
        return arrived

    def attached(self, place: int) -> None:
        self.places[place].is_attached = True

    def lost(self, place: int) -> None:
        """Forgets the permits of a lost consumer, and its messages, which come again."""
        self.forget(place)
        self.places[place].is_attached, self.places[place].granted = False, 0

    def forget(self, place: int) -> None:
        """Forgets the waiting messages of a place, which come again."""
        self.ready = deque(arrived for arrived in self.ready if arrived.place != place)
        self.places[place].ready = 0

    def due_permits(self, place: int) -> int:
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
