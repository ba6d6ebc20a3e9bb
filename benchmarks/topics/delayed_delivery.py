#!/usr/bin/env python3
"""Lateness of delayed messages, and the costs of waiting: `.venv/bin/python benchmarks/topics/delayed_delivery.py`.

Over the wire: `--messages` messages that are due within `--seconds`, on one Shared subscription, of a server of our own, or of
the one at `--url` (Apache's). In process: `--tracked` entries with delays of up to `--spread` seconds in the tracker, and what
the process grew by. Python's client has to keep up: of a busy machine the figures say more about the machine.
"""

import argparse
import gc
import json
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import pulsar  # noqa: E402

from benchmarks.raw_client import process_use  # noqa: E402
from broker.dispatchers.delays.delays import Delays  # noqa: E402

PAGE = 4096
ENTRIES_PER_LEDGER = 50_000


def resident_bytes() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * PAGE


def tracked(count: int, spread_seconds: int) -> dict[str, Any]:
    """Random delays: the worst case for anything that relies on neighbours being due together."""
    delays, rng, now_ms = Delays(100), random.Random(1), 1_700_000_000_000
    indexes = array("I", range(100))
    gc.collect()
    before, began = resident_bytes(), time.perf_counter()
    for first in range(0, count, 100):
        times = array("q", [now_ms + int(rng.random() * spread_seconds * 1000) + 1 for _ in indexes])
        delays.add(first // ENTRIES_PER_LEDGER, first % ENTRIES_PER_LEDGER, times, indexes, now_ms)
    return {
        "entries": len(delays),
        "spread_seconds": spread_seconds,
        "grown_mb": round((resident_bytes() - before) / 1e6, 1),
        "microseconds_per_entry": round((time.perf_counter() - began) / count * 1e6, 2),
    }


@contextmanager
def server(url: str | None, pid: int | None) -> Iterator[tuple[str, int | None]]:
    if url is not None:
        yield url, pid
        return
    with tempfile.TemporaryDirectory() as directory:
        ready = pathlib.Path(directory) / "ready.json"
        command = [str(ROOT / "bin" / "pulsar"), "standalone", "--data-dir", f"{directory}/data", "--json-ready", str(ready)]
        sets = ("brokerServicePort=0", "webServicePort=0", "isDelayedDeliveryDeliverAtTimeStrict=true")
        with subprocess.Popen([*command, *(word for each in sets for word in ("--set", each))]) as process:
            try:
                while not ready.exists() and process.poll() is None:
                    time.sleep(0.1)
                told = json.loads(ready.read_text())
                yield told["brokerServiceUrl"], told["pid"]
            finally:
                process.send_signal(signal.SIGTERM)


def over_the_wire(url: str, pid: int | None, count: int, seconds: float) -> dict[str, Any]:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    topic = f"persistent://public/default/delayed-{time.time_ns()}"
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared, receiver_queue_size=10_000)
    producer = client.create_producer(topic, block_if_queue_full=True, max_pending_messages=10_000)
    rng, began = random.Random(1), time.perf_counter()
    start_ms = time.time_ns() // 1_000_000 + 1000 * max(5, count // 2000)  # published before the first is due
    for _ in range(count):
        at_ms = start_ms + int(rng.random() * seconds * 1000)
        producer.send_async(str(at_ms).encode(), lambda result, message_id: None, deliver_at=at_ms)
    producer.flush()
    published = time.perf_counter() - began
    while time.time_ns() // 1_000_000 < start_ms - 500:
        time.sleep(0.1)
    print("draining", file=sys.stderr)
    before = None if pid is None else process_use(pid)
    late = sorted(_lateness(consumer) for _ in range(count))
    after = None if pid is None else process_use(pid)
    client.close()
    used = {}
    if before is not None and after is not None:
        used = {
            "server_cpu_us_per_message": round((after.cpu_seconds - before.cpu_seconds) / count * 1e6, 1),
            "server_resident_mb": round(after.resident_mb, 1),
        }
    return {
        **used,
        "messages": count,
        "due_within_seconds": seconds,
        "published_per_second": round(count / published),
        "earliest_ms": round(late[0], 1),
        "late_ms_p50": round(statistics.median(late), 1),
        "late_ms_p99": round(late[count * 99 // 100], 1),
        "late_ms_p999": round(late[count * 999 // 1000], 1),
        "late_ms_worst": round(late[-1], 1),
    }


def _lateness(consumer: Any) -> float:
    message = consumer.receive(timeout_millis=600_000)
    late = time.time_ns() / 1e6 - int(message.data())
    consumer.acknowledge(message)
    return late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="of a server that runs, Apache's for one; otherwise one of ours is started")
    parser.add_argument("--pid", type=int, help="of that server, for its CPU time and memory")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--tracked", type=int, default=10_000_000)
    parser.add_argument("--spread", type=int, default=3600)
    options = parser.parse_args()
    if options.tracked and options.url is None:
        print(json.dumps({"tracker": tracked(options.tracked, options.spread)}), flush=True)
    if options.messages:
        with server(options.url, options.pid) as (url, pid):
            print(json.dumps({"wire": over_the_wire(url, pid, options.messages, options.seconds)}), flush=True)


if __name__ == "__main__":
    main()
