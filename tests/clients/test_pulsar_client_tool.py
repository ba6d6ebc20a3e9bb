"""bin/pulsar-client and bin/pulsar-perf beside Apache's client for Python, on one server."""

import json
import subprocess
import time
from pathlib import Path

import pulsar
import pytest

from tests.clients.server_process import Ready

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 120.0

pytestmark = pytest.mark.clients


def tool(server: Ready, *words: str) -> list[str]:
    command = [str(ROOT / "bin" / "pulsar-client"), "--url", server.broker_url, *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_what_it_produces_another_client_receives(server: Ready, client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "theirs")
    words = ["-m", "hello,world", "-k", "key", "-p", "a=b", "-n", "2"]
    assert tool(server, "produce", topic, *words) == ["4 messages successfully produced"]
    received = [consumer.receive(timeout_millis=30_000) for _ in range(4)]
    assert [message.data() for message in received] == [b"hello", b"world"] * 2
    assert {(message.partition_key(), message.properties()["a"]) for message in received} == {("key", "b")}
    consumer.close()


def test_it_consumes_batches_of_another_client_and_acknowledges_them(server: Ready, client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=True, compression_type=pulsar.CompressionType.LZ4)
    for index in range(10):
        producer.send_async(f"message {index}".encode(), lambda result, _: None, properties={"n": str(index)})
    producer.flush()
    producer.close()
    lines = tool(server, "consume", topic, "-s", "ours", "-p", "Earliest", "-n", "10")
    assert lines[0::2] == ["----- got message -----"] * 10
    contents = [line.partition("content:")[2] for line in lines[1::2]]
    assert contents == [f"message {index}" for index in range(10)]
    assert "properties:[n=3]" in lines[7]
    again = [json.loads(line) for line in tool(server, "read", topic, "-m", "earliest", "-n", "2", "--json")]
    assert [each["payload"] for each in again] == ["message 0", "message 1"]


def test_it_consumes_from_a_time_up_to_another(server: Ready, client: pulsar.Client, topic: str) -> None:
    client.subscribe(topic, "keeps").close()
    producer = client.create_producer(topic)
    for index in range(6):
        producer.send(f"m{index}".encode())
        at = time.time()
        while time.time() < at + 0.002:  # so that no two have one publish time
            continue
    read = [json.loads(line) for line in tool(server, "read", topic, "-m", "earliest", "-n", "6", "--json")]
    times = [each["publish_time"] for each in read]
    words = ["-stp", str(times[2]), "-etp", str(times[4]), "-n", "0", "--json"]
    lines = tool(server, "consume", topic, "-s", "ours", *words)
    assert [json.loads(line)["payload"] for line in lines] == ["m2", "m3", "m4"]


def test_all_partitions_are_consumed(server: Ready, topic: str) -> None:
    admin = [str(ROOT / "bin" / "pulsar-admin"), "--admin-url", server.web_url]
    created = [*admin, "topics", "create-partitioned-topic", topic, "-p", "3"]
    subprocess.run(created, check=True, capture_output=True, timeout=SECONDS_MAX)
    for key in ("a", "b", "c", "d", "e", "f"):
        tool(server, "produce", topic, "-m", key, "-k", key)
    lines = tool(server, "consume", topic, "-s", "ours", "-p", "Earliest", "-n", "6")
    assert sorted(line.partition("content:")[2] for line in lines[1::2]) == ["a", "b", "c", "d", "e", "f"]


def perf(server: Ready, *words: str) -> dict[str, float]:
    command = [str(ROOT / "bin" / "pulsar-perf"), *words, "-u", server.broker_url, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert ran.returncode == 0, ran.stderr
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return figures


@pytest.mark.parametrize("batching", [(), ("-db",)])
def test_what_is_measured_is_stored_and_read_again(
    server: Ready, client: pulsar.Client, topic: str, batching: tuple[str, ...]
) -> None:
    assert perf(server, "produce", topic, "-m", "3000", "-r", "0", "-s", "50", *batching)["messages"] == 3000
    assert perf(server, "read", topic, "-n", "3000")["messages"] >= 3000
    assert perf(server, "consume", topic, "-sp", "Earliest", "-m", "3000")["messages"] >= 3000
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert len(reader.read_next(timeout_millis=30_000).data()) == 50
    reader.close()
