"""Compaction of a topic, Apache's server and ours in turn: `python -m benchmarks.topics.compaction_beside_apache`.

`--apache-url`, `--apache-web-url` and `--apache-pid` name an Apache Pulsar that runs; without them ours is measured alone.
`--messages` of 1 KB with random ones of `--keys` keys, by themselves and in batches of 50, not compressed; from the request
until it is done: megabytes of the topic a second, CPU of the server, and what of the topic stayed. A smaller topic is compacted
before, so that a server is warm. The default is what Apache's does in less than a minute on two cores.
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

import crc32c

from benchmarks.raw_client import frame, process_use
from benchmarks.topics.delay_and_dedup_beside_apache import WINDOW, Server, topic_in
from tests.clients.server_process import ServerProcess
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSubscribe, MessageMetadata, SingleMessageMetadata

PAYLOAD_BYTES = 1024
BATCH = 50
FRAMES_AT_A_TIME = 5_000
POLL_SECONDS = 0.05
SECONDS_MAX = 170.0
WARM_MESSAGES = 20_000


def framed(section_head: bytes, payload: bytes, count: int) -> bytes:
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id, command.send.num_messages = 0, 1 << 28, count
    body = len(section_head).to_bytes(4, "big") + section_head + payload
    return frame(command, b"\x0e\x01" + crc32c.crc32c(body).to_bytes(4, "big") + body)


def frames(messages: int, keys: int, batch: int) -> Iterator[bytes]:
    """The same for each server. `batch` 1: not batched."""
    rng, payload = random.Random(1), random.Random(2).randbytes(PAYLOAD_BYTES)
    for _ in range(messages // batch):
        head = MessageMetadata(producer_name="benchmark", sequence_id=0, publish_time=1_700_000_000_000)
        if batch == 1:
            head.partition_key = f"key-{rng.randrange(keys)}"
            yield framed(head.SerializeToString(), payload, 1)
            continue
        head.num_messages_in_batch = batch
        parts = []
        for _ in range(batch):
            key = f"key-{rng.randrange(keys)}"
            one = SingleMessageMetadata(partition_key=key, payload_size=PAYLOAD_BYTES).SerializeToString()
            parts += [len(one).to_bytes(4, "big"), one, payload]
        yield framed(head.SerializeToString(), b"".join(parts), batch)


def fill(server: Server, topic: str, messages: int, keys: int, batch: int) -> None:
    client = server.connected(topic)
    client.subscribe(topic, "keeps it", CommandSubscribe.Shared)
    client.close()
    client = server.connected(topic)
    client.producer(topic)
    some: list[bytes] = []
    for one in frames(messages, keys, batch):
        some.append(one)
        if len(some) == FRAMES_AT_A_TIME:
            client.publish_all(some, 1, WINDOW)
            some = []
    client.publish_all(some, 1, WINDOW)
    client.close()


def told(server: Server, topic: str, what: str) -> Any:
    with urlopen(f"{server.web_url}/admin/v2/{topic.replace('://', '/')}/{what}", timeout=30) as answer:
        return json.load(answer)


def compacted(server: Server, topic: str) -> float:
    """Seconds from the request until it is done."""
    began = time.perf_counter()
    server.ask("PUT", f"{topic.replace('://', '/')}/compaction")
    while (status := told(server, topic, "compaction"))["status"] != "SUCCESS":
        if status["status"] == "ERROR" or time.perf_counter() - began > SECONDS_MAX:
            raise SystemExit(f"{server.name}: not compacted: {status}")
        time.sleep(POLL_SECONDS)
    return time.perf_counter() - began


def measured(server: Server, messages: int, keys: int, batch: int) -> dict[str, Any]:
    with topic_in(server, {}) as topic:
        fill(server, topic, messages, keys, batch)
        size = told(server, topic, "internalStats")["totalSize"]
        start = process_use(server.pid)
        seconds = compacted(server, topic)
        end = process_use(server.pid)
        ledger = told(server, topic, "internalStats")["compactedLedger"]
    cpu = end.cpu_seconds - start.cpu_seconds
    return {
        "topic_mb": round(size / 1e6),
        "seconds": round(seconds, 2),
        "mb_per_second": round(size / 1e6 / seconds, 1),
        "server_cpu_seconds": round(cpu, 2),
        "server_cpu_us_per_message": round(cpu / messages * 1e6, 2),
        "compacted_entries": ledger["entries"],
        "compacted_mb": round(ledger["size"] / 1e6),
        "resident_mb": round(end.resident_mb),
    }


def measure(server: Server, options: argparse.Namespace) -> None:
    for name, batch in (("unbatched", 1), ("batched", BATCH)):
        measured(server, min(WARM_MESSAGES, options.messages), options.keys, batch)
        result = measured(server, options.messages, options.keys, batch)
        print(json.dumps({"server": server.name, "work": f"compaction, {name}", **result}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--apache-url")
    parser.add_argument("--apache-web-url")
    parser.add_argument("--apache-pid", type=int)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interpulse-benchmark-") as scratch, ServerProcess(Path(scratch)) as process:
        ready = process.start()
        servers = [Server("ours", ready.broker_url, ready.web_url, ready.pid)]
        if options.apache_url is not None:
            servers.insert(0, Server("apache", options.apache_url, options.apache_web_url, options.apache_pid))
        for server in servers:
            measure(server, options)


if __name__ == "__main__":
    main()
