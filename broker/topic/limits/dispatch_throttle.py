"""Dispatch rates: the permitted size of a subscription's next read, and its time (Apache: DispatchRateLimiter). Pure.

Three rates hold together: the subscription's, its topic's, its broker's. Delivered messages are charged to each; a read is cut
to the rest, and waits if there is none. `now` is in seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.dispatchers.contract import Deliver, Read

from ...policies.policies import DispatchRate
from ..statistics.rates import PublishRates, payload_bytes_at
from .token_buckets import RateLimiter
from .unacked_limit import BrokerUnacked


class DispatchLimit:
    """A DispatchRate at work; `limiter` is None where nothing is limited."""

    def __init__(self) -> None:
        self.limiter: RateLimiter | None = None
        self._rate = DispatchRate()

    def apply(self, rate: DispatchRate, published: PublishRates, now: float) -> None:
        """Applies a rate from now on. An unchanged rate keeps its state."""
        if rate != self._rate:
            self._rate = rate
            self.limiter = RateLimiter(*self._amounts(published), rate.period_seconds, now) if rate.is_limited else None

    def sampled(self, published: PublishRates, now: float) -> None:
        """Takes the new publish rate, on which a relative rate depends."""
        if self.limiter is not None and self._rate.is_relative_to_publish_rate:
            self.limiter.change(*self._amounts(published), now)

    def _amounts(self, published: PublishRates) -> tuple[int, int]:
        rate = self._rate
        if not rate.is_relative_to_publish_rate:
            return rate.messages, rate.bytes
        messages = rate.messages + int(published.messages.per_second) if rate.messages > 0 else rate.messages
        return messages, rate.bytes + int(published.bytes.per_second) if rate.bytes > 0 else rate.bytes


class ThrottledTimes:
    """Counts of reads that had to wait, by cause (dispatchThrottled{Msg,Bytes}EventsBy{Subscription,Topic,Broker}Limit)."""

    def __init__(self) -> None:
        self.by_messages = dict.fromkeys(LEVELS, 0)
        self.by_bytes = dict.fromkeys(LEVELS, 0)

    def counts(self) -> tuple[int, ...]:
        """Counts for messages in the order of LEVELS, then for bytes."""
        return (*self.by_messages.values(), *self.by_bytes.values())


LEVELS = ("subscription", "topic", "broker")


@dataclass(frozen=True, slots=True)
class SharedDispatchLimits:
    """Dispatch limits that the subscriptions of a topic share."""

    topic: DispatchLimit
    broker: RateLimiter | None
    published: PublishRates
    counts_batches_as_one: bool
    unacked: BrokerUnacked | None


class DispatchThrottle:
    """Throttle of one subscription."""

    def __init__(
        self, limiters: Sequence[RateLimiter | None], times: ThrottledTimes, *, counts_batches_as_one: bool = False
    ) -> None:
        """`limiters` in the order of LEVELS."""
        self.limiters = {level: each for level, each in zip(LEVELS, limiters, strict=True) if each is not None}
        self._times = times
        self._counts_batches_as_one = counts_batches_as_one
        self._messages_per_entry = 1.0

    def wait_seconds(self, now: float) -> float:
        """Seconds until something may be read; 0: now."""
        wait = 0.0
        for level, limiter in self.limiters.items():
            for bucket, times in ((limiter.messages, self._times.by_messages), (limiter.bytes, self._times.by_bytes)):
                seconds = 0.0 if bucket is None else bucket.wait_seconds(now)
                times[level] += seconds > 0
                wait = max(wait, seconds)
        return wait

    def cut(self, read: Read, now: float) -> Read:
        """Cuts the read to the remaining permits; call after `wait_seconds` was 0."""
        entries_max, bytes_max = read.entries_max, read.bytes_max
        for limiter in self.limiters.values():
            if limiter.messages is not None:
                entries_max = min(entries_max, int(limiter.messages.available(now) / self._messages_per_entry))
            if limiter.bytes is not None:
                bytes_max = min(bytes_max, int(limiter.bytes.available(now)))
        return replace(read, entries_max=max(1, entries_max), bytes_max=max(1, bytes_max))

    def delivered(self, delivery: Deliver, now: float) -> None:
        """A run, of which a part may be more than there was room for."""
        entries = len(delivery.indexes)
        messages = entries if self._counts_batches_as_one else delivery.message_count
        self._messages_per_entry = max(1.0, messages / max(1, entries))
        size = payload_bytes_at(delivery.run, delivery.indexes)
        for limiter in self.limiters.values():
            limiter.take(messages, size, now)
