"""DiskUsage: how full a file system is. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes of the file system that holds a path."""

    total_bytes: int
    free_bytes: int
