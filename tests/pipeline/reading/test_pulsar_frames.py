"""Topics read without Spark: `pulsar_frames.read` and `pulsar_frames.batches`."""

import json
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

import pulsar
import pyarrow
import pytest
from pulsar.schema import AvroSchema, Integer, JsonSchema, Record, String, StringSchema

from pipeline import pulsar_frames
from pipeline.pyspark_pulsar.errors import NoSuchPosition, NoSuchTopic, Undecodable, Unreachable, WrongOption
from tests.clients.python_client import ask, names, published, quiet_client
from tests.clients.server_process import Ready
from tests.pipeline.chunk_sender import send_chunks
from tests.pipeline.scripted_broker import ScriptedBroker
from tests.pipeline.written_topics import made, put
from tests.started_process import ROOT

pytestmark = pytest.mark.clients


class Order(Record):  # type: ignore[misc]  # the client has no types
    """Record that is written."""

    number = Integer(required=True)
    city = String()


def read(server: Ready, topic: str | list[str], **more: Any) -> Any:
    return pulsar_frames.read(server.broker_url, topic, admin_url=server.web_url, **more)


def texts(table: Any) -> list[str]:
    return [each.decode() for each in table.column("value").to_pylist()]


def place(table: Any, row: int) -> str:
    found = table.column("message_id")[row].as_py()
    return f"{found['ledger_id']}:{found['entry_id']}"


@pytest.mark.parametrize("kind", [AvroSchema, JsonSchema])
def test_values_have_the_types_of_the_topics_schema(kind: Any, standalone: Ready, topic: str) -> None:
    client = quiet_client(standalone.broker_url)
    try:
        producer = client.create_producer(topic, schema=kind(Order))
        for number in range(3):
            producer.send(Order(number=number, city="Ulm"), partition_key="k", properties={"a": "b"})
    finally:
        client.close()
    found = read(standalone, topic)
    assert found.column("value").to_pylist() == [{"number": number, "city": "Ulm"} for number in range(3)]
    assert found.column("key").to_pylist() == [b"k"] * 3
    assert found.column("properties").to_pylist() == [[("a", "b")]] * 3
    assert read(standalone, topic, values="raw").schema.field("value").type == pyarrow.binary()


def test_a_topic_of_text_is_text_in_the_order_in_which_it_was_written(standalone: Ready, topic: str) -> None:
    client = quiet_client(standalone.broker_url)
    try:
        producer = client.create_producer(topic, schema=StringSchema())
        for text in ("one", "zwölf"):
            producer.send(text)
    finally:
        client.close()
    assert read(standalone, topic, columns=["value"]).to_pydict() == {"value": ["one", "zwölf"]}


def test_ledgers_and_partitions_come_whole_and_in_order(standalone: Ready, topic: str) -> None:
    made(standalone, topic, partitions=2)
    for first in (0, 10):
        for index in range(2):
            published(standalone, f"{topic}-partition-{index}", 10, first=first + 100 * index, batching=True)
            ask(standalone, f"{topic.replace('://', '/')}-partition-{index}/unload", {}, "PUT")
    found = read(standalone, topic)
    assert texts(found) == [*names(0, 20), *names(100, 20)]
    assert texts(read(standalone, [f"{topic}-partition-1", f"{topic}-partition-0"])) == [*names(100, 20), *names(0, 20)]


def test_a_range_is_given_by_places_or_by_times(standalone: Ready, topic: str) -> None:
    made(standalone, topic)
    published(standalone, topic, 10)
    whole = read(standalone, topic)
    assert texts(read(standalone, topic, start=place(whole, 2), end=place(whole, 5))) == names(2, 3)
    assert texts(read(standalone, topic, start="latest")) == []
    times = whole.column("publish_time").to_pylist()
    assert texts(read(standalone, topic, start=times[0], end=times[-1] + timedelta(seconds=1))) == names(0, 10)
    assert texts(read(standalone, topic, start=datetime.now(UTC) + timedelta(days=1))) == []


def test_an_empty_topic_is_an_empty_table_with_all_its_columns(standalone: Ready, topic: str) -> None:
    made(standalone, topic)
    found = read(standalone, topic)
    assert found.num_rows == 0
    assert found.schema.names[:3] == ["key", "value", "properties"]
    reader = pulsar_frames.batches(standalone.broker_url, topic, admin_url=standalone.web_url, columns=["index", "topic"])
    assert reader.schema.names == ["index", "topic"]
    assert list(reader) == []


