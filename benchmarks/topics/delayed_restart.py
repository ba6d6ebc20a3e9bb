"""Time until a server has its waiting messages again after kill -9: `.venv/bin/python -m benchmarks.topics.delayed_restart`.

`--messages` with random times an hour and more ahead, and after them `--due` that are due: when those have come, everything
before them was read.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.raw_client import RawClient, is_kind, process_use, single_frame
from tests.clients.server_process import Ready, ServerProcess
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSubscribe

NAME = "public/default/waits"
TOPIC = f"persistent://{NAME}"
FRAMES = 2_000
"""Different times; they are sent again and again."""
WINDOW = 5_000
HOUR_MS = 3_600_000
SECONDS_MAX = 300.0


def publish(ready: Ready, count: int, due: int) -> None:
    rng, now_ms = random.Random(1), time.time_ns() // 1_000_000
    client = RawClient(ready.broker_url)
    client.producer(TOPIC)
    frames = [single_frame(100, now_ms + HOUR_MS + rng.randrange(10 * HOUR_MS)) for _ in range(FRAMES)]
    client.publish_all(frames, -(-count // FRAMES), WINDOW)
    client.publish_all([single_frame(100, now_ms + 1)] * due, 1, WINDOW)
    client.close()


def waiting(ready: Ready) -> int:
    with urlopen(f"{ready.web_url}/admin/v2/persistent/{NAME}/stats", timeout=30) as answer:
        return int(json.load(answer)["subscriptions"]["s"]["msgDelayed"])


def told(ready: Ready, count: int, began: float) -> Iterator[tuple[float, int]]:
    """Seconds since the beginning and how many wait, until all do."""
    known = 0
    while known < count and time.perf_counter() - began < SECONDS_MAX:
        known = waiting(ready)
        yield time.perf_counter() - began, known
        time.sleep(0.1)


def measure(count: int, due: int) -> dict[str, Any]:
    count = -(-count // FRAMES) * FRAMES
    with tempfile.TemporaryDirectory(prefix="interpulse-benchmark-") as scratch, ServerProcess(Path(scratch)) as server:
        ready = server.start()
        RawClient(ready.broker_url).subscribe(TOPIC, "s", CommandSubscribe.Shared)
        before = process_use(ready.pid).resident_mb
        publish(ready, count, due)
        server.kill()
        ready = server.start()
        start, began = process_use(ready.pid), time.perf_counter()
        client = RawClient(ready.broker_url)
        client.subscribe(TOPIC, "s", CommandSubscribe.Shared)
        client.flow(2 * due + 1000)
        largest = seconds = 0.0
        for after, _ in told(ready, count, began):
            seconds, largest = after, max(largest, process_use(ready.pid).resident_mb)
        came = 0
        while came < due:
            came += sum(1 for data in client.frames() if is_kind(data, BaseCommand.MESSAGE))
        cpu = process_use(ready.pid).cpu_seconds - start.cpu_seconds
    return {
        "messages": count,
        "seconds_until_all_are_known": round(seconds, 2),
        "server_cpu_us_per_message": round(cpu / count * 1e6, 2),
        "resident_mb_empty": round(before, 1),
        "resident_mb_largest": round(largest, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--due", type=int, default=500)
    options = parser.parse_args()
    print(json.dumps(measure(options.messages, options.due)), flush=True)


if __name__ == "__main__":
    main()
