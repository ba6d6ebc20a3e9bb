"""Deliveries: the runs that one turn of the loop gives to consumers, sent together at its end: one buffer for each connection.
Owns the runs that are given and not sent yet (`wire.kernels.newest`). A run is sent in the turn in which it was given, and
before anything else that its connection writes: that calls `send_first`.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeAlias
from weakref import WeakKeyDictionary

from ports.loop.turn import turn_of
from wire.kernels.delivery_rows import ConsumerHandleRow
from wire.kernels.messages import part_frames
from wire.kernels.rows import PartRow


class Link(Protocol):
    """A connection with consumers."""

    @property
    def is_writable(self) -> bool: ...
    def deliver(self, frames: bytes) -> None: ...


class Reader(Protocol):
    """A consumer that was given something."""

    def delivered(self) -> None:
        """The delivery is written; the connection may take no more now."""


Given: TypeAlias = tuple[ConsumerHandleRow, PartRow, int | None, Reader]
"""The sink of the consumer, its run, its epoch, and the consumer."""


class Deliveries:
    """Deliveries of one loop."""

    __slots__ = ("_is_due", "_turn", "by_link")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._turn = turn_of(loop)
        self._is_due = False
        self.by_link: dict[Link, list[Given]] = {}

    def send_soon(self) -> None:
        """Schedules a send at the end of the turn."""
        if not self._is_due and self.by_link:
            self._is_due = True
            self._turn.at_end(self._send)

    def send_first(self, link: Link) -> None:
        """Sends the runs that a connection's consumers were given, before anything else that the connection writes."""
        parts = self.by_link.pop(link, None)
        if parts is not None:
            self._turn.call(partial(_send_to, link, parts))

    def _send(self) -> None:
        self._is_due = False
        for link in tuple(self.by_link):
            self.send_first(link)


def _send_to(link: Link, parts: Sequence[Given]) -> None:
    link.deliver(part_frames(parts))
    if not link.is_writable:
        for _, _, _, consumer in parts:
            consumer.delivered()


_BY_LOOP: "WeakKeyDictionary[asyncio.AbstractEventLoop, Deliveries]" = WeakKeyDictionary()


def deliveries_of(loop: asyncio.AbstractEventLoop) -> Deliveries:
    """The one of a loop."""
    found = _BY_LOOP.get(loop)
    if found is None:
        found = _BY_LOOP[loop] = Deliveries(loop)
    return found