def test_the_unacknowledged_messages_of_a_subscription_are_read_by_a_source_option(standalone: Ready, topic: str) -> None:
    client = quiet_client(standalone.broker_url)
    try:
        consumer = client.subscribe(topic, "work", pulsar.ConsumerType.Shared)
        published(standalone, topic, 10)
        for _ in range(4):
            consumer.acknowledge(consumer.receive(timeout_millis=60_000))
        consumer.close()
    finally:
        client.close()
    assert texts(read(standalone, topic, options={"unacknowledgedBy": "work"})) == names(4, 6)


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"columns": ["colour"]}, WrongOption, "option columns: colour: not there"),
        ({"columns": ["key", "key"]}, WrongOption, "option columns: key: there twice"),
        ({"columns": "key"}, WrongOption, "columns='key': expected a list of names"),
        ({"values": "text"}, WrongOption, "option values=TEXT: expected one of SCHEMA, RAW"),
        ({"start": "yesterday"}, WrongOption, "option startingOffsets=yesterday: expected earliest"),
        ({"start": "999999999:0"}, NoSuchPosition, "position 999999999:0 is beyond the end"),
        ({"options": {"colour": "red"}}, WrongOption, "option colour: not known"),
    ],
)
def test_an_impossible_read_is_refused_in_one_line(
    more: dict[str, Any], error: type[Exception], said: str, standalone: Ready, topic: str
) -> None:
    made(standalone, topic)
    with pytest.raises(error, match=said) as raised:
        read(standalone, topic, **more)
    assert "\n" not in str(raised.value)


def test_a_schema_that_cannot_become_columns_is_told_and_its_bytes_can_be_read(standalone: Ready, topic: str) -> None:
    made(standalone, topic)
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]}
    body = {"type": "AVRO", "schema": json.dumps(tree), "properties": {}}
    put(standalone, f"schemas/{topic.removeprefix('persistent://')}/schema", body, "POST")
    with pytest.raises(WrongOption, match=f"{topic}: its schema cannot become columns: type Tree contains itself.*values=raw"):
        read(standalone, topic)
    assert read(standalone, topic, values="raw").num_rows == 0


def test_a_topic_that_is_not_there_is_named(standalone: Ready, topic: str) -> None:
    with pytest.raises(NoSuchTopic, match=topic):
        read(standalone, topic)


def test_a_broker_that_is_not_there_and_a_wrong_token_are_named() -> None:
    absent: dict[str, Any] = {"admin_url": "http://127.0.0.1:9", "options": {"pollTimeoutMs": "200"}}
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
        pulsar_frames.read("pulsar://127.0.0.1:9", "orders", **absent)
    with (
        ScriptedBroker({}, token="right") as broker,
        pytest.raises(pulsar_frames.PipelineError, match="AuthenticationError: wrong token"),
    ):
        pulsar_frames.read(broker.url, "orders", auth_params="token:wrong", **absent)


def test_a_record_that_cannot_be_read_ends_the_iteration_with_its_own_error(standalone: Ready, topic: str) -> None:
    published(standalone, topic, 3)
    send_chunks(standalone, topic, [b"one", b"two"], first=1)
    with pytest.raises(Undecodable, match=f"{topic} at "):
        list(pulsar_frames.batches(standalone.broker_url, topic, admin_url=standalone.web_url))
    found = read(standalone, topic, options={"mode": "PERMISSIVE"})
    assert [each is None for each in found.column("error").to_pylist()] == [True] * 3 + [False]


def test_memory_for_batches_does_not_grow_with_the_topic(standalone: Ready, topic: str) -> None:
    """Sixty megabytes of values, of which never more than some blocks of four are held."""
    client = quiet_client(standalone.broker_url)
    try:
        producer = client.create_producer(topic, batching_enabled=False, block_if_queue_full=True)
        for _ in range(60):
            producer.send_async(bytes(1 << 20), lambda result, message_id: None)
        producer.flush()
    finally:
        client.close()
    rows, most = 0, pyarrow.total_allocated_bytes()
    before = most
    tracemalloc.start()
    try:
        for batch in pulsar_frames.batches(standalone.broker_url, topic, admin_url=standalone.web_url):
            rows, most = rows + batch.num_rows, max(most, pyarrow.total_allocated_bytes())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == 60
    assert peak + most - before < 40 << 20


def test_pyspark_is_not_imported() -> None:
    code = "import sys, pulsar_frames; print([name for name in sys.modules if name.partition('.')[0] in ('pyspark', 'pandas')])"
    environment = {"PYTHONPATH": f"{ROOT / 'pipeline'}:{ROOT}"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
