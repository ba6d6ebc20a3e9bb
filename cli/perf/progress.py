"""Figures that are told while it runs, and at the end: lines as Apache's tool has them, a table, or JSON."""

import json
import sys
import time
from collections.abc import Callable

from cli.perf.latencies import Latencies

INTERVAL_SECONDS = 10.0


class Progress:
    """Counts messages; tells every interval. `what` is "produced" or "received"."""

    def __init__(self, what: str, write: Callable[[str], None], as_json: bool, interval_seconds: float = 0.0) -> None:
        self.total = self.total_bytes = 0
        self.latencies, self._warm_up = Latencies(), Latencies()
        self._what, self._write, self._as_json = what, write, as_json
        self._interval = interval_seconds or INTERVAL_SECONDS
        self._recent, self._recent_count, self._recent_bytes = Latencies(), 0, 0
        self.reconnected = self.resent = self.unanswered = self.failed = self.repeated = 0
        self.restart()

    def restart(self) -> None:
        """The time is counted from here on."""
        self.begun = self._told = time.monotonic()
        self._cpu = time.process_time()

    def add(self, messages: int, size_bytes: int, latency_ms: float, *, is_warm: bool = True) -> None:
        """Count messages; those of the warm-up count among the latencies of a run alone that has no others."""
        self.total += messages
        self.total_bytes += size_bytes
        self._recent_count += messages
        self._recent_bytes += size_bytes
        (self.latencies if is_warm else self._warm_up).add(latency_ms, messages)
        self._recent.add(latency_ms, messages)

    def tick(self) -> None:
        now = time.monotonic()
        passed = now - self._told
        if passed < self._interval:
            return
        rate, megabits = self._recent_count / passed, self._recent_bytes * 8 / 1e6 / passed
        speed = f"{rate:.3f} msg/s --- {megabits:.3f} Mbit/s"
        line = f"Throughput {self._what}: {self.total:8d} msg --- {speed} --- {self._recent.line()}"
        print(line, file=sys.stderr if self._as_json else sys.stdout, flush=True)
        self._recent, self._recent_count, self._recent_bytes, self._told = Latencies(), 0, 0, now

    def finish(self) -> None:
        if self.latencies.count == 0:
            self.latencies = self._warm_up
        seconds = max(1e-9, time.monotonic() - self.begun)
        rate, megabits = self.total / seconds, self.total_bytes * 8 / 1e6 / seconds
        cpu = (time.process_time() - self._cpu) * 1e6 / max(1, self.total)
        if self._as_json:
            figures = {
                "messages": self.total,
                "seconds": round(seconds, 3),
                "msg/s": round(rate, 3),
                "Mbit/s": round(megabits, 3),
                "clientCpuMicrosPerMessage": round(cpu, 3),
                "latencyMs": self.latencies.summary(),
            }
            self._write(json.dumps(figures | self._troubles()))
            return
        self._write(
            f"Aggregated throughput stats --- {self.total} records {self._what} --- {rate:.3f} msg/s --- {megabits:.3f} Mbit/s"
        )
        self._write(f"Aggregated latency stats --- {self.latencies.line()}")
        for key, value in self.latencies.summary().items():
            self._write(f"  {key:<10} {value:>12.3f} ms")
        self._write(f"  client CPU {cpu:>12.3f} us a message")
        troubles = {key: count for key, count in self._troubles().items() if count}
        if troubles:
            self._write(f"  {', '.join(f'{key}: {count}' for key, count in troubles.items())}")

    def _troubles(self) -> dict[str, int]:
        """Counts of what did not go smoothly. `resent`: messages that may be stored twice;
        `unanswered`: messages that were sent and have no receipt; `repeated`: entries that came again, and were counted once.
        """
        return {
            "reconnected": self.reconnected,
            "resent": self.resent,
            "unanswered": self.unanswered,
            "failed": self.failed,
            "repeated": self.repeated,
        }
