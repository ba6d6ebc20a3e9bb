"""Schemas with Apache's client for Python and the admin REST of a started standalone."""

import json
import urllib.error
import urllib.request
import uuid
from typing import Any

import pulsar
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import StringValue
from pulsar.schema import AvroSchema, Integer, JsonSchema, ProtobufNativeSchema, Record, String

from tests.clients.python_client import ask
from tests.clients.server_process import Ready

pytestmark = pytest.mark.clients


class One(Record):  # type: ignore[misc]  # the client library has no types
    """Record that is published first."""

    a = Integer(required=True)


class Two(Record):  # type: ignore[misc]  # as above
    """Record that cannot follow it."""

    a = String(required=True)


def rest(server: Ready, method: str, topic: str, path: str, body: Any = None) -> tuple[int, Any]:
    name = topic.removeprefix("persistent://")
    data = None if body is None else json.dumps(body).encode()
    url = f"{server.web_url}/admin/v2/schemas/{name}/{path}"
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_records_go_through_and_what_does_not_fit_is_refused_as_such(client: pulsar.Client, server: Ready, topic: str) -> None:
    consumer = client.subscribe(topic, "s", schema=JsonSchema(One))
    producer = client.create_producer(topic, schema=JsonSchema(One))
    producer.send(One(a=7))
    assert consumer.receive(timeout_millis=30_000).value().a == 7
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=JsonSchema(Two))
    with pytest.raises(pulsar.IncompatibleSchema):
        client.subscribe(topic, "other", schema=JsonSchema(Two))
    status, found = rest(server, "GET", topic, "schema")
    assert (status, found["version"], found["type"]) == (200, 0, "JSON")
    assert [field["name"] for field in json.loads(found["data"])["fields"]] == ["a"]


def first_person() -> Any:
    class Person(Record):  # type: ignore[misc]  # as above
        name = String()

    return Person


def second_person() -> Any:
    """Record that reads the first one's messages, and the other way round."""

    class Person(Record):  # type: ignore[misc]  # as above
        name = String()
        color = String(required_default=True)

    return Person


def test_a_new_version_reads_what_the_old_one_wrote_and_the_old_one_what_is_new(client: pulsar.Client, topic: str) -> None:
    first, second = first_person(), second_person()
    old, young = (client.create_producer(topic, schema=AvroSchema(each)) for each in (first, second))
    behind, ahead = (client.subscribe(topic, name, schema=AvroSchema(each)) for name, each in (("1", first), ("2", second)))
    old.send(first(name="a"))
    young.send(second(name="b", color="red"))
    for consumer, colors in ((behind, None), (ahead, [None, "red"])):
        values = [consumer.receive(timeout_millis=30_000).value() for _ in range(2)]
        assert [each.name for each in values] == ["a", "b"]
        assert colors is None or [each.color for each in values] == colors
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=AvroSchema(One))
    for each in (old, young, behind, ahead):
        each.close()


def test_messages_of_protobuf_are_read_with_their_schema_and_others_are_refused(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, schema=ProtobufNativeSchema(Timestamp))
    consumer = client.subscribe(topic, "s", schema=ProtobufNativeSchema(Timestamp))
    producer.send(Timestamp(seconds=7))
    assert consumer.receive(timeout_millis=30_000).value().seconds == 7
    for other in (ProtobufNativeSchema(StringValue), AvroSchema(One)):
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic, schema=other)
    producer.close()
    consumer.close()


def test_a_producer_without_a_schema_is_refused_where_the_namespace_enforces_one(client: pulsar.Client, server: Ready) -> None:
    namespace = f"public/enforced-{uuid.uuid4().hex[:12]}"
    ask(server, f"namespaces/{namespace}", {}, "PUT")
    ask(server, f"namespaces/{namespace}/schemaValidationEnforced", True, "POST")
    topic = f"persistent://{namespace}/t"
    client.create_producer(topic).close()  # it has none yet
    producer = client.create_producer(topic, schema=JsonSchema(One))
    raw = client.subscribe(topic, "raw")
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic)
    producer.send(One(a=7))
    assert json.loads(raw.receive(timeout_millis=30_000).data()) == {"a": 7}
    producer.close()
    raw.close()


def test_an_operator_makes_checks_finds_and_deletes_versions(server: Ready, topic: str) -> None:
    def record(kind: str) -> dict[str, Any]:
        schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})
        return {"type": "AVRO", "schema": schema, "properties": {"p": "1"}}

    assert rest(server, "GET", topic, "schema")[0] == 404
    assert rest(server, "POST", topic, "schema", record("int")) == (200, {"version": {"version": 0}})
    assert rest(server, "POST", topic, "compatibility", record("string")) == (
        202,
        {"schemaCompatibilityStrategy": "FULL", "compatibility": False},
    )
    assert rest(server, "POST", topic, "schema", record("string"))[0] == 409
    assert rest(server, "POST", topic, "schema", {"type": "AVRO", "schema": "{]"})[0] == 422
    for nothing in ("NIX", "AUTO_CONSUME", "PROTOBUF_NATIVE", "KEY_VALUE"):
        assert rest(server, "POST", topic, "schema", {"type": nothing, "schema": "{}"})[0] == 422
    assert rest(server, "POST", topic, "version", record("int")) == (200, {"version": 0})
    assert rest(server, "POST", topic, "version", record("string")) == (200, {"version": -1})
    status, found = rest(server, "GET", topic, "schemas")
    assert (status, [each["properties"] for each in found["getSchemaResponses"]]) == (200, [{"p": "1"}])
    assert rest(server, "GET", topic, "metadata")[1]["info"]["version"] == 0
    ask(server, topic.replace("://", "/"), {}, "PUT")
    [ledger] = ask(server, f"{topic.replace('://', '/')}/internalStats")["schemaLedgers"]
    assert ledger["ledgerId"] == rest(server, "GET", topic, "metadata")[1]["info"]["ledgerId"]
    assert (ledger["entries"], ledger["size"] > 0, ledger["offloaded"], ledger["underReplicated"]) == (1, True, False, False)
    assert rest(server, "DELETE", topic, "schema") == (200, {"version": 1})
    assert rest(server, "GET", topic, "schema/0")[0] == 404
    assert rest(server, "DELETE", topic, "schema?force=true") == (200, {"version": -1})
    pair: dict[str, Any] = {
        "type": "KEY_VALUE",
        "schema": '{"key":{"type":"record","name":"K","fields":[]},"value":""}',
        "properties": {"key.schema.type": "JSON", "value.schema.type": "STRING"},
    }
    assert rest(server, "POST", topic, "schema", pair) == (200, {"version": {"version": 0}})
    assert json.loads(rest(server, "GET", topic, "schema")[1]["data"]) == json.loads(pair["schema"])


def test_a_topic_that_is_deleted_takes_its_schemas_with_it(client: pulsar.Client, server: Ready, topic: str) -> None:
    client.create_producer(topic, schema=JsonSchema(One)).close()
    name = topic.removeprefix("persistent://")
    urllib.request.urlopen(
        urllib.request.Request(f"{server.web_url}/admin/v2/persistent/{name}", method="DELETE"), timeout=30
    ).close()
    assert rest(server, "GET", topic, "schema")[0] == 404
    client.create_producer(topic, schema=JsonSchema(Two)).close()
    assert rest(server, "GET", topic, "schema")[1]["version"] == 0
