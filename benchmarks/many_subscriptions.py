#!/usr/bin/env python3
"""Very many of one thing, made and deleted in rounds, beside a publisher elsewhere.

    .venv/bin/python -m benchmarks.many_subscriptions                                # 30,000 subscriptions, two rounds
    .venv/bin/python -m benchmarks.many_subscriptions --what readers producers --rounds 3 --count 10000

Each kind on a standalone of its own. `subscriptions`: durable ones on one topic, which is deleted with all of them. `readers`
and `producers`: on one topic, from one connection that closes. `consumers`: as subscriptions, but their consumers stay until
the topic is deleted. `partitions`: one partitioned topic with a producer on each. `namespaces`: made and deleted one by one.
`topics`: one namespace full of topics, deleted by force. `listings`: what REST and /metrics tell of such a topic, and of a
third as many partitions and namespaces.

Prints a line of JSON for each round: the server's resident memory at most and after the round, seconds, and how long another
process waited for its publishes (100 a second, one at a time) in each part of the round, in milliseconds. `loop_worst`: the
same on a non-persistent topic, whose messages wait for no disk and no thread: how long the loop was busy. `objects_mb`: what
Python's objects take of the memory; `arenas_mb`: what its allocator has for them (`benchmarks/held_memory.py`). The last line
has the memory `--later` seconds after the last round: messages that came meanwhile are in memory until a bookie's flush.
`--slow-turns FILE` writes down which code a long turn of the server's loop was in (`benchmarks/slow_turns.py`).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.held_memory import told
from benchmarks.operations import ROOT, WebClient, web_client
from benchmarks.raw_client import RawClient, Unexpected, frame, process_use
from tests.clients.server_process import Ready, ServerProcess
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSubscribe

QUIET = "persistent://public/default/quiet"
UNSTORED = "non-persistent://public/default/quiet"
BUSY = "persistent://public/default/busy"
REST = "/admin/v2/persistent/public/default/busy"
WINDOW = 100
RATE = 100
LISTING_TIMES = 3
SETTLE_SECONDS = 3.0
"""After a round, before memory is looked at."""
LATER_SECONDS = 90.0
"""After the last round: longer than `flushInterval` and what the server waits after it (cli/serving/free_memory.py)."""

Row = dict[str, Any]


class Publisher:
    """A process that publishes to the quiet topic; `during` says what it waited while some work was done."""

    def __init__(self, ready: Ready) -> None:
        self._ready = ready

    @contextmanager
    def during(self, row: Row, part: str) -> Iterator[WebClient]:
        with self._publishing(QUIET) as stored, self._publishing(UNSTORED) as unstored:
            began = time.perf_counter()
            try:
                with web_client(self._ready.web_url) as web:
                    yield web
            finally:
                seconds = time.perf_counter() - began
                waited, of_the_loop = _ended(stored), _ended(unstored)
            found = {name: waited[name] for name in ("count", "p99", "worst")}
            row[part] = (
                {"seconds": round(seconds, 2)} | found | {f"loop_{name}": of_the_loop[name] for name in ("p99", "worst")}
            )

    def _publishing(self, topic: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "benchmarks.cluster.one_at_a_time", self._ready.broker_url, topic, str(RATE)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        return process


def _ended(process: "subprocess.Popen[str]") -> dict[str, float]:
    """Waits of a publisher, which ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    found: dict[str, float] = json.loads(process.stdout.read())
    return found


def asked(client: RawClient, commands: Iterable[BaseCommand], answer: int) -> None:
    """All of them, some under way at a time."""
    open_requests = 0

    def until(left: int) -> None:
        nonlocal open_requests
        while open_requests > left:
            for data in client.frames():
                got = BaseCommand.FromString(data[4 : 4 + int.from_bytes(data[:4], "big")])
                if got.type == answer:
                    open_requests -= 1
                elif got.type in (BaseCommand.ERROR, BaseCommand.CLOSE_PRODUCER):
                    raise Unexpected(str(got))

    for command in commands:
        client.send(frame(command))
        open_requests += 1
        until(WINDOW)
    until(0)


