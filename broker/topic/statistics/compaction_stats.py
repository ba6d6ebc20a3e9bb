"""Status and counts of a topic's compactions since it was loaded (Apache: CompactionRecord), and the compacted ledger. Pure."""

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from enum import StrEnum

from broker.errors import BrokerError, ServerError
from managed_ledger.meters import LATENCY_BUCKETS_MS

from .rates import Rate


def _no_latencies() -> "array[int]":
    return array("Q", bytes(8 * (len(LATENCY_BUCKETS_MS) + 1)))


@dataclass(slots=True)
class CompactionStats:
    """Times in milliseconds, of day or of length."""

    last_removed_events: int = 0
    last_succeeded_ms: int = 0
    last_failed_ms: int = 0
    last_duration_ms: int = 0
    removed_events: int = 0
    succeeded: int = 0
    failed: int = 0
    duration_ms: int = 0
    """Duration of all runs."""
    read_bytes: int = 0
    """Bytes that both phases read, as is the rate."""
    written_bytes: int = 0
    write_latencies: "array[int]" = field(default_factory=_no_latencies)
    """Entries of compacted ledgers by their time to be stored; LATENCY_BUCKETS_MS."""
    write_seconds: float = 0.0
    read_rate: Rate = field(default_factory=Rate)
    """Bytes, as is the next."""
    write_rate: Rate = field(default_factory=Rate)
    compacted_entries: int = 0
    """Entries of the compacted ledger, as is the next."""
    compacted_bytes: int = 0

    def read(self, size_bytes: int) -> None:
        """Counts bytes that one of the phases read."""
        self.read_bytes += size_bytes

    def wrote(self, size_bytes: int) -> None:
        """Counts bytes written to a compacted ledger."""
        self.written_bytes += size_bytes

    def stored(self, seconds: float, entries: int) -> None:
        """Counts the stored entries and the seconds that storing took."""
        self.write_seconds += seconds * entries
        self.write_latencies[bisect_left(LATENCY_BUCKETS_MS, seconds * 1000)] += entries

    def ended(self, seconds: float) -> None:
        """A run, well or not."""
        self.last_duration_ms = int(1000 * seconds)
        self.duration_ms += self.last_duration_ms

    def sample(self, seconds: float) -> None:
        """Take the rates of the time since the last call."""
        self.read_rate.sample(self.read_bytes, seconds)
        self.write_rate.sample(self.written_bytes, seconds)


@dataclass(frozen=True, slots=True)
class CompactedLedgerFacts:
    """-1: not known, as it cannot be opened."""

    ledger_id: int
    entries: int
    size_bytes: int


class CompactionState(StrEnum):
    """LongRunningProcessStatus.Status."""

    NOT_RUN = "NOT_RUN"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


class CompactionUnderWay(BrokerError):
    """One at a time."""

    def __init__(self) -> None:
        super().__init__(ServerError.NOT_ALLOWED, "Compaction already in progress")


@dataclass(frozen=True, slots=True)
class CompactionStatus:
    """Status of the last run, or the one under way; `error` describes a failure, else it is empty."""

    state: CompactionState = CompactionState.NOT_RUN
    error: str = ""
