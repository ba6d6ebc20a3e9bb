"""Where a connection's socket reads go: `ports.read_buffer`, which bookies' connections use too."""

from ports.read_buffer import KEPT_BYTES_MAX, READ_BYTES, ReadBuffer, SharedRoom

__all__ = ["KEPT_BYTES_MAX", "READ_BYTES", "ReadBuffer", "SharedRoom"]
