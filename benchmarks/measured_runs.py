"""Seconds on the wall, and of CPU of every process that took part, for work done a few times: JSON lines, then a table."""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Run:
    """`cpu_seconds` of Spark with its workers of Python, `server_cpu_seconds` of the broker that it talked to."""

    what: str
    rows: int
    seconds: float
    cpu_seconds: float
    server_cpu_seconds: float


def measured(what: str, rows: int, runs: int, server: int | None, work: Callable[[], None]) -> Run:
    """The run with the median time, each printed; one more before them, which pays for compilers and caches, does not count."""
    work()
    found = sorted((_once(what, rows, server, work) for _ in range(runs)), key=lambda run: run.seconds)
    return found[(len(found) - 1) // 2]


def _once(what: str, rows: int, server: int | None, work: Callable[[], None]) -> Run:
    wall, of_all, of_server = time.monotonic(), cpu_seconds(os.getpid()), _of(server)
    work()
    seconds, server_used = time.monotonic() - wall, _of(server) - of_server
    used = cpu_seconds(os.getpid()) - of_all
    is_ours = server is not None and server in descendants(os.getpid())
    run = Run(what, rows, round(seconds, 2), round(used - (server_used if is_ours else 0), 2), round(server_used, 2))
    print(json.dumps({**asdict(run), "rows_per_second": round(rows / seconds)}), flush=True)
    return run


def _of(server: int | None) -> float:
    return 0.0 if server is None else cpu_seconds(server)


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and of all that it started, those that have ended too."""
    return sum(_ticks(each) for each in (pid, *descendants(pid))) / _TICKS


def descendants(pid: int) -> Iterator[int]:
    """All that it started, and what those did."""
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = thread.read_text().split()
        except OSError:
            continue  # it has ended meanwhile
        for each in map(int, found):
            yield each
            yield from descendants(each)


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0  # its parent counts it now
    return sum(int(fields[at]) for at in (11, 12, 13, 14))


def table(runs: list[Run]) -> str:
    """The runs as a table in Markdown."""
    lines = [
        "| | rows/s | seconds | CPU s, Spark | CPU s, server | CPU s a million rows |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for run in runs:
        used = run.cpu_seconds + run.server_cpu_seconds
        per_million = used / run.rows * 1_000_000
        numbers = f"{run.rows / run.seconds:,.0f} | {run.seconds:.2f} | {run.cpu_seconds:.1f} | {run.server_cpu_seconds:.1f}"
        lines.append(f"| {run.what} | {numbers} | {per_million:.2f} |")
    return "\n".join(lines)
