"""Bytes as a schema that a client brings (type None on the wire, as Go's does): a version like others, as with Apache."""

from dataclasses import replace
from typing import Any

from tests.broker.connection.peer import a_peer, play, producer, subscribe
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

BYTES = api.Schema(name="Bytes", schema_data=b"", type="NoSchema", properties=[{"key": "a", "value": "b"}])
STRING = api.Schema(name="String", schema_data=b"", type="String")
FIRST_VERSION = bytes(8)
TOPIC = "persistent://public/default/t"


def get_schema(**fields: Any) -> BaseCommand:
    return BaseCommand(type=BaseCommand.GET_SCHEMA, get_schema=api.CommandGetSchema(request_id=3, topic=TOPIC, **fields))


def test_the_version_that_a_producer_of_bytes_is_told_can_be_asked_for() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            assert (await peer.ask(producer(1, schema=BYTES))).producer_success.schema_version == FIRST_VERSION
            found = (await peer.ask(get_schema(schema_version=FIRST_VERSION))).get_schema_response.schema
            assert (found.type, found.schema_data, found.name) == (api.Schema.NoSchema, b"", "public/default/t")
            assert str(found.properties[0]).split() == ["key:", '"a"', "value:", '"b"']
            assert (await peer.ask(producer(2, schema=BYTES))).producer_success.schema_version == FIRST_VERSION

    play(scenario)


def test_asked_for_a_version_of_bytes_the_broker_names_none_and_stores_none() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(1)
            asked = api.CommandGetOrCreateSchema(request_id=4, topic=TOPIC, schema=BYTES)
            found = await peer.ask(BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA, get_or_create_schema=asked))
            assert found.get_or_create_schema_response.schema_version == b""
            refused = (await peer.ask(get_schema())).get_schema_response
            assert (refused.error_code, TOPIC in refused.error_message) == (api.TopicNotFound, True)

    play(scenario)


def test_bytes_and_text_are_two_types() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(1, schema=BYTES)
            assert (await peer.ask(producer(2, schema=STRING))).error.error == api.IncompatibleSchema
            assert (await peer.ask(subscribe(1, schema=STRING))).error.error == api.IncompatibleSchema
            await peer.consume(2, schema=BYTES, sub_type=api.CommandSubscribe.Shared)
            await peer.consume(3, sub_type=api.CommandSubscribe.Shared)

    play(scenario)


def test_a_consumer_of_bytes_says_what_an_unused_topic_has_and_is_refused_where_others_write_without_a_schema() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.consume(1, schema=BYTES)
            assert (await peer.ask(get_schema())).get_schema_response.schema_version == FIRST_VERSION
            other = "persistent://public/default/used"
            await peer.produce(1, other)
            peer.topic(other).now = replace(peer.topic(other).now, is_schema_open=False)
            refused = (await peer.ask(subscribe(2, other, schema=BYTES))).error
            assert (refused.error, "empty(BYTES) schema" in refused.message) == (api.IncompatibleSchema, True)

    play(scenario)
