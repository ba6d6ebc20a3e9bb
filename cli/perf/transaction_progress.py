"""Figures that `pulsar-perf transaction` tells while it runs and at the end: transactions, and latencies of sends and acks.

Lines as Apache's tool has them, a table, or JSON. Counted by several threads, told by one.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping

from cli.perf.latencies import Latencies
from cli.perf.progress import INTERVAL_SECONDS

KINDS = ("send", "ack")


class TransactionProgress:
    """`has_transactions`: else what is counted is called a task, as Apache calls it."""

    def __init__(self, write: Callable[[str], None], as_json: bool, interval_seconds: float, has_transactions: bool) -> None:
        self._write, self._as_json = write, as_json
        self._interval = interval_seconds or INTERVAL_SECONDS
        self._what = "transaction" if has_transactions else "task"
        self._lock = threading.Lock()
        self._count = self._recent_count = self._lost = 0
        self.reconnected = 0
        self._all, self._recent = _latencies(), _latencies()
        self._begun = self._told = time.monotonic()
        self._cpu = time.process_time()

    def sent(self, milliseconds: float) -> None:
        self._add("send", milliseconds)

    def acked(self, milliseconds: float) -> None:
        self._add("ack", milliseconds)

    def _add(self, kind: str, milliseconds: float) -> None:
        with self._lock:
            self._all[kind].add(milliseconds)
            self._recent[kind].add(milliseconds)

    def ended(self) -> None:
        with self._lock:
            self._count += 1
            self._recent_count += 1

    @property
    def count(self) -> int:
        return self._count

    def lost(self) -> None:
        """One was given up, because its connection broke: whether it was committed is not known."""
        with self._lock:
            self._lost += 1

    def tick(self) -> None:
        now = time.monotonic()
        passed = now - self._told
        if passed < self._interval:
            return
        with self._lock:
            recent, count, self._recent, self._recent_count = self._recent, self._recent_count, _latencies(), 0
        self._told = now
        text = f"Throughput {self._what}: {self._count} {self._what} executes --- {count / passed:.3f} {self._what}/s"
        latencies = " --- ".join(f"{kind} {recent[kind].line()}" for kind in KINDS)
        print(f"{text}  --- {latencies}", file=sys.stderr if self._as_json else sys.stdout, flush=True)

    def finish(self) -> None:
        seconds = max(1e-9, time.monotonic() - self._begun)
        rate, cpu = self._count / seconds, (time.process_time() - self._cpu) * 1e6 / max(1, self._count)
        sent, acked = (self._all[kind].count for kind in KINDS)
        if self._as_json:
            figures = {f"{self._what}s": self._count, "seconds": round(seconds, 3), f"{self._what}/s": round(rate, 3)}
            latencies = {f"{kind}LatencyMs": self._all[kind].summary() for kind in KINDS}
            counts = {"messagesSent": sent, "messagesAcked": acked, "clientCpuMicros": round(cpu, 3), "lost": self._lost}
            self._write(json.dumps({**figures, **counts, **latencies}))
            return
        self._write(
            f"Aggregated throughput stats --- {self._count} {self._what} executed --- {sent} message sent --- {acked} message"
            f" acked --- {rate:.3f} {self._what}/s"
        )
        for kind in KINDS:
            self._write(f"Aggregated {kind} latency stats --- {self._all[kind].line()}")
        for row in table({kind: self._all[kind].summary() for kind in KINDS}):
            self._write(row)
        self._write(f"  client CPU {cpu:>12.3f} us a {self._what}")
        if self._lost:
            self._write(f"  given up as a connection broke: {self._lost}")


def table(columns: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Percentiles by row, what took so long by column; milliseconds."""
    names = list(columns)
    head = f"  {'':<10} " + " ".join(f"{name:>12}" for name in names)
    keys = columns[names[0]]
    return [head, *(f"  {key:<10} " + " ".join(f"{columns[name][key]:>12.3f}" for name in names) + " ms" for key in keys)]


def _latencies() -> dict[str, Latencies]:
    return {kind: Latencies() for kind in KINDS}
