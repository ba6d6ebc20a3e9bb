"""What is counted of one coordinator since it was loaded (Apache: TransactionMetadataStoreStats). Owns numbers only."""

import bisect
from dataclasses import dataclass, field

LATENCY_BOUNDS_MS = (10, 20, 50, 100, 500, 1000, 5000, 15_000, 30_000, 60_000, 300_000, 1_500_000, 3_000_000)
"""Upper bounds of the buckets of execution latency; there is one more for what is above."""


@dataclass(slots=True)
class CoordinatorMeters:
    """Counters only grow. `latency[i]`: transactions that ended within the i-th bound and not within the one before."""

    created: int = 0
    committed: int = 0
    aborted: int = 0
    timed_out: int = 0
    appended: int = 0
    latency: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS_MS) + 1))

    def ended(self, open_ms: int, *, is_committed: bool) -> None:
        """`open_ms`: how long it was open, until everybody had ended it."""
        self.latency[bisect.bisect_left(LATENCY_BOUNDS_MS, open_ms)] += 1
        if is_committed:
            self.committed += 1
        else:
            self.aborted += 1
