"""Counts of a proxy's work, and their text for Prometheus. Names are those of Apache's proxy; a counter
is there under two of them, as its older clients of Prometheus wrote it and as the newer do (`_total`)."""

from collections import Counter
from dataclasses import dataclass, field

from ports.metrics.metric_help import head
from wire.generated.pulsar_api_pb2 import BaseCommand

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


REQUESTS = {
    BaseCommand.LOOKUP: "lookup",
    BaseCommand.PARTITIONED_METADATA: "partitions_metadata",
    BaseCommand.GET_TOPICS_OF_NAMESPACE: "get_topics_of_namespace",
    BaseCommand.GET_SCHEMA: "get_schema",
}
"""Commands that the proxy sends to brokers for clients, with their names in Apache's LookupProxyHandler."""


@dataclass(slots=True)
class Counts:
    """Since the start. A read of a socket is one op, as in Apache's: its messages are not counted."""

    new: int = 0
    rejected: int = 0
    requests: Counter[int] = field(default_factory=Counter)
    """Requests by type of command; `rejected_requests`, by type too, were refused because too many were under way."""
    rejected_requests: Counter[int] = field(default_factory=Counter)
    ops: int = 0
    bytes: int = 0
    http_requests: int = 0
    http_rejected: int = 0

    def forwarded(self, size: int) -> None:
        self.ops += 1
        self.bytes += size

    def http_request_rejected(self) -> None:
        """Counts a request above httpRequestsMaxPerSecond."""
        self.http_rejected += 1

    def text(self, connections: int, brokers: int) -> str:
        counters = {
            "new_connections": self.new,
            "rejected_connections": self.rejected,
            "binary_ops": self.ops,
            "binary_bytes": self.bytes,
            "http_requests": self.http_requests,
            "http_rejected_requests": self.http_rejected,
        }
        for kind, name in REQUESTS.items():
            counters |= {f"{name}_requests": self.requests[kind], f"rejected_{name}_requests": self.rejected_requests[kind]}
        samples = [("active_connections", "gauge", connections), ("known_brokers", "gauge", brokers)]
        samples += [(name + end, "counter", count) for name, count in counters.items() for end in ("", "_total")]
        return "".join(head(f"pulsar_proxy_{name}", kind) + f"pulsar_proxy_{name} {value}\n" for name, kind, value in samples)
