"""bin/pulsar-client and bin/pulsar-perf beside Apache's client for Python, on one server."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pulsar
import pulsar.schema
import pytest

from tests.clients.server_process import Ready
from tests.started_process import free_port

ROOT = Path(__file__).resolve().parents[3]
SECONDS_MAX = 120.0

pytestmark = pytest.mark.clients


def tool(server: Ready, *words: str) -> list[str]:
    command = [str(ROOT / "bin" / "pulsar-client"), "--url", server.broker_url, *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_another_client_receives_the_messages_that_the_tool_produces(server: Ready, client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "theirs")
    words = ["-m", "hello,world", "-k", "key", "-p", "a=b", "-n", "2"]
    assert tool(server, "produce", topic, *words) == ["4 messages successfully produced"]
    received = [consumer.receive(timeout_millis=30_000) for _ in range(4)]
    assert [message.data() for message in received] == [b"hello", b"world"] * 2
    assert {(message.partition_key(), message.properties()["a"]) for message in received} == {("key", "b")}
    consumer.close()


def test_the_tool_consumes_batches_of_another_client_and_reads_them_again(
    server: Ready, client: pulsar.Client, topic: str
) -> None:
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


def test_the_tool_consumes_from_one_time_up_to_another(server: Ready, client: pulsar.Client, topic: str) -> None:
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
def test_messages_of_the_perf_tool_are_stored_and_read_again(
    server: Ready, client: pulsar.Client, topic: str, batching: tuple[str, ...]
) -> None:
    assert perf(server, "produce", topic, "-m", "3000", "-r", "0", "-s", "50", *batching)["messages"] == 3000
    assert perf(server, "read", topic, "-n", "3000")["messages"] >= 3000
    assert perf(server, "consume", topic, "-sp", "Earliest", "-m", "3000")["messages"] >= 3000
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert len(reader.read_next(timeout_millis=30_000).data()) == 50
    reader.close()


def shown(server: Ready, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tool(server, *words, "--json")]


def test_json_has_message_id_topic_and_redelivery_count(server: Ready, client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "theirs")
    tool(server, "produce", topic, "-m", "a", "-k", "k")
    place = consumer.receive(timeout_millis=30_000).message_id()
    consumer.close()
    (found,) = shown(server, "consume", topic, "-s", "theirs")
    assert found["message_id"] == f"{place.ledger_id()}:{place.entry_id()}:-1"
    assert (found["topic"], found["key"], found["payload"]) == (topic, "k", "a")
    assert found["redelivery_count"] == 0
    text = tool(server, "read", topic, "-m", "earliest", "--print-metadata")[1]
    assert f", message-id:{found['message_id']}, producer-name:{found['producer_name']}, sequence-id:0" in text


def test_a_batch_of_which_a_part_was_printed_comes_again(server: Ready, client: pulsar.Client, topic: str) -> None:
    client.subscribe(topic, "ours").close()
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=1000)
    for index in range(5):
        producer.send_async(f"m{index}".encode(), lambda result, _: None)
    producer.flush()
    producer.close()
    assert [each["payload"] for each in shown(server, "consume", topic, "-s", "ours", "-n", "3")] == ["m0", "m1", "m2"]
    assert len(shown(server, "consume", topic, "-s", "ours", "-n", "5")) == 5


RECORD = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_messages_produced_with_a_schema_are_read_with_it(server: Ready, client: pulsar.Client, topic: str, kind: str) -> None:
    class Order(pulsar.schema.Record):  # type: ignore[misc]
        id = pulsar.schema.Long()
        note = pulsar.schema.String()

    schema = f"{kind}:{json.dumps(RECORD)}"
    tool(
        server,
        "produce",
        topic,
        "-vs",
        schema,
        "-m",
        '{"id": 7, "note": "fine"}',
        "-m",
        '{"id": 8}' if kind == "avro" else '{"id": 8, "note": null}',
    )
    found = shown(server, "consume", topic, "-s", "ours", "-p", "Earliest", "-n", "2", "-st", "auto_consume")
    assert [each["payload"] for each in found] == [{"id": 7, "note": "fine"}, {"id": 8, "note": None}]
    assert found[0]["schema_version"] == 0
    lines = tool(server, "read", topic, "-m", "earliest", "-st", "auto_consume")
    assert lines[1].endswith("content:{id=7, note=fine}")
    made = pulsar.schema.AvroSchema(None, schema_definition=RECORD) if kind == "avro" else pulsar.schema.JsonSchema(Order)
    consumer = client.subscribe(topic, "theirs", schema=made, initial_position=pulsar.InitialPosition.Earliest)
    value = consumer.receive(timeout_millis=30_000).value()
    assert (value["id"] if kind == "avro" else value.id) == 7
    consumer.close()


def test_a_message_that_does_not_fit_its_schema_is_refused(server: Ready, topic: str) -> None:
    command = [str(ROOT / "bin" / "pulsar-client"), "--url", server.broker_url, "produce", topic]
    words = ["-vs", f"avro:{json.dumps(RECORD)}", "-m", '{"note": "no id"}']
    ran = subprocess.run([*command, *words], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert ran.returncode == 1
    assert "message: the field id of Order is missing, and has no default" in ran.stderr


def test_a_schema_of_text_is_printed_as_apaches_tool_prints_it(server: Ready, topic: str) -> None:
    tool(server, "produce", topic, "-vs", "string", "-m", "hello,world")
    lines = tool(server, "consume", topic, "-s", "ours", "-p", "Earliest", "-st", "auto_consume")
    assert lines[1].endswith("content:{value=hello, type=class java.lang.String}")


def test_a_pattern_takes_all_topics_that_fit(server: Ready, topic: str) -> None:
    for name in (f"{topic}-a", f"{topic}-b", f"{topic}-c"):
        tool(server, "produce", name, "-m", name.rpartition("-")[2])
    words = ["consume", f"{topic}-[ab]", "--regex", "-s", "ours", "-p", "Earliest", "-n", "2"]
    assert {(each["topic"], each["payload"]) for each in shown(server, *words)} == {(f"{topic}-a", "a"), (f"{topic}-b", "b")}


def test_one_answering_address_of_several_is_enough(server: Ready, topic: str) -> None:
    host = server.broker_url.partition("://")[2]
    command = [
        str(ROOT / "bin" / "pulsar-client"),
        "--url",
        f"pulsar://127.0.0.1:{free_port()},{host}",
        "produce",
        topic,
        "-m",
        "a",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1 messages successfully produced\n")


def test_perf_measures_several_topics_producers_and_consumers(server: Ready, topic: str) -> None:
    several = ["-t", "2", "-n", "2", "-z", "ZSTD", "-mk", "autoIncrement"]
    assert perf(server, "produce", topic, *several, "-m", "1000", "-r", "0", "-s", "50")["messages"] == 1000
    shared = ["-t", "2", "-n", "2", "-st", "Shared", "-sp", "Earliest", "-ns", "2"]
    assert perf(server, "consume", topic, *shared, "-m", "2000")["messages"] == 2000
