"""BrokerMeters: counts of a broker's work beside its topics, for /metrics. Owns the counts; layers add to it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from managed_ledger.meters import CursorFacts, LedgerMeters, SharedMeters
from metadata.metered_store import MetadataMeters
from ports.metrics.histogram import Histogram
from ports.metrics.op_stats import OpStats

from .metrics_settings import MetricsSettings

QUOTA_CHECK_BOUNDS_SECONDS = (5.0, 10.0, 30.0, 60.0, 300.0)
"""Apache's BacklogQuotaManager has these."""


class ManagedLedgersMetered(Protocol):
    """Counts that the managed ledgers of a process give."""

    @property
    def count(self) -> int: ...
    @property
    def cached_bytes(self) -> int: ...
    @property
    def cache_evictions(self) -> int: ...
    @property
    def meters(self) -> SharedMeters: ...
    def reads_in_flight_bytes(self) -> tuple[int, int]: ...
    def meters_of(self, name: str) -> LedgerMeters | None: ...
    def cursors_of(self, name: str) -> Iterator[tuple[str, CursorFacts]]: ...


@dataclass(slots=True)
class BrokerMeters:
    """Counts since the broker began. `copies` of each entry there are on bookies."""

    settings: MetricsSettings = field(default_factory=MetricsSettings)
    managed_ledgers: ManagedLedgersMetered | None = None
    """None where a broker has been given other topics (tests)."""
    copies: int = 1
    sample_seconds: float = 60.0
    """Rates are taken over at least so long (statsUpdateFrequencyInSecs)."""
    version: str = ""
    lookups: OpStats = field(default_factory=OpStats)
    lookups_redirected: int = 0
    lookups_pending: int = 0
    topic_loads: OpStats = field(default_factory=OpStats)
    topic_loads_pending: int = 0
    connections_opened: int = 0
    connections_closed: int = 0
    connections_refused: int = 0
    http_requests_rejected: int = 0
    quota_check_seconds: Histogram = field(default_factory=lambda: Histogram(QUOTA_CHECK_BOUNDS_SECONDS))
    """Duration of each round over all topics."""
    connections_throttled: int = 0
    """Connections that are not read at the moment, until their messages are stored, or a rate allows more."""
    storage_refusal: Callable[[], str] = str
    """Why nothing should be published now, such as a full disk; empty: it may."""
    metadata: MetadataMeters | None = None
    """None where the store is not metered (tests)."""

    def http_request_rejected(self) -> None:
        """Counts a request that httpRequestsMaxPerSecond refused."""
        self.http_requests_rejected += 1
