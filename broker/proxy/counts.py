"""Counts: what a proxy has done, and its text for Prometheus. Names are those of Apache's proxy."""

from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Counts:
    """Since the start. A read of a socket is one op, as in Apache's: nobody looks for the messages in it."""

    new: int = 0
    rejected: int = 0
    lookups: int = 0
    ops: int = 0
    bytes: int = 0
    http_requests: int = 0

    def forwarded(self, size: int) -> None:
        self.ops += 1
        self.bytes += size

    def text(self, connections: int, brokers: int) -> str:
        samples = (
            ("pulsar_proxy_active_connections", "gauge", connections),
            ("pulsar_proxy_new_connections", "counter", self.new),
            ("pulsar_proxy_rejected_connections", "counter", self.rejected),
            ("pulsar_proxy_lookup_requests", "counter", self.lookups),
            ("pulsar_proxy_binary_ops", "counter", self.ops),
            ("pulsar_proxy_binary_bytes", "counter", self.bytes),
            ("pulsar_proxy_http_requests", "counter", self.http_requests),
            ("pulsar_proxy_known_brokers", "gauge", brokers),
        )
        return "".join(f"# TYPE {name} {kind}\n{name} {value}\n" for name, kind, value in samples)
