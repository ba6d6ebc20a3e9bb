"""Our bookie beside Apache's, in turn, in one run: `.venv/bin/python -m benchmarks.bookies [WORKLOAD ...] [--repetitions N]`.

Both on one ZooKeeper and one disk, each with 512 MB of heap or less, each acknowledging after fsync; the same raw client
(`raw_client.py`), version 2, one connection. A fresh bookie for each workload and repetition; Apache's gets the
same work once before, to be compiled. Prints a JSON line for each, then a table.
"""

import argparse
import json
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bookies.raw_client import RawBookieClient, add_frames, read_frames
from benchmarks.bookies.servers import ApacheBookie, OurBookie, Server, classpath_of_apache
from benchmarks.raw_client import process_use
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess
from wire.run import HEADER_BYTES_CRC32C

Row = dict[str, Any]
WINDOW = 2_000
KILOBYTE = 1024
READ_ANSWER_BYTES = 28 + HEADER_BYTES_CRC32C
"""Size of the answer to a successful read, without the payload."""
WARM_ENTRIES = 100_000


def adds(ledgers: int, entries: int) -> Callable[[Server], Row]:
    """1 KB entries, to one ledger after the other."""

    def run(server: Server) -> Row:
        server.start()
        client = RawBookieClient(server.port)
        if server.wants_warmth:
            client.ask_all(spread(10_000, ledgers, WARM_ENTRIES), WINDOW)
        frames = spread(1, ledgers, entries)
        row = measured(server, len(frames), lambda: client.ask_all(frames, WINDOW))
        client.close()
        return row

    return run


