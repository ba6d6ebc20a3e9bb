"""CPU seconds per million messages of each process of a cluster: `python -m benchmarks.cluster.costs --load LOAD_TOOL`.

Three bookies and a broker of ours (E3 Qw3 Qa2) with a ZooKeeper, everything on this machine and its one disk. Messages travel
alone: one topic at a rate, then a thousand topics at the same rate in all, then flat out; published, delivered, acknowledged
one at a time. And what the processes cost while nothing happens, in CPU seconds per minute. To compare two states of the code
run it in a checkout of each, in turn. `--hold` keeps the cluster, for a profiler, and prints its processes.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.cluster.beside_apache import IDLE_SECONDS, Load, resident_mb, value_of
from benchmarks.cluster.members import Members, our_cluster

TICKS = os.sysconf("SC_CLK_TCK")
QUANTILES = (
    (("publish", "p50_ms"), "publish p50 ms"),
    (("publish", "p99_ms"), "p99"),
    (("e2e", "p50_ms"), "end to end p50 ms"),
    (("e2e", "p99_ms"), "p99"),
)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def costs(members: Members) -> dict[str, float]:
    return {name: cpu_seconds(pid) for name, pid in members.processes.items()}


def since(before: dict[str, float], members: Members) -> dict[str, float]:
    return {name: now - before[name] for name, now in costs(members).items()}


def split(spent: dict[str, float], total: float, form: str = "{:.0f}") -> str:
    """Shares of `total` in proportion to the time that each process spent; bookies together."""
    whole = sum(spent.values()) or 1.0
    bookies = sum(seconds for name, seconds in spent.items() if name.startswith("bookie"))
    parts = {"broker": spent["broker"], "bookies": bookies, "ZooKeeper": spent["ZooKeeper"]}
    return ", ".join(f"{name} {form.format(seconds / whole * total)}" for name, seconds in parts.items())


def tell_idle(members: Members, seconds: float) -> None:
    before = costs(members)
    time.sleep(seconds)
    spent = since(before, members)
    each = {name: used * 60 / seconds for name, used in spent.items()}
    print(
        f"| idle, CPU s per minute | | {sum(each.values()):.2f} | {split(each, sum(each.values()), '{:.2f}')} | |", flush=True
    )


def tell(load: Load, members: Members, what: str, *words: str) -> None:
    before = costs(members)
    row: dict[str, Any] = load.run(*words)
    spent = since(before, members)
    per_million = row["server_cpu_s_per_M"]
    quantiles = "; ".join(f"{name} {value_of(row, path, '{:.2f}')}" for path, name in QUANTILES)
    trouble = f" ERRORS {row.get('errors')} {row.get('error', '')}" if row.get("errors") or row.get("error") else ""
    rate = f"{row['msgs_s']:,.0f}"
    print(f"| {what} | {rate} | {per_million:.0f} | {split(spent, per_million)} | {quantiles}{trouble} |", flush=True)


def work(members: Members, options: argparse.Namespace) -> None:
    load = Load(options.load, members)
    timed = ["-duration", f"{options.seconds}s", "-warmup", "3s"]
    rate = ["-rate", str(options.rate)]
    many = ["many", "-topics", str(options.topics), "-size", "100", "-type", "shared", *timed]
    load.run("e2e", *rate, "-duration", "4s", "-warmup", "1s")
    print("| work | per second | CPU s per million | of these | latencies |\n| --- | --- | --- | --- | --- |", flush=True)
    tell_idle(members, options.seconds)
    for _ in range(options.repeats):
        if "e" in options.works:
            tell(load, members, f"one topic, {options.rate}/s, 1 KB", "e2e", *rate, *timed)
        if "m" in options.works:
            tell(load, members, f"{options.topics} topics, {options.rate}/s in all, 100 B", *many, *rate)
        if "f" in options.works:
            tell(load, members, f"{options.topics} topics flat out, 100 B", *many)
    if options.topics > 1 and ("m" in options.works or "f" in options.works):
        tell_idle(members, options.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=Path, required=True, help="the load tool, built")
    parser.add_argument("--seconds", type=float, default=10, help="of each measured time")
    parser.add_argument("--rate", type=int, default=1000, help="messages a second")
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--works", default="emf", help="e: one topic; m: many at the rate; f: many flat out")
    parser.add_argument("--hold", action="store_true", help="do nothing until a line comes on standard input")
    options = parser.parse_args()
    if not options.load.is_file():
        parser.error(f"--load {options.load}: there is no such file; build the load tool first")
    with tempfile.TemporaryDirectory(prefix="interpulse-cluster-") as scratch, our_cluster(Path(scratch)) as members:
        if options.hold:
            print(json.dumps({"url": members.broker_url, **members.processes, "directory": scratch}), flush=True)
            sys.stdin.readline()
            return
        time.sleep(IDLE_SECONDS)
        work(members, options)
        sizes = ", ".join(f"{name} {resident_mb(pid):.0f}" for name, pid in members.processes.items())
        print(f"resident MB at the end: {sizes}", flush=True)


if __name__ == "__main__":
    main()
