"""Counts of coordinators: of each since it was loaded (Apache: TransactionMetadataStoreStats), and of the requests of all to
topics and subscriptions (TransactionBufferClientStats). Owns numbers only.
"""

import bisect
from dataclasses import dataclass, field

from wire.transactions import TxnAction

LATENCY_BOUNDS_MS = (10, 20, 50, 100, 500, 1000, 5000, 15_000, 30_000, 60_000, 300_000, 1_500_000, 3_000_000)
"""Upper bounds of the buckets of execution latency; one more bucket is above them."""


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
        """`open_ms`: time until all participants had ended it."""
        self.latency[bisect.bisect_left(LATENCY_BOUNDS_MS, open_ms)] += 1
        if is_committed:
            self.committed += 1
        else:
            self.aborted += 1


ENDED_TOPICS_MAX = 10_000
"""Number of topics with counts of requests; one more drops the first."""


@dataclass(slots=True)
class EndingCounts:
    """Counts of one topic and its subscriptions. `seconds`: sum over the finished ones; a failed try is made again."""

    done: int = 0
    failed: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class EndingMeters:
    """Counts of all coordinators of a broker. `pending`: requests that are not answered, or wait for their turn.
    `contradicted`: a participant had ended the transaction the other way before."""

    pending: int = 0
    contradicted: int = 0
    by_topic: dict[str, dict[TxnAction, EndingCounts]] = field(default_factory=dict)

    def asked(self, topic: str, action: TxnAction, seconds: float, *, is_done: bool) -> None:
        """One try was answered, or is over without an answer."""
        found = self.by_topic.get(topic)
        if found is None:
            while len(self.by_topic) >= ENDED_TOPICS_MAX:
                del self.by_topic[next(iter(self.by_topic))]
            found = self.by_topic[topic] = {each: EndingCounts() for each in TxnAction}
        counts = found[action]
        if is_done:
            counts.done += 1
            counts.seconds += seconds
        else:
            counts.failed += 1
