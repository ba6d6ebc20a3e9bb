"""Apache's Python client, the one for C++, as a load: `python -m benchmarks.real_loads.python_client -url URL -pid PID ...`.

One producer flat out in batches and one consumer, in two threads with a client each. Prints a JSON row as the other tools do.
"""

import argparse
import json
import threading
import time
from typing import Any

import pulsar

from benchmarks.raw_client import process_use
from tests.clients.python_client import quiet_client

RECEIVE_MS = 200
PENDING = 1000


class Consumption:
    """Messages that one consumer got while it counted, in a thread of its own."""

    def __init__(self, url: str, topic: str) -> None:
        self._client = quiet_client(url)
        self._consumer = self._client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
        self._ends = threading.Event()
        self.counts = False
        self.waits: list[float] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                message = self._consumer.receive(timeout_millis=RECEIVE_MS)
            except pulsar.Timeout:
                continue
            if self.counts:
                self.waits.append(time.time() - int.from_bytes(message.data()[:8], "big") / 1e9)
            self._consumer.acknowledge(message)

    def end(self) -> None:
        self._ends.set()
        self._thread.join()
        self._client.close()


def publish_until(end: float, producer: Any, size: int) -> int:
    """Publish flat out until then; return how many were stored."""
    stored = [0]

    def answered(result: Any, _: Any) -> None:
        stored[0] += result == pulsar.Result.Ok

    while time.monotonic() < end:
        producer.send_async(time.time_ns().to_bytes(8, "big").ljust(size, b" "), answered)
    producer.flush()
    return stored[0]


def summary(waits: list[float]) -> dict[str, float]:
    ordered = sorted(waits)
    return {f"p{share}_ms": round(1000 * ordered[len(ordered) * share // 100], 3) for share in (50, 99)} if ordered else {}


def measured(options: argparse.Namespace) -> dict[str, Any]:
    topic = f"persistent://public/default/python-{time.time_ns()}"
    consumption, client = Consumption(options.url, topic), quiet_client(options.url)
    ways = {"batching_enabled": True, "batching_max_publish_delay_ms": 1}
    producer = client.create_producer(topic, max_pending_messages=PENDING, block_if_queue_full=True, **ways)
    publish_until(time.monotonic() + options.warmup, producer, options.size)
    began, before = time.monotonic(), process_use(options.pid)
    consumption.counts = True
    stored = publish_until(began + options.duration, producer, options.size)
    consumption.counts = False
    seconds, after = time.monotonic() - began, process_use(options.pid)
    consumption.end()
    client.close()
    used = after.cpu_seconds - before.cpu_seconds
    return {
        "msgs_s": round(stored / seconds, 1),
        "received_s": round(len(consumption.waits) / seconds, 1),
        "server_cpu_s_per_M": round(1e6 * used / max(1, stored), 3),
        "server_cores": round(used / seconds, 3),
        "server_rss_MB": round(after.resident_mb),
        "e2e": summary(consumption.waits),
    }


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-url", required=True)
    parser.add_argument("-pid", type=int, required=True)
    parser.add_argument("-duration", type=seconds, default=8.0)
    parser.add_argument("-warmup", type=seconds, default=2.0)
    parser.add_argument("-size", type=int, default=1024)
    print(json.dumps(measured(parser.parse_args())))


if __name__ == "__main__":
    main()
