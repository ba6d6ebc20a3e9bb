"""What an administrator sees of the transactions on a topic, as values. Pure data; times are milliseconds since the epoch."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from managed_ledger.contract import ManagedLedger
from wire.record import record


@record(frozen=True, slots=True)
class BufferFacts:
    """Of a topic (Apache: TransactionBufferStats). `is_used`: it has had a transaction."""

    is_used: bool
    max_read_position: str
    last_snapshot_ms: int
    low_water_marks: Mapping[int, int]
    open_count: int
    recovery_ms: tuple[int, int]
    aborted_count: int
    is_segmented: bool
    segments: "SegmentFacts"


@record(frozen=True, slots=True)
class SegmentFacts:
    """Of the segments of a topic's snapshots (SegmentsStats). `stored`: of each its last transaction and marker."""

    capacity: int
    last_stored_ms: int
    loose_count: int
    stored: tuple[tuple[str, str], ...]


@record(frozen=True, slots=True)
class InBufferFacts:
    """Of one transaction on a topic (TransactionInBufferStats). `start_position` only while it is open."""

    start_position: str | None
    is_aborted: bool


@record(frozen=True, slots=True)
class PendingAckFacts:
    """Of a subscription (TransactionPendingAckStats). `log` None: nothing was acknowledged in a transaction yet."""

    log: ManagedLedger | None
    low_water_marks: Mapping[int, int]
    open_count: int
    recovery_ms: tuple[int, int]


class AckPlace(Enum):
    """What a subscription knows of a message, or of one of a batch (PositionInPendingAckStats.State)."""

    PENDING = "PendingAck"
    MARK_DELETED = "MarkDelete"
    NOT_PENDING = "NotInPendingAck"
    NOT_IN_BATCH = "InvalidPosition"


@record(frozen=True, slots=True)
class InPendingAckFacts:
    """Of one transaction on a subscription (TransactionInPendingAckStats)."""

    cumulative_position: str | None


@dataclass(slots=True)
class PendingAckCounts:
    """Of transactions whose end a subscription was told, since it was loaded (PendingAckHandleStats). It goes on counting."""

    committed: int = 0
    aborted: int = 0
    commits_failed: int = 0
    aborts_failed: int = 0
    commit_seconds: float = 0.0
    """Of those that were committed, together."""

    def ended(self, seconds: float, *, is_commit: bool) -> None:
        """It took so long."""
        if is_commit:
            self.committed += 1
            self.commit_seconds += seconds
        else:
            self.aborted += 1

    def failed(self, *, is_commit: bool) -> None:
        """It will be asked again."""
        if is_commit:
            self.commits_failed += 1
        else:
            self.aborts_failed += 1

    def include(self, other: "PendingAckCounts") -> None:
        self.committed += other.committed
        self.aborted += other.aborted
        self.commits_failed += other.commits_failed
        self.aborts_failed += other.aborts_failed
        self.commit_seconds += other.commit_seconds
