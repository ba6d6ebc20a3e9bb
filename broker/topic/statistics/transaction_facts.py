"""Transactions on a topic for administrators, as values. Pure data; times are milliseconds since the epoch."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from managed_ledger.contract import ManagedLedger
from wire.record import record


@record(frozen=True, slots=True)
class BufferFacts:
    """Transaction buffer of a topic (Apache: TransactionBufferStats). `is_used`: it has had a transaction."""

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
    """Segments of a topic's snapshots (SegmentsStats). `stored`: the last transaction and marker of each."""

    capacity: int
    last_stored_ms: int
    loose_count: int
    stored: tuple[tuple[str, str], ...]


@record(frozen=True, slots=True)
class InBufferFacts:
    """One transaction on a topic (TransactionInBufferStats). `start_position` only while it is open."""

    start_position: str | None
    is_aborted: bool


@record(frozen=True, slots=True)
class PendingAckFacts:
    """Pending acknowledgements of a subscription (TransactionPendingAckStats). `log` None: there were none yet."""

    log: ManagedLedger | None
    low_water_marks: Mapping[int, int]
    open_count: int
    recovery_ms: tuple[int, int]


class AckPlace(Enum):
    """State of a message, or of one of a batch, on a subscription (PositionInPendingAckStats.State)."""

    PENDING = "PendingAck"
    MARK_DELETED = "MarkDelete"
    NOT_PENDING = "NotInPendingAck"
    NOT_IN_BATCH = "InvalidPosition"


@record(frozen=True, slots=True)
class InPendingAckFacts:
    """One transaction on a subscription (TransactionInPendingAckStats)."""

    cumulative_position: str | None


@dataclass(slots=True)
class PendingAckCounts:
    """Counts of transactions that ended on a subscription since it was loaded (PendingAckHandleStats). They go on counting."""

    committed: int = 0
    aborted: int = 0
    commits_failed: int = 0
    aborts_failed: int = 0
    commit_seconds: float = 0.0
    """Total of all committed transactions."""

    def ended(self, seconds: float, *, is_commit: bool) -> None:
        """Counts an end and the seconds that it took."""
        if is_commit:
            self.committed += 1
            self.commit_seconds += seconds
        else:
            self.aborted += 1

    def failed(self, *, is_commit: bool) -> None:
        """Counts a failed end; the coordinator will ask again."""
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
