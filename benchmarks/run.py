"""One workload on a fresh server: `.venv/bin/python -m benchmarks.run WORKLOAD [--seconds S] [--set KEY=VALUE]`.

Prints rate, server CPU seconds per million messages, latencies and memory as one JSON line. Compare with nothing but a run of
the same minute on the same machine.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.paced import PacedRun, switches
from benchmarks.raw_client import RawClient, process_use, send_frame
from tests.clients.server_process import Ready, ServerProcess
from wire.generated.pulsar_api_pb2 import CommandSubscribe

TOPIC = "persistent://public/default/benchmark"
WINDOW = 5_000
BATCH = 85
"""Messages of 1 KB in a batch of the size that clients make by default."""


def publish(size: int, batch: int) -> Callable[[Ready, float], dict[str, Any]]:
    def run(ready: Ready, seconds: float) -> dict[str, Any]:
        client = RawClient(ready.broker_url)
        client.producer(TOPIC)
        one = send_frame(size, batch)
        client.publish(one, WINDOW, 1.0)
        return measured(ready, lambda: client.publish(one, max(2, WINDOW // batch), seconds) * batch)

    return run


def one_at_a_time(ready: Ready, seconds: float) -> dict[str, Any]:
    client = RawClient(ready.broker_url)
    client.producer(TOPIC)
    one = send_frame(1024, 1)
    client.publish_one_at_a_time(one, 0.5)
    latencies: list[float] = []

    def work() -> int:
        latencies.extend(client.publish_one_at_a_time(one, seconds))
        return len(latencies)

    return measured(ready, work) | quantiles_ms(latencies)


def quantiles_ms(latencies: list[float]) -> dict[str, float]:
    """Quantiles of sorted seconds, in ms."""
    return {f"p{q}_ms": round(1000 * latencies[len(latencies) * q // 100], 3) for q in (50, 99)}


def end_to_end(runs_per_second: int, batch: int) -> Callable[[Ready, float], dict[str, Any]]:
    """Workload that costs a run of one frame of `batch` messages."""

    def run(ready: Ready, seconds: float) -> dict[str, Any]:
        paced = PacedRun(ready.broker_url, TOPIC, batch, runs_per_second)
        paced.run(runs_per_second // 2)
        paced.forget()
        frames = int(runs_per_second * seconds)
        before = switches(ready.pid)

        def work() -> int:
            paced.run(frames)
            return frames * batch

        result = measured(ready, work)
        per_run = {"switches_per_run": round((switches(ready.pid) - before) / frames, 2)}
        return result | per_run | quantiles_ms(sorted(paced.latencies))

    return run


def catch_up(entries: int, batch: int) -> Callable[[Ready, float], dict[str, Any]]:
    def run(ready: Ready, seconds: float) -> dict[str, Any]:
        keep = RawClient(ready.broker_url)
        keep.subscribe(TOPIC, "s", CommandSubscribe.Exclusive)
        writer = RawClient(ready.broker_url)
        writer.producer(TOPIC)
        one, written = send_frame(1024, batch), 0
        while written < entries:
            written += writer.publish(one, max(2, WINDOW // batch), 0.2)
        return measured(ready, lambda: bool(keep.consume(written, 10_000, batch)) * written * batch)

    return run


def topics(ready: Ready, seconds: float) -> dict[str, Any]:
    client = RawClient(ready.broker_url)

    def work() -> int:
        for number in range(1000):
            client.producer(f"{TOPIC}-{number}", number)
        return 1000

    return measured(ready, work)


def idle(ready: Ready, seconds: float) -> dict[str, Any]:
    time.sleep(seconds)
    return measured(ready, lambda: 0)


def measured(ready: Ready, work: Callable[[], int]) -> dict[str, Any]:
    before, start = process_use(ready.pid), time.perf_counter()
    count = work()
    seconds, after = time.perf_counter() - start, process_use(ready.pid)
    cpu = after.cpu_seconds - before.cpu_seconds
    return {
        "messages": count,
        "seconds": round(seconds, 3),
        "messages_per_second": round(count / seconds) if count else 0,
        "server_cpu_s_per_million": round(cpu / count * 1e6, 2) if count else 0,
        "server_cpu_s": round(cpu, 2),
        "server_resident_mb": round(after.resident_mb, 1),
    }


WORKLOADS: dict[str, Callable[[Ready, float], dict[str, Any]]] = {
    "publish-1k": publish(1024, 1),
    "publish-100": publish(100, 1),
    "publish-1k-batched": publish(1024, BATCH),
    "one-at-a-time": one_at_a_time,
    "end-to-end-1k": end_to_end(1000, 1),
    "end-to-end-10k-batched": end_to_end(1000, 10),
    "catch-up-1k": catch_up(200_000, 1),
    "catch-up-1k-batched": catch_up(12_000, BATCH),
    "topics": topics,
    "idle": idle,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=[*WORKLOADS, "all"])
    parser.add_argument("--seconds", type=float, default=5.0, help="of the measured part, where it is timed")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the server")
    options = parser.parse_args()
    for name in WORKLOADS if options.workload == "all" else [options.workload]:
        with tempfile.TemporaryDirectory(prefix="interpulse-benchmark-") as scratch:
            server = ServerProcess(Path(scratch), tuple(options.set))
            started = time.perf_counter()
            ready = server.start()
            result: dict[str, Any] = {"workload": name, "start_seconds": round(time.perf_counter() - started, 3)}
            try:
                print(json.dumps(result | WORKLOADS[name](ready, options.seconds)), flush=True)
            finally:
                server.stop()


if __name__ == "__main__":
    main()
