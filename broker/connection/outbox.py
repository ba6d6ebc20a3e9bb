"""What is written to one client: `ports.outbox`, which bookies' connections use too."""

from ports.outbox import BLOCKED_ANSWER_BYTES_MAX, FLUSH_BYTES, HIGH_WATER_BYTES, Outbox

__all__ = ["BLOCKED_ANSWER_BYTES_MAX", "FLUSH_BYTES", "HIGH_WATER_BYTES", "Outbox"]
