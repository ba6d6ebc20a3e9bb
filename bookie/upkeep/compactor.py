"""Compactor: when entry logs are compacted, and which.

Minor: often, logs that are nearly dead. Major: rarely, logs that are partly dead. The names, the numbers and what suspends each
are Apache's (GarbageCollectorThread, LedgerDirsMonitor): major ones rest while a disk is over diskUsageWarnThreshold, both
while one is over diskUsageThreshold.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from bookie.disk_space.disk_watch import Room
from bookie.settings import BookieSettings
from bookie.storage.storage import LedgerStorage
from bookie.upkeep.compaction import Compaction
from bookie.upkeep.compaction_plan import choose_logs
from ports.clock import Clock
from ports.logs import line

log = logging.getLogger("bookie.compaction")


@dataclass(frozen=True, slots=True)
class Kind:
    """Minor or major."""

    name: str
    threshold: float
    interval_seconds: int
    room: Room
    """Least room that this kind of compaction needs."""

    @property
    def enabled(self) -> bool:
        return self.threshold > 0 and self.interval_seconds > 0


@dataclass(slots=True)
class CompactionCounts:
    """Since the start, for metrics."""

    runs: int = 0
    failures: int = 0
    logs_compacted: int = 0
    bytes_copied: int = 0
    bytes_reclaimed: int = 0
    """Bytes of compacted logs, which had live entries; the next field counts logs that had none."""
    bytes_of_dead_logs: int = 0


class Compactor:
    """Compactor of one ledger directory. `run_if_due` from time to time, one call at a time."""

    def __init__(
        self,
        storage: LedgerStorage,
        settings: BookieSettings,
        room: Callable[[], Room],
        time: Callable[[], float],
        clock: Clock,
        started_at: float,
    ) -> None:
        self._storage = storage
        self._log_bytes_max = settings.log_size_limit
        self._compaction = Compaction(storage, settings.compaction_rate_by_bytes)
        self._room = room
        self._time = time
        self._clock = clock
        always = settings.is_force_gc_allow_when_no_space
        major_room, minor_room = (Room.NONE, Room.NONE) if always else (Room.ENOUGH, Room.LITTLE)
        self._kinds = (
            Kind("major", settings.major_compaction_threshold, settings.major_compaction_interval, major_room),
            Kind("minor", settings.minor_compaction_threshold, settings.minor_compaction_interval, minor_room),
        )
        self._last = {kind.name: started_at for kind in self._kinds}
        self._counts_of = dict.fromkeys(self._last, 0)
        self._ran_at_ms = dict.fromkeys(self._last, 0)
        self._running = ""
        self.suspended: set[str] = set()
        """Kinds that an operator stopped."""
        self.counts = CompactionCounts()

    async def run_if_due(self) -> None:
        """A major one, or else a minor one, when its interval is over and there is room."""
        for kind in self._kinds:
            if kind.enabled and self._time() - self._last[kind.name] >= kind.interval_seconds and self._may_run(kind):
                await self.run(kind.name)
                return

    async def run(self, name: str) -> int:
        """Compact all logs below the threshold of "minor" or "major"; how many went. An error ends it, and is logged."""
        kind = next(kind for kind in self._kinds if kind.name == name)
        self._last.update({other.name: self._time() for other in self._kinds if other.threshold <= kind.threshold})
        self.counts.runs += 1
        self._counts_of[name] += 1
        self._ran_at_ms[name] = self._clock.now_ms()
        self._running = name
        gone = 0
        try:
            while self._may_run(kind) and (chosen := self._choose(kind)):
                uses = [use for use in self._storage.uses() if use.log_id in chosen]
                dead = sum(use.log_bytes for use in uses if not use.live_bytes)
                copied = await self._compaction.compact(chosen)
                self.counts.bytes_of_dead_logs += dead
                self.counts.bytes_reclaimed += sum(use.log_bytes for use in uses) - dead - copied
                gone += len(chosen)
                self.counts.logs_compacted += len(chosen)
                self.counts.bytes_copied += copied
                log.info(line("entry logs compacted", kind=name, logs=len(chosen), bytes=copied))
        except OSError as error:
            self.counts.failures += 1
            log.warning(line("compaction gave up", kind=name, error=error))
        finally:
            self._running = ""
        return gone

    def status(self) -> dict[str, object]:
        """Status under the names of Apache's GarbageCollectionStatus. A time of 0: not since the start."""
        return {
            "forceCompacting": False,
            **{f"{name}Compacting": self._running == name for name in self._last},
            **{f"last{name.title()}CompactionTime": at_ms for name, at_ms in self._ran_at_ms.items()},
            **{f"{name}CompactionCounter": count for name, count in self._counts_of.items()},
        }

    def _choose(self, kind: Kind) -> list[int]:
        uses = self._storage.uses()
        return choose_logs(uses, kind.threshold, self._log_bytes_max)

    def _may_run(self, kind: Kind) -> bool:
        return kind.name not in self.suspended and self._room() >= kind.room
