"""ConsumerTotals: sums over all consumers of a topic, without a look at each of them. Pure.

A topic may have 30,000 subscriptions with consumers, and is asked for this whenever a producer or a consumer comes, at each
load report and each look for unused topics. It is notified of each consumer that comes, leaves or has its rates sampled.
"""

from ports.ends import ENDS

from .consumer import TopicConsumer


class ConsumerTotals:
    """Totals of one topic. `count` is never negative; rates are those of each consumer's last sample."""

    def __init__(self) -> None:
        self.count = 0
        self._with_schema_count = 0
        self._by_host: dict[str, int] = {}
        self._message_rate = self._byte_rate = 0.0

    @property
    def has_schema(self) -> bool:
        """Whether one of them came with a schema, or with none, and not to take any (AUTO_CONSUME)."""
        return self._with_schema_count > 0

    @property
    def message_rate(self) -> float:
        return max(0.0, self._message_rate)

    @property
    def byte_rate(self) -> float:
        return max(0.0, self._byte_rate)

    def count_from(self, address: str) -> int:
        """Those from the same host as this address."""
        return self._by_host.get(_host(address), 0)

    def came(self, consumer: TopicConsumer) -> None:
        self._add(consumer, 1)

    def left(self, consumer: TopicConsumer) -> None:
        ENDS.ended(consumer)
        self._add(consumer, -1)
        self._message_rate -= consumer.rates.messages.per_second
        self._byte_rate -= consumer.rates.bytes.per_second
        if not self.count:
            self._message_rate = self._byte_rate = 0.0  # no rounding error is left

    def _add(self, consumer: TopicConsumer, one: int) -> None:
        host = _host(consumer.request.address)
        self.count += one
        self._with_schema_count += 0 if consumer.request.takes_any_schema else one
        self._by_host[host] = self._by_host.get(host, 0) + one
        if not self._by_host[host]:
            del self._by_host[host]

    def sample(self, consumer: TopicConsumer, seconds: float) -> None:
        """Take the consumer's rates over the time since the last call for it. One that has left counts no more."""
        rates = consumer.rates
        messages, payload_bytes = rates.messages.per_second, rates.bytes.per_second
        rates.sample(consumer.counters, seconds)
        if not consumer.is_closed:
            self._message_rate += rates.messages.per_second - messages
            self._byte_rate += rates.bytes.per_second - payload_bytes


def _host(address: str) -> str:
    return address.rpartition(":")[0] or address
