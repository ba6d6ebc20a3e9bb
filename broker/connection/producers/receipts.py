"""Receipts: the receipts of one connection, written together at the end of the turn in which their messages were stored.

Owns the parts that are stored and not answered yet. Any other answer to the peer writes these first, so that frames leave in
the order of their events.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from ports.loop.turn import turn_of
from wire.kernels.rows import ReceiptsRow
from wire.kernels.sends import part_receipts

from ...topic.sent_part import SentPart
from .publish_gate import PublishGate


class ReceiptsOwner(Protocol):
    """The producer that a part is of."""

    def receipt_written(self, count: int) -> None:
        """Notifies the producer that `count` of its messages are answered."""


class Receipts(ReceiptsRow):
    """`write` takes frames; it is set once there is a peer."""

    __slots__ = ("_gate", "_turn", "write")

    write: Callable[[bytes], None]
    parts: list[SentPart]
    """Stored and not answered, in order."""
    _owners: list[ReceiptsOwner]

    def __init__(self, gate: PublishGate) -> None:
        self._gate = gate
        self._turn = turn_of(asyncio.get_running_loop())
        self.parts, self._owners = [], []

    def add(self, part: SentPart, owner: ReceiptsOwner) -> None:
        if not self.parts:
            self._turn.at_end(self.flush)
        self.parts.append(part)
        self._owners.append(owner)

    def end_turn(self) -> None:
        """Writes the receipts of this turn of the loop."""
        self.flush()

    def flush(self) -> None:
        """Writes the receipts that are ready."""
        parts, owners = self.parts, self._owners
        if not parts:
            return
        self.parts, self._owners = [], []
        self.write(part_receipts(parts))
        messages = size = 0
        for part, owner in zip(parts, owners, strict=True):
            messages += part.count
            size += part.payload_bytes
            owner.receipt_written(part.count)
        self._gate.ended(messages, size)
