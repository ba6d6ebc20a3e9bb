#!/usr/bin/env python3
"""Costs of an operator's tools: `.venv/bin/python -m benchmarks.operations [commands|stats|scrape ...]`.

`commands`: bin/pulsar-admin by the clock and by its processor time, the median of `--times` runs. `stats`: GET of one topic's
stats over one connection that is kept, requests a second; with `--apache-web-url URL` Apache's in turn with ours. `scrape`:
/metrics of `--topics` topics with a subscription each, idle and while another process publishes one message at a time: bytes,
seconds by the clock, the broker's processor time, and what a publish waited with and without scrapes. `holds`: how long a
scrape of as many topics keeps an event loop from its next turn, without sockets. Each on a server of its own.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.raw_client import process_use
from tests.broker.admin.admin_world import ADVERTISED, NAME, AdminWorld
from tests.clients.server_process import Ready, ServerProcess

ROOT = Path(__file__).resolve().parent.parent
TOPIC = "persistent://public/default/operated"
STATS = "/admin/v2/persistent/public/default/operated/stats"
COMMANDS = ("tenants list", "topics list public/default", f"topics stats {TOPIC}", "namespaces policies public/default")
ROUNDS = 4


class WebClient:
    """One connection of HTTP/1.1 that is kept."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._host = f"{where.hostname}:{where.port}"
        self._socket = socket.create_connection((where.hostname, where.port or 80), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self._socket.makefile("rb")

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def ask(self, path: str, method: str = "GET", body: str = "") -> int:
        """Bytes of the answer's body. ValueError when it is an error."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        )
        self._socket.sendall(f"{head}\r\n\r\n{body}".encode())
        status = int(self._reader.readline().split()[1])
        length, is_chunked = 0, False
        while (line := self._reader.readline().strip().lower()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name == b"content-length" else length
            is_chunked = is_chunked or (name == b"transfer-encoding" and b"chunked" in value)
        size = sum(map(len, self._chunks())) if is_chunked else len(self._reader.read(length))
        if status >= 400 and status != 409:
            raise ValueError(f"{method} {path}: {status}")
        return size

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._reader.readline(), 16):
            yield self._reader.read(size)
            self._reader.readline()
        self._reader.readline()


@contextmanager
def web_client(url: str) -> Iterator[WebClient]:
    client = WebClient(url)
    try:
        yield client
    finally:
        client.close()


def commands(ready: Ready, options: argparse.Namespace) -> dict[str, Any]:
    with web_client(ready.web_url) as client:
        client.ask("/admin/v2/persistent/public/default/operated", "PUT")
    found = {}
    for command in COMMANDS:
        words = [str(ROOT / "bin" / "pulsar-admin"), "--admin-url", ready.web_url, *command.split()]
        runs = [_run(words) for _ in range(options.times + 1)][1:]
        clock, processor = zip(*runs, strict=True)
        found[command] = {"clock_ms": _ms(statistics.median(clock)), "processor_ms": _ms(statistics.median(processor))}
    return found


def _run(words: list[str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"PULSAR_CLIENT_CONF": "/dev/null"})
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def stats(ready: Ready, options: argparse.Namespace) -> dict[str, Any]:
    urls = {"ours": ready.web_url} | ({"apache": options.apache_web_url} if options.apache_web_url else {})
    for url in urls.values():
        with web_client(url) as client:
            client.ask("/admin/v2/persistent/public/default/operated", "PUT")
            client.ask("/admin/v2/persistent/public/default/operated/subscription/s", "PUT")
            for _ in range(options.warm_requests):
                client.ask(STATS)
    rates: dict[str, list[float]] = {name: [] for name in urls}
    before = process_use(ready.pid)
    for _ in range(ROUNDS):
        for name, url in urls.items():
            rates[name].append(_requests_per_second(url, options.seconds / ROUNDS))
    cpu = process_use(ready.pid).cpu_seconds - before.cpu_seconds
    told: dict[str, Any] = {f"{name}_requests_per_second": round(statistics.median(each)) for name, each in rates.items()}
    return told | {
        "ours_processor_s": round(cpu, 2),
        "rounds": {name: [round(one) for one in each] for name, each in rates.items()},
    }


def _requests_per_second(url: str, seconds: float) -> float:
    with web_client(url) as client:
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            client.ask(STATS)
            count += 1
        return count / (time.perf_counter() - began)


def scrape(ready: Ready, options: argparse.Namespace) -> dict[str, Any]:
    with web_client(ready.web_url) as client:
        for number in range(options.topics):
            client.ask(f"/admin/v2/persistent/public/default/many-{number}/subscription/s", "PUT")
        client.ask("/metrics")
    idle = _scrapes(ready, options.scrapes)
    quiet = _published_during(ready, lambda: time.sleep(options.seconds))
    busy: dict[str, Any] = {}
    beside = _published_during(ready, lambda: busy.update(_scrapes(ready, options.scrapes)))
    publishing = {"without_scrapes": quiet, "with_scrapes": beside}
    return {"topics": options.topics, "idle": idle, "while_publishing": busy, "publish_ms": publishing}


def _scrapes(ready: Ready, times: int) -> dict[str, Any]:
    seconds, before, size = [], process_use(ready.pid), 0
    with web_client(ready.web_url) as client:
        for _ in range(times):
            began = time.perf_counter()
            size = client.ask("/metrics")
            seconds.append(time.perf_counter() - began)
    cpu = (process_use(ready.pid).cpu_seconds - before.cpu_seconds) / times
    return {
        "megabytes": round(size / 1e6, 1),
        "clock_s": round(statistics.median(seconds), 3),
        "processor_s_of_all_the_server_does": round(cpu, 3),
    }


def _published_during(ready: Ready, work: Callable[[], object]) -> dict[str, float]:
    """One message at a time meanwhile, by another process: milliseconds that a publish took."""
    command = [sys.executable, "-m", "benchmarks.cluster.one_at_a_time", ready.broker_url, TOPIC]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as publisher:
        assert publisher.stdin is not None
        assert publisher.stdout is not None
        publisher.stdout.readline()
        try:
            work()
        finally:
            publisher.stdin.close()
        told: dict[str, float] = json.loads(publisher.stdout.read())
    return told


def holds(_: Ready, options: argparse.Namespace) -> dict[str, Any]:
    return asyncio.run(_holds(options.topics, options.scrapes))


async def _holds(topics: int, scrapes: int) -> dict[str, Any]:
    """A broker in this process, on ledgers in memory; beside it a task that wants each turn. Processor time: other programs
    on the machine do not count."""
    world = AdminWorld()
    await world.service.bootstrap_standalone(ADVERTISED)
    await world.service.start(ADVERTISED)
    for number in range(topics):
        topic = await world.loaded(f"{NAME}/many-{number}")
        await topic.create_subscription("s", from_earliest=True, properties={})
    gc.collect()
    gc.freeze()
    late: list[float] = []

    async def measure() -> None:
        while True:
            began = time.process_time()
            await asyncio.sleep(0)
            late.append(time.process_time() - began)

    await _scraped(world)
    measuring, cpu = asyncio.create_task(measure()), time.process_time()
    for _ in range(scrapes):
        await _scraped(world)
    cpu = (time.process_time() - cpu) / scrapes
    measuring.cancel()
    late.sort()
    found = {"p50": late[len(late) // 2], "p99": late[len(late) * 99 // 100], "longest": late[-1]}
    await world.service.close()
    return {"topics": topics, "processor_s": round(cpu, 3), "turn_ms": {name: _ms(value) for name, value in found.items()}}


async def _scraped(world: AdminWorld) -> None:
    """Scrapes and drops the answer."""

    async def send(_: Any) -> None:
        pass

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": "/metrics", "raw_path": b"/metrics", "query_string": b"", "headers": []}
    await world.app(scope, receive, send)


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


WORKLOADS: dict[str, Callable[[Ready, argparse.Namespace], dict[str, Any]]] = {
    "commands": commands,
    "stats": stats,
    "scrape": scrape,
    "holds": holds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", choices=[*WORKLOADS, []], default=[], help="all, if none is named")
    parser.add_argument("--times", type=int, default=20, help="runs of each command")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--warm-requests", type=int, default=3000, help="before anything is measured: Java compiles late")
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--scrapes", type=int, default=5)
    parser.add_argument("--apache-web-url", default="")
    options = parser.parse_args()
    for name in options.workloads or WORKLOADS:
        with tempfile.TemporaryDirectory() as directory:
            server = ServerProcess(Path(directory))
            try:
                print(name, json.dumps(WORKLOADS[name](server.start(), options), indent=1), flush=True)
            finally:
                server.kill()  # nobody needs its data, and the unloading of 10,000 topics takes its time


if __name__ == "__main__":
    main()
