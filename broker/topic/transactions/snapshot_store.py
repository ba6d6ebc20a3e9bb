"""Store of the snapshots of a topic's aborted transactions, as the topic needs it (Apache: AbortedTxnProcessor).

A snapshot spares reading the log again, and says that the topic has had transactions; nothing else depends on it. Any earlier
one will do, with more of the log: of each message that is still there, the marker that ends its transaction is there, too.
"""

from dataclasses import dataclass
from typing import Protocol

from wire.position import Position

from .aborted import AbortedTransactions


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Aborted transactions with markers up to `max_read`, where everything was decided. The log is read again from there on."""

    aborted: AbortedTransactions
    max_read: Position


class SnapshotStore(Protocol):
    """Snapshot store of one topic. BrokerError where nothing else is said."""

    @property
    def is_segmented(self) -> bool:
        """Apache's snapshotType: Segment rather than Single."""

    @property
    def segment_capacity(self) -> int:
        """Transactions of a segment."""

    @property
    def last_segment_ms(self) -> int:
        """Time when a segment was stored last; 0: never by this loading of the topic."""

    async def read(self) -> Snapshot | None:
        """The one that reaches furthest; None: the topic never had a transaction."""

    async def write(self, aborted: AbortedTransactions, max_read: Position) -> None:
        """Durable when it returns. `aborted` may grow meanwhile: its present state is stored. One call at a time."""

    async def delete(self) -> None:
        """The topic is gone."""