def subscribing(count: int, *, durable: bool) -> Iterator[BaseCommand]:
    for number in range(count):
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        asking = command.subscribe
        asking.topic, asking.subscription, asking.sub_type = BUSY, f"s-{number}", CommandSubscribe.Shared
        asking.consumer_id, asking.request_id, asking.durable = number, number + 1, durable
        yield command


def closing(count: int) -> Iterator[BaseCommand]:
    for number in range(count):
        command = BaseCommand(type=BaseCommand.CLOSE_CONSUMER)
        command.close_consumer.consumer_id, command.close_consumer.request_id = number, number + 1
        yield command


def producing(topics: Iterable[str]) -> Iterator[BaseCommand]:
    for number, topic in enumerate(topics):
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.topic, command.producer.producer_id, command.producer.request_id = topic, number, number + 1
        yield command


def subscriptions(ready: Ready, count: int, part: Callable[[str], Any], *, stay: bool = False) -> None:
    client = RawClient(ready.broker_url)
    with part("made"):
        asked(client, subscribing(count, durable=True), BaseCommand.SUCCESS)
        if not stay:
            asked(client, closing(count), BaseCommand.SUCCESS)
    with part("deleted") as web:
        web.ask(f"{REST}?force=true", "DELETE")
    client.close()


def consumers(ready: Ready, count: int, part: Callable[[str], Any]) -> None:
    subscriptions(ready, count, part, stay=True)


def readers(ready: Ready, count: int, part: Callable[[str], Any]) -> None:
    client = RawClient(ready.broker_url)
    with part("made"):
        asked(client, subscribing(count, durable=False), BaseCommand.SUCCESS)
    with part("deleted") as web:
        client.close()
        web.ask(f"{REST}/subscriptions")


def producers(ready: Ready, count: int, part: Callable[[str], Any]) -> None:
    client = RawClient(ready.broker_url)
    with part("made"):
        asked(client, producing([BUSY] * count), BaseCommand.PRODUCER_SUCCESS)
    with part("deleted") as web:
        client.close()
        web.ask(f"{REST}/subscriptions")


def partitions(ready: Ready, count: int, part: Callable[[str], Any]) -> None:
    client = RawClient(ready.broker_url)
    with part("made") as web:
        web.ask(f"{REST}/partitions", "PUT", str(count))
    with part("used"):
        asked(client, producing(f"{BUSY}-partition-{number}" for number in range(count)), BaseCommand.PRODUCER_SUCCESS)
    with part("deleted") as web:
        web.ask(f"{REST}/partitions?force=true", "DELETE")
    client.close()


def namespaces(_: Ready, count: int, part: Callable[[str], Any]) -> None:
    with part("made") as web:
        for number in range(count):
            web.ask(f"/admin/v2/namespaces/public/n-{number}", "PUT")
    with part("deleted") as web:
        for number in range(count):
            web.ask(f"/admin/v2/namespaces/public/n-{number}", "DELETE")


def topics(ready: Ready, count: int, part: Callable[[str], Any]) -> None:
    client = RawClient(ready.broker_url)
    with part("made") as web:
        web.ask("/admin/v2/namespaces/public/full", "PUT")
        asked(
            client, producing(f"persistent://public/full/t-{number}" for number in range(count)), BaseCommand.PRODUCER_SUCCESS
        )
    client.close()
    with part("deleted") as web:
        web.ask("/admin/v2/namespaces/public/full?force=true", "DELETE")


