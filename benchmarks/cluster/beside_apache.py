"""Three bookies and a broker of ours, then Apache's of the same shape: `python -m benchmarks.cluster.beside_apache`.

E3 Qw3 Qa2, one ZooKeeper, everything on this machine and its one disk, one cluster after the other. Printed for each: memory of
each process idle; unbatched and batched publish of 1 KB, end to end at 1,000 messages a second, catch-up: rate, CPU seconds per
million messages over all processes of the cluster (ZooKeeper, bookies, broker), latencies. Batches are made by Apache's client
for Go, which is the limit there. The load tool (`--load`) prints one JSON line a run. A rate of a busy machine says nothing.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from benchmarks.cluster.members import Members, apaches_cluster, our_cluster

CLUSTERS: dict[str, Callable[[Path], AbstractContextManager[Members]]] = {"ours": our_cluster, "apache": apaches_cluster}
TOPIC = "persistent://public/default/beside"
IDLE_SECONDS = 8.0
"""After the start, before memory is looked at."""
RUN_SECONDS_MAX = 120.0
COLUMNS = (
    ("msgs/s", ("msgs_s",), "{:,.0f}"),
    ("CPU s per 1M", ("server_cpu_s_per_M",), "{:.1f}"),
    ("server cores", ("server_cores",), "{:.2f}"),
    ("publish p50 ms", ("publish", "p50_ms"), "{:.1f}"),
    ("p99 ms", ("publish", "p99_ms"), "{:.1f}"),
    ("e2e p50 ms", ("e2e", "p50_ms"), "{:.1f}"),
    ("p99 ms", ("e2e", "p99_ms"), "{:.1f}"),
)


class Load:
    """Runs of the load tool against one cluster."""

    def __init__(self, tool: Path, members: Members) -> None:
        self._tool, self._members = tool, members
        self._topics = 0

    def run(self, command: str, *words: str, topic: str = "") -> dict[str, Any]:
        """Row of a command; on a fresh topic unless one is named."""
        self._topics += 1
        where = ["-url", self._members.broker_url, "-pid", self._members.pids, "-topic", topic or f"{TOPIC}-{self._topics}"]
        done = subprocess.run(
            [str(self._tool), command, *words, *where], capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False
        )
        if done.returncode or not done.stdout:
            raise AssertionError(f"{command} at {self._members.name}: {done.stderr[-2000:]}")
        row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return row


def value_of(row: dict[str, Any], path: Sequence[str], form: str) -> str:
    found: Any = row
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return form.format(found) if isinstance(found, int | float) else "-"


def tell(members: Members, what: str, row: dict[str, Any]) -> None:
    cells = [value_of(row, path, form) for _, path, form in COLUMNS]
    print("|", " | ".join((members.name, what, *cells, f"{os.getloadavg()[0]:.1f}")), "|", flush=True)


def resident_mb(pid: int) -> float:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def tell_memory(members: Members, when: str) -> None:
    found = {**members.processes, **members.others}
    sizes = ", ".join(f"{name} {resident_mb(pid):.0f}" for name, pid in found.items())
    print(f"{members.name}, resident MB {when}: {sizes}", flush=True)


def work(members: Members, options: argparse.Namespace) -> None:
    load = Load(options.load, members)
    timed = ["-duration", f"{options.seconds}s", "-warmup", "2s"]
    load.run("rawproduce", "-duration", f"{options.warm}s", "-warmup", "0s")
    load.run("produce", "-batch", "-duration", f"{options.warm}s", "-warmup", "0s")
    for _ in range(options.repeats):
        tell(members, "publish 1 KB, unbatched", load.run("rawproduce", *timed))
        tell(members, "publish 1 KB, batched", load.run("produce", "-batch", *timed))
    tell(members, "end to end 1 KB, 1,000/s", load.run("e2e", "-rate", "1000", *timed))
    for batch, count in (((), options.count), (("-batch",), 5 * options.count)):
        topic = f"{TOPIC}-filled{''.join(batch)}"
        load.run("rawconsume", "-sub", "keep", "-n", "0", topic=topic)  # Apache deletes topics that nobody subscribed to
        load.run("produce", *batch, "-n", str(count), topic=topic)
        for turn in range(options.repeats):
            row = load.run("rawconsume", "-sub", f"s{turn}", "-ack", "none", "-n", str(count), topic=topic)
            tell(members, f"catch-up of {count:,}, {'batched' if batch else 'unbatched'}", row)


def run(name: str, options: argparse.Namespace) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="interpulse-cluster-") as scratch, CLUSTERS[name](Path(scratch)) as members:
        time.sleep(IDLE_SECONDS)
        tell_memory(members, "idle")
        work(members, options)
        tell_memory(members, "after the work")
    print(f"{name}: {time.monotonic() - began:.0f} s with its start", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=Path, required=True, help="the load tool, built")
    parser.add_argument("--clusters", default="ours,apache", help="in this order; may be named again")
    parser.add_argument("--seconds", type=float, default=10, help="of each publish")
    parser.add_argument("--warm", type=float, default=15, help="seconds of each kind of publish beforehand")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--count", type=int, default=200_000, help="messages of the catch-up; five times as many batched")
    options = parser.parse_args()
    if not options.load.is_file():
        parser.error(f"--load {options.load}: there is no such file; build the load tool first")
    print(f"{os.cpu_count()} CPUs for clients and servers, load average {os.getloadavg()[0]:.1f}")
    print("| cluster | work |", " | ".join(name for name, _, _ in COLUMNS), "| load average |")
    print("| --- " * (len(COLUMNS) + 3) + "|")
    for name in options.clusters.split(","):
        run(name, options)


if __name__ == "__main__":
    main()