def spread(first_ledger: int, ledgers: int, entries: int) -> list[bytes]:
    """Entry 0 of each ledger, then entry 1 of each ..."""
    by_ledger = [add_frames(first_ledger + number, 0, entries // ledgers, KILOBYTE) for number in range(ledgers)]
    return [frame for together in zip(*by_ledger, strict=True) for frame in together]


def one_at_a_time(server: Server) -> Row:
    server.start()
    client = RawBookieClient(server.port)
    if server.wants_warmth:
        client.ask_all(spread(10_000, 1, WARM_ENTRIES), WINDOW)
        client.one_at_a_time(add_frames(10_001, 0, 3_000, KILOBYTE))
    frames = add_frames(1, 0, 3_000, KILOBYTE)
    latencies: list[float] = []
    row = measured(server, len(frames), lambda: latencies.extend(client.one_at_a_time(frames)))
    client.close()
    return row | {f"p{q}_ms": round(1000 * latencies[len(latencies) * q // 100], 3) for q in (50, 99)}


def reads(entries: int, reads_random: int) -> Callable[[Server], Row]:
    """Reads of entries on disk: the bookie was stopped and started again after the writes."""

    def run(server: Server) -> Row:
        server.start()
        client = RawBookieClient(server.port)
        for first in range(0, entries, 50_000):
            client.ask_all(add_frames(1, first, min(50_000, entries - first), KILOBYTE), WINDOW)
        client.close()
        server.stop()
        server.start()
        client = RawBookieClient(server.port)
        size = READ_ANSWER_BYTES + KILOBYTE
        anywhere = random.Random(1).choices(range(entries), k=reads_random)
        if server.wants_warmth:
            client.ask_all(read_frames(1, range(entries // 2)), 500, size)
            client.ask_all(read_frames(1, anywhere[: reads_random // 2]), 64, size)
        in_order, scattered = read_frames(1, range(entries)), read_frames(1, anywhere)
        row = measured(server, entries, lambda: client.ask_all(in_order, 500, size))
        other = measured(server, reads_random, lambda: client.ask_all(scattered, 64, size))
        client.close()
        return row | {f"random_{key}": value for key, value in other.items() if key != "resident_mb"}

    return run


def index(entries: int) -> Callable[[Server], Row]:
    """Bytes beside the entries themselves, per million entries of 100 bytes, written to 100 ledgers, after a clean stop."""

    def run(server: Server) -> Row:
        server.start()
        client = RawBookieClient(server.port)
        each = entries // 100
        for first in range(0, each, 1_000):
            blocks = [add_frames(1 + ledger, first, 1_000, 100) for ledger in range(100)]
            client.ask_all([frame for block in blocks for frame in block], WINDOW)
        client.close()
        server.stop()
        return {"entries": entries, "index_bytes_per_million": round(server.index_bytes() / entries * 1e6)}

    return run


def restart(megabytes: int) -> Callable[[Server], Row]:
    """Killed with `megabytes` of journal that no checkpoint covers; seconds until it answers a read of the last entry."""

    def run(server: Server) -> Row:
        server.start(flushes=False)
        client = RawBookieClient(server.port)
        entries = megabytes * 1_000_000 // (KILOBYTE + HEADER_BYTES_CRC32C)
        for first in range(0, entries, 50_000):
            client.ask_all(add_frames(1, first, min(50_000, entries - first), KILOBYTE), WINDOW)
        client.close()
        server.kill()
        began = perf_counter()
        server.start(flushes=False)
        ready = perf_counter() - began
        client = RawBookieClient(server.port)
        client.ask_all(read_frames(1, [entries - 1]), 1, READ_ANSWER_BYTES + KILOBYTE)
        use = process_use(server.pid)
        client.close()
        return {
            "journal_mb": megabytes,
            "seconds_to_ready": round(ready, 2),
            "seconds_to_read": round(perf_counter() - began, 2),
            "server_cpu_s": round(use.cpu_seconds, 2),
            "resident_mb": round(use.resident_mb, 1),
        }

    return run


def idle(server: Server) -> Row:
    began = perf_counter()
    server.start()
    ready = perf_counter() - began
    use = process_use(server.pid)
    return {
        "seconds_to_ready": round(ready, 2),
        "server_cpu_s": round(use.cpu_seconds, 2),
        "resident_mb": round(use.resident_mb, 1),
    }


def measured(server: Server, count: int, work: Callable[[], object]) -> Row:
    before, began = process_use(server.pid), perf_counter()
    work()
    seconds, after = perf_counter() - began, process_use(server.pid)
    return {
        "entries": count,
        "per_second": round(count / seconds),
        "server_cpu_s_per_million": round((after.cpu_seconds - before.cpu_seconds) / count * 1e6, 2),
        "resident_mb": round(after.resident_mb, 1),
    }


WORKLOADS: dict[str, Callable[[Server], Row]] = {
    "adds to one ledger": adds(1, 300_000),
    "adds to 1,000 ledgers": adds(1_000, 300_000),
    "adds one at a time": one_at_a_time,
    "reads": reads(300_000, 20_000),
    "index": index(1_000_000),
    "restart": restart(1_000),
    "idle": idle,
}


def run_all(names: Sequence[str], repetitions: int, scratch: Path) -> list[Row]:
    rows = []
    with ZooKeeperProcess(scratch / "zookeeper").start() as zookeeper:
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        classpath = classpath_of_apache(scratch)
        make_layout(scratch / "layout", uri)
        for name in names:
            for repetition in range(repetitions):
                place = scratch / f"{repetition}"
                for server in (ApacheBookie(place / "apache", uri, classpath), OurBookie(place / "ours", uri)):
                    with server:
                        row = {"workload": name, "bookie": server.name} | WORKLOADS[name](server)
                    server.forget()
                    print(json.dumps(row), flush=True)
                    rows.append(row)
    return rows


def make_layout(directory: Path, uri: str) -> None:
    """Makes the layout, which our bookie makes at its first start and Apache's expects."""
    with OurBookie(directory, uri) as server:
        server.start()


def table(rows: Sequence[Row]) -> list[str]:
    """The mean of the repetitions of each figure, Apache's, ours, ours by Apache's."""
    lines = ["| workload | figure | Apache | ours | ours / Apache |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(row["workload"] for row in rows):
        for figure in dict.fromkeys(key for row in rows if row["workload"] == name for key in row):
            if figure in ("workload", "bookie", "entries", "random_entries", "journal_mb"):
                continue
            apache, ours = (
                statistics.mean(row[figure] for row in rows if row["workload"] == name and row["bookie"] == bookie)
                for bookie in (ApacheBookie.name, OurBookie.name)
            )
            lines.append(f"| {name} | {figure} | {apache:,.6g} | {ours:,.6g} | {ours / max(apache, 1e-9):.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=[*WORKLOADS], help=f"of: {', '.join(WORKLOADS)}; none: all")
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--directory", help="on the disk that is to be measured; default: the system's temporary directory")
    options = parser.parse_args()
    unknown = [name for name in options.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload is called {', '.join(unknown)}: choose from {', '.join(WORKLOADS)}")
    with tempfile.TemporaryDirectory(prefix="interpulse-bookies-", dir=options.directory) as scratch:
        print("\n".join(table(run_all(options.workloads, options.repetitions, Path(scratch)))))


if __name__ == "__main__":
    main()
