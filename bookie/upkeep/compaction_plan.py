"""Compaction plan: entry logs that are worth writing anew. Pure.

A log goes when it holds nothing that can be read; one that holds little is copied first, so that the rest of it is given back
(GarbageCollectorThread.doCompactEntryLogs). The log that is written now and those that could not be read are never candidates.
"""

from collections.abc import Iterable
from dataclasses import dataclass

DEAD_BYTES_MIN = 16 * 1024
"""Worth a copy: more than a log that was just compacted has beside its blocks, so that none is copied for ever."""


@dataclass(frozen=True, slots=True)
class LogUse:
    """Live part of a log: the bytes of the blocks that hold at least one entry that can be read."""

    log_id: int
    log_bytes: int
    live_bytes: int

    @property
    def live_share(self) -> float:
        return self.live_bytes / max(1, self.log_bytes)


def choose_logs(uses: Iterable[LogUse], threshold: float, bytes_max: int) -> list[int]:
    """Logs to copy into one: those less alive than `threshold`, the deadest first, as many as fit; in the order of `uses`."""
    candidates = [use for use in uses if use.live_share < threshold and use.log_bytes - use.live_bytes >= DEAD_BYTES_MIN]
    chosen: set[int] = set()
    size = 0
    for use in sorted(candidates, key=lambda use: (use.live_share, use.log_id)):
        if chosen and size + use.live_bytes > bytes_max:
            break
        chosen.add(use.log_id)
        size += use.live_bytes
    return [use.log_id for use in candidates if use.log_id in chosen]
