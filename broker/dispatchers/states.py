"""State of a dispatcher as stats and CONSUMER_STATS need it. Pure data."""

from typing import NewType

from wire.position import Position
from wire.record import record

ConsumerId = NewType("ConsumerId", int)
"""Given by the driver, unique in a subscription and growing: of two consumers the one with the lower id came first."""


@record(frozen=True, slots=True)
class ConsumerState:
    """State of a consumer for stats and CONSUMER_STATS. `hash_ranges`: inclusive, Key_Shared only."""

    consumer: ConsumerId
    name: str
    permits: int
    unacked_messages: int
    is_blocked_on_unacked: bool
    is_active: bool
    """True for every consumer where all are (Shared, Key_Shared)."""
    hash_ranges: tuple[tuple[int, int], ...] = ()


@record(frozen=True, slots=True)
class DispatcherState:
    """State of a subscription for stats. `draining_hashes`: Key_Shared slots that wait for a former owner."""

    unacked_messages: int
    is_blocked_on_unacked: bool
    entries_in_replay: int
    active_consumer: ConsumerId | None
    draining_hashes: int = 0
    delayed_entries: int = 0
    """Read, and held back until their time comes."""
    delayed_bytes: int = 0
    delayed_buckets: int = 0
    read_position: Position | None = None
    """Position where the dispatcher reads on; None: at the cursor's first unacknowledged entry."""
    is_waiting: bool = False
    """Whether the dispatcher has read all there is."""
