"""Counters of messages and bytes in and out, and rates over the last sampling period. Counting is a few additions per run."""

from collections.abc import Sequence

from wire.kernels.delivery_rows import DeliveriesRow
from wire.kernels.rows import CountersRow
from wire.run import EntryRun


class Rate:
    """Per second, over the time between the last two samples of a counter."""

    __slots__ = ("_last", "per_second")

    def __init__(self) -> None:
        self._last = 0
        self.per_second = 0.0

    def sample(self, total: int, seconds: float) -> None:
        self.per_second = (total - self._last) / seconds if seconds > 0 else 0.0
        self._last = total


class PublishCounters(CountersRow):
    """Counters of messages that a producer or all of a topic sent. `dropped`: on a non-persistent topic, without room."""

    __slots__ = ()

    def __init__(self) -> None:
        self.messages = self.payload_bytes = self.chunks = self.dropped = 0

    def add(self, messages: int, payload_bytes: int, chunks: int) -> None:
        self.messages += messages
        self.payload_bytes += payload_bytes
        self.chunks += chunks


class PublishRates:
    """Rates of PublishCounters."""

    __slots__ = ("bytes", "chunks", "dropped", "messages")

    def __init__(self) -> None:
        self.messages, self.bytes, self.chunks, self.dropped = Rate(), Rate(), Rate(), Rate()

    def sample(self, counters: PublishCounters, seconds: float) -> None:
        self.messages.sample(counters.messages, seconds)
        self.bytes.sample(counters.payload_bytes, seconds)
        self.chunks.sample(counters.chunks, seconds)
        self.dropped.sample(counters.dropped, seconds)


class DeliveryCounters(DeliveriesRow):
    """Counters of deliveries and acknowledgements, of a consumer or of all consumers of a subscription."""

    __slots__ = ()

    def __init__(self) -> None:
        self.messages = self.payload_bytes = self.entries = self.redelivered = self.acknowledged = 0

    def include(self, other: "DeliveryCounters") -> None:
        self.messages += other.messages
        self.payload_bytes += other.payload_bytes
        self.entries += other.entries
        self.redelivered += other.redelivered
        self.acknowledged += other.acknowledged


class DeliveryRates:
    """Rates of DeliveryCounters."""

    __slots__ = ("acknowledged", "bytes", "messages", "redelivered")

    def __init__(self) -> None:
        self.messages, self.bytes, self.redelivered, self.acknowledged = Rate(), Rate(), Rate(), Rate()

    def sample(self, counters: DeliveryCounters, seconds: float) -> None:
        self.messages.sample(counters.messages, seconds)
        self.bytes.sample(counters.payload_bytes, seconds)
        self.redelivered.sample(counters.redelivered, seconds)
        self.acknowledged.sample(counters.acknowledged, seconds)


def payload_bytes_at(run: EntryRun, indexes: range | Sequence[int]) -> int:
    """Bytes as clients sent them; without a Python statement per entry."""
    if not indexes:
        return 0
    offsets = run.offsets
    if isinstance(indexes, range) and indexes.step == 1:
        sealed = offsets[indexes.stop] - offsets[indexes.start]
    else:
        sealed = sum(map(offsets[1:].__getitem__, indexes)) - sum(map(offsets.__getitem__, indexes))
    return sealed - len(indexes) * run.header_bytes
