"""Delayed delivery and deduplication beside Apache's: `python -m benchmarks.topics.delay_and_dedup_beside_apache`.

`--apache-url`, `--apache-web-url` and `--apache-pid` name an Apache Pulsar that runs; without them ours is measured alone.
Delayed: `--messages` with times in random order within `--seconds`, one Shared consumer that acknowledges; how late they come,
CPU of the server while they do, memory. Deduplication: `--frames` messages of 100 bytes, published with it off and on. The
client is the same for both and costs little; each server has namespaces of its own for it, which are deleted afterwards.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from benchmarks.raw_client import RawClient, frame, is_kind, process_use, single_frame
from tests.clients.server_process import ServerProcess
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandSubscribe

PAYLOAD_BYTES = 100
WINDOW = 1_000
"""Apache stops reading a connection at 1,000 pending publishes."""
PERMITS = 10_000
HEAD_START_SECONDS = 3.0
PUBLISHED_PER_SECOND = 15_000
"""Least rate of publishing before the first message is due."""


@dataclass(frozen=True, slots=True)
class Server:
    """One of the two."""

    name: str
    url: str
    web_url: str
    pid: int

    def ask(self, method: str, path: str, body: Any = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.web_url}/admin/v2/{path}", data, {"Content-Type": "application/json"}, method=method)
        urlopen(request, timeout=30).close()

    def connected(self, topic: str) -> RawClient:
        """A client whose lookup has made the server take the topic on."""
        client = RawClient(self.url)
        command = BaseCommand(type=BaseCommand.LOOKUP)
        command.lookup_topic.topic, command.lookup_topic.request_id = topic, 1
        client.ask(command, BaseCommand.LOOKUP_RESPONSE)
        return client


@contextmanager
def topic_in(server: Server, policies: Mapping[str, Any]) -> Iterator[str]:
    """A topic in a namespace with these policies; both are deleted at the end."""
    namespace = f"public/measured-{time.time_ns()}"
    server.ask("PUT", f"namespaces/{namespace}")
    try:
        for policy, value in policies.items():
            server.ask("POST", f"namespaces/{namespace}/{policy}", value)
        time.sleep(0.5)  # policies take effect soon, not at once
        yield f"persistent://{namespace}/t"
    finally:
        try:
            server.ask("DELETE", f"persistent/{namespace}/t?force=true")
            server.ask("DELETE", f"namespaces/{namespace}")
        except HTTPError as error:
            print(f"{server.name}: {namespace} is left: {error}", flush=True)


def delayed(server: Server, count: int, seconds: float, tick_ms: int) -> dict[str, Any]:
    policies = {"delayedDelivery": {"active": True, "tickTime": tick_ms, "maxDeliveryDelayInMillis": 0}}
    with topic_in(server, policies) as topic:
        consumer = server.connected(topic)
        consumer.subscribe(topic, "s", CommandSubscribe.Shared)
        consumer.flow(PERMITS)
        before = process_use(server.pid).resident_mb
        start_ms = time.time_ns() // 1_000_000 + int(1000 * (HEAD_START_SECONDS + count / PUBLISHED_PER_SECOND))
        publish_delayed(server, topic, count, start_ms, int(seconds * 1000))
        published_ms = time.time_ns() // 1_000_000
        time.sleep(max(0.0, (start_ms - published_ms) / 1000 - 0.2))
        start = process_use(server.pid)
        late = sorted(drain(consumer, count))
        end = process_use(server.pid)
        consumer.close()
    return {
        "published_in_time": published_ms < start_ms,
        "earliest_ms": round(late[0], 1),
        "late_ms_p50": round(statistics.median(late), 1),
        "late_ms_p99": round(late[count * 99 // 100], 1),
        "late_ms_p999": round(late[count * 999 // 1000], 1),
        "late_ms_worst": round(late[-1], 1),
        "server_cpu_us_per_message": round((end.cpu_seconds - start.cpu_seconds) / count * 1e6, 1),
        "resident_mb": round(end.resident_mb, 1),
        "resident_mb_grown": round(end.resident_mb - before, 1),
    }


def publish_delayed(server: Server, topic: str, count: int, start_ms: int, spread_ms: int) -> None:
    rng = random.Random(1)
    times = [start_ms + rng.randrange(spread_ms) for _ in range(count)]
    client = server.connected(topic)
    client.producer(topic)
    frames = [single_frame(PAYLOAD_BYTES, at_ms, payload=b"%d" % at_ms) for at_ms in times]
    client.publish_all(frames, 1, WINDOW)
    client.close()


def drain(consumer: RawClient, count: int) -> list[float]:
    """Milliseconds after their time; what one read brings is acknowledged together."""
    late: list[float] = []
    owed = 0
    while len(late) < count:
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id, command.ack.ack_type = 0, CommandAck.Individual
        for data in consumer.frames():
            is_kind(data, BaseCommand.MESSAGE)
            late.append(time.time_ns() / 1e6 - int(data[-PAYLOAD_BYTES:]))
            message = BaseCommand.FromString(data[4 : 4 + int.from_bytes(data[:4], "big")]).message
            where = command.ack.message_id.add()
            where.ledger_id, where.entry_id = message.message_id.ledger_id, message.message_id.entry_id
        found = len(command.ack.message_id)
        owed += found
        if found:
            consumer.send(frame(command))
        if owed >= PERMITS // 4:
            consumer.flow(owed)
            owed = 0
    return late


def published(server: Server, frames: int, *, deduplicates: bool) -> dict[str, Any]:
    with topic_in(server, {"deduplication": deduplicates}) as topic:
        client = server.connected(topic)
        client.subscribe(topic, "keeps it", CommandSubscribe.Shared)
        client.close()
        client = server.connected(topic)
        client.producer(topic)
        plain = [single_frame(PAYLOAD_BYTES, None, (1 << 28) + number) for number in range(frames)]
        client.publish_all(plain[: frames // 5], 1, WINDOW)  # a server that is warm
        rest = plain[frames // 5 :]
        start, began = process_use(server.pid), time.perf_counter()
        client.publish_all(rest, 1, WINDOW)
        seconds, end = time.perf_counter() - began, process_use(server.pid)
        client.close()
    cpu = end.cpu_seconds - start.cpu_seconds
    return {
        "messages_per_second": round(len(rest) / seconds),
        "server_cpu_us_per_message": round(cpu / len(rest) * 1e6, 2),
        "resident_mb": round(end.resident_mb, 1),
    }


def measure(server: Server, options: argparse.Namespace) -> None:
    def say(work: str, result: dict[str, Any]) -> None:
        print(json.dumps({"server": server.name, "work": work, **result}), flush=True)

    say("delayed", delayed(server, options.messages, options.seconds, options.tick_ms))
    say("deduplication off", published(server, options.frames, deduplicates=False))
    say("deduplication on", published(server, options.frames, deduplicates=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--apache-url")
    parser.add_argument("--apache-web-url")
    parser.add_argument("--apache-pid", type=int)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="within which they come due")
    parser.add_argument("--tick-ms", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=200_000, help="published with and without deduplication")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    strict = ("isDelayedDeliveryDeliverAtTimeStrict=true", "brokerDeduplicationEnabled=false")
    with (
        tempfile.TemporaryDirectory(prefix="interpulse-benchmark-") as scratch,
        ServerProcess(Path(scratch), strict) as process,
    ):
        ready = process.start()
        servers = [Server("ours", ready.broker_url, ready.web_url, ready.pid)]
        if options.apache_url is not None:
            servers.insert(0, Server("apache", options.apache_url, options.apache_web_url, options.apache_pid))
        for _ in range(options.rounds):
            for server in servers:
                measure(server, options)


if __name__ == "__main__":
    main()