def listings(ready: Ready, count: int, part: Callable[[str], Any]) -> None:
    """Once: what there is stays for the next rounds."""
    some = max(1, count // 3)
    with part("made") as web:
        client = RawClient(ready.broker_url)
        asked(client, subscribing(count, durable=True), BaseCommand.SUCCESS)
        client.close()
        web.ask(f"{REST}-wide/partitions", "PUT", str(some))
        for number in range(some):
            web.ask(f"/admin/v2/namespaces/public/n-{number}", "PUT")
    wide = f"{REST}-wide"
    for path in (
        f"{REST}/stats",
        f"{REST}/internalStats",
        f"{REST}/subscriptions",
        f"{wide}/partitioned-stats?perPartition=true",
        f"{wide}/partitioned-internalStats",
        "/admin/v2/persistent/public/default",
        "/admin/v2/persistent/public/default/partitioned",
        "/admin/v2/namespaces/public",
        "/admin/v2/namespaces/public/default/topics",
        "/admin/v2/broker-stats/topics",
        "/metrics",
    ):
        with part(path.removeprefix("/admin/v2")) as web:
            for _ in range(LISTING_TIMES):
                web.ask(path)


KINDS = {
    each.__name__: each
    for each in (subscriptions, consumers, readers, producers, partitions, namespaces, topics, listings)
}  # fmt: skip


def most_mb(pid: int) -> int:
    """Resident memory of the process at most, since it began."""
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024)


class TellingServer(ServerProcess):
    """A server that tells what its memory is."""

    def launch_command(self, command: Sequence[str]) -> None:
        """The same arguments, for `benchmarks.held_memory` in the place of `bin/pulsar`."""
        super().launch_command([sys.executable, "-m", "benchmarks.held_memory", *command[1:]])

    def memory(self) -> Row:
        """Megabytes: resident, and of Python's allocator."""
        assert self.ready is not None
        return {"rss_mb": round(process_use(self.ready.pid).resident_mb)} | self.allocated()

    def allocated(self) -> Row:
        assert self.ready is not None
        return told(self.ready.pid, self.log)


class WatchedServer(TellingServer):
    """A server that writes down its slow turns."""

    slow_turns = ""

    def launch_command(self, command: Sequence[str]) -> None:
        """The same arguments, for `benchmarks.slow_turns` in the place of `bin/pulsar`."""
        ServerProcess.launch_command(self, [sys.executable, "-m", "benchmarks.slow_turns", self.slow_turns, *command[1:]])

    def allocated(self) -> Row:
        return {}


def measure(kind: str, rounds: int, count: int, settings: tuple[str, ...], later_seconds: float, slow_turns: str) -> None:
    with tempfile.TemporaryDirectory(prefix="interpulse-benchmark-") as scratch:
        server = (WatchedServer if slow_turns else TellingServer)(
            Path(scratch), ("forceDeleteNamespaceAllowed=true", *settings)
        )
        if isinstance(server, WatchedServer):
            server.slow_turns = slow_turns
        ready = server.start()
        try:
            publisher = Publisher(ready)
            row: Row = {"what": kind, "count": count} | server.memory()
            with publisher.during(row, "quiet"):
                time.sleep(SETTLE_SECONDS)
            print(json.dumps(row), flush=True)
            for number in range(rounds):
                row = {"round": number + 1}
                KINDS[kind](ready, count, partial(publisher.during, row))
                row["rss_at_most_mb"] = most_mb(ready.pid)
                with publisher.during(row, "after"):
                    time.sleep(SETTLE_SECONDS)
                print(json.dumps(row | server.memory()), flush=True)
            time.sleep(later_seconds)
            print(json.dumps({"later": server.memory()}), flush=True)
        finally:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=list(KINDS), nargs="+", default=["subscriptions"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--count", type=int, default=30_000)
    parser.add_argument("--later", type=float, default=LATER_SECONDS, metavar="SECONDS")
    parser.add_argument("--slow-turns", default="", metavar="FILE")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the server")
    options = parser.parse_args()
    for kind in options.what:
        measure(kind, options.rounds, options.count, tuple(options.set), options.later, options.slow_turns)


if __name__ == "__main__":
    main()
