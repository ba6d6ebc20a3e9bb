"""Consumers of one connection: subscribing, leaving, what they are asked, and what is refused to all."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from broker.connection.consumers.consumers import PROPERTIES_BYTES_MAX
from broker.errors import BrokerError, ServerError
from broker.topic.contract import KeySharedMeta, KeySharedMode, SubscriptionType
from tests.broker.connection.peer import Peer, a_peer, a_server, ack, flow, message, play, settle, subscribe
from tests.broker.fake_topics import entry_run
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

U64_MAX = (1 << 64) - 1
I64_MAX = (1 << 63) - 1


def close(consumer_id: int = 1) -> BaseCommand:
    asked = api.CommandCloseConsumer(consumer_id=consumer_id, request_id=40)
    return BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=asked)


def unsubscribe(consumer_id: int = 1, *, force: bool = False) -> BaseCommand:
    asked = api.CommandUnsubscribe(consumer_id=consumer_id, request_id=41, force=force)
    return BaseCommand(type=BaseCommand.UNSUBSCRIBE, unsubscribe=asked)


def stats(consumer_id: int = 1) -> BaseCommand:
    asked = api.CommandConsumerStats(consumer_id=consumer_id, request_id=42)
    return BaseCommand(type=BaseCommand.CONSUMER_STATS, consumer_stats=asked)


def test_the_topic_is_asked_for_what_the_client_said() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            ranges = api.KeySharedMeta(
                key_shared_mode=api.STICKY,
                hash_ranges=[api.IntRange(start=0, end=9), api.IntRange(start=100, end=65535)],
                allow_out_of_order_delivery=True,
            )
            consumer = await peer.consume(
                5,
                sub_type=api.CommandSubscribe.Key_Shared,
                consumer_name="me",
                priority_level=2,
                initial_position=api.CommandSubscribe.Earliest,
                key_shared_meta=ranges,
                subscription_properties=[api.KeyValue(key="a", value="b")],
                consumer_epoch=0,
                start_message_rollback_duration_sec=60,
                read_compacted=True,
            )
            asked = consumer.request
            assert (asked.consumer_id, asked.subscription, asked.type) == (5, "s", SubscriptionType.KEY_SHARED)
            assert (asked.consumer_name, asked.priority_level, asked.from_earliest) == ("me", 2, True)
            assert asked.key_shared == KeySharedMeta(KeySharedMode.STICKY, ((0, 9), (100, 65535)), True)
            assert (asked.subscription_properties, asked.consumer_epoch) == ({"a": "b"}, 0)
            assert (asked.start_rollback_seconds, asked.read_compacted) == (60, True)
            assert (asked.durable, asked.start, asked.auto_create_subscription) == (True, None, True)

    play(scenario)


@pytest.mark.parametrize(
    ("ids", "start"),
    [((7, 3), Position(7, 3)), ((U64_MAX, U64_MAX), Position(-1, -1)), ((I64_MAX, I64_MAX), Position(I64_MAX, I64_MAX))],
)
def test_a_reader_starts_at_the_message_it_names(ids: tuple[int, int], start: Position) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            told = api.MessageIdData(ledger_id=ids[0], entry_id=ids[1], batch_index=4)
            reader = await peer.consume(durable=False, start_message_id=told)
            assert (reader.request.durable, reader.request.start, reader.request.start_batch_index) == (False, start, 4)

    play(scenario)


def test_a_second_subscribe_is_told_to_wait_or_answered_like_the_first() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(subscribe(1, request_id=1))
            peer.send(subscribe(1, request_id=2))
            await settle()
            refused, accepted = peer.answers()
            assert (refused.error.request_id, refused.error.error) == (2, api.ServiceNotReady)
            assert accepted.success.request_id == 1
            assert (await peer.ask(subscribe(1, request_id=3))).success.request_id == 3
            assert len(peer.topic().consumers) == 1

    play(scenario)


def test_a_refused_consumer_may_try_again() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce()
            peer.topic().failure = BrokerError(ServerError.CONSUMER_BUSY, "taken")
            assert (await peer.ask(subscribe())).error.error == api.ConsumerBusy
            peer.topic().failure = None
            await peer.consume()

    play(scenario)


def test_a_peer_that_knows_no_batches_may_not_consume() -> None:
    async def scenario() -> None:
        async with a_peer(version=3) as peer:
            assert (await peer.ask(subscribe())).error.error == api.UnsupportedVersionError

    play(scenario)


@pytest.mark.parametrize(("version", "has_checksums"), [(4, False), (6, False), (10, False), (11, True), (21, True)])
def test_peers_below_version_11_get_messages_without_checksums(version: int, has_checksums: bool) -> None:
    async def scenario() -> None:
        async with a_peer(version=version) as peer:
            consumer = await peer.consume()
            plain = message(b"never had one")[6:]
            stored = [message(b"one"), plain, b"\x0e\x02" + (2).to_bytes(4) + b"\x08\x01" + message(b"three")]
            consumer.sink.deliver(entry_run(7, 3, stored), range(3), [0, 2, 0], {0: (5,)}, None)
            await settle()
            frames = peer.frames()
            skipped = 0 if has_checksums else 6
            assert [payload for _, payload in frames] == [stored[0][skipped:], plain, message(b"three")[skipped:]]
            assert [command.message.message_id.entry_id for command, _ in frames] == [3, 4, 5]
            assert [command.message.redelivery_count for command, _ in frames] == [0, 2, 0]
            assert list(frames[0][0].message.ack_set) == [5]

    play(scenario)


def test_the_properties_of_a_cumulative_ack_reach_the_topic_as_javas_longs() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            pairs = [api.KeyLongValue(key="a", value=5), api.KeyLongValue(key="b", value=(1 << 64) - 1)]
            peer.send(ack(1, (7, 5), ack_type=api.CommandAck.Cumulative, properties=pairs))
            assert consumer.acks[0].properties == {"a": 5, "b": -1}
            much = [api.KeyLongValue(key="k" * PROPERTIES_BYTES_MAX, value=1)]
            told = await peer.ask(ack(1, (7, 6), ack_type=api.CommandAck.Cumulative, properties=much, request_id=3))
            assert told.ack_response.error == api.NotAllowedError
            assert len(consumer.acks) == 1

    play(scenario)


def test_closing_succeeds_whether_the_consumer_is_there_or_not() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            assert (await peer.ask(close())).success.request_id == 40
            assert consumer.is_closed
            assert (await peer.ask(close())).success.request_id == 40

    play(scenario)


def test_a_consumer_closed_while_it_was_pending_does_not_stay_on_the_topic() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce()
            wait = peer.topic().wait = asyncio.Event()
            peer.send(subscribe())
            await settle()
            assert (await peer.ask(close())).type == BaseCommand.SUCCESS
            wait.set()
            await settle()
            assert (peer.answers(), peer.topic().consumers[0].is_closed) == ([], True)

    play(scenario)


def test_unsubscribing_is_answered_with_success_alone() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            assert (await peer.ask(unsubscribe(force=True))).success.request_id == 41
            assert consumer.unsubscribes == [True]
            found = (await peer.ask(unsubscribe())).error
            assert (found.error, found.message) == (api.MetadataError, "Consumer not found")

    play(scenario)


def test_a_refused_unsubscribe_leaves_the_consumer() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            consumer.failure = BrokerError(ServerError.CONSUMER_BUSY, "others are connected")
            assert (await peer.ask(unsubscribe())).error.error == api.ConsumerBusy
            peer.send(flow(1, 5))
            assert consumer.permits == [5]
            consumer.sink.closed("unloaded")
            assert (await peer.answer()).type == BaseCommand.CLOSE_CONSUMER

    play(scenario)


def test_seeking_tells_all_consumers_of_the_subscription_also_on_other_connections() -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):
            one, two = Peer(listener, topics), Peer(listener, topics)
            await one.connect()
            await two.connect()
            first, second = await one.consume(1), await two.consume(1)

            async def seek_both(publish_time_ms: int) -> None:
                first.sink.closed("seek")
                second.sink.closed("seek")

            first.seek_by_time = seek_both  # type: ignore[method-assign]
            asked = api.CommandSeek(consumer_id=1, request_id=1, message_publish_time=0)
            one.send(BaseCommand(type=BaseCommand.SEEK, seek=asked))
            await settle()
            assert [each.type for each in one.answers()] == [BaseCommand.CLOSE_CONSUMER, BaseCommand.SUCCESS]
            assert [each.type for each in two.answers()] == [BaseCommand.CLOSE_CONSUMER]
            await one.consume(1)

    play(scenario)


def test_statistics_of_a_consumer() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.consume(sub_type=api.CommandSubscribe.Shared, consumer_name="me")
            found = (await peer.ask(stats())).consumer_stats_response
            assert (found.request_id, found.consumer_name, found.type) == (42, "me", "Shared")
            assert (found.msg_rate_out, found.available_permits, found.unacked_messages) == (1.5, 7, 3)
            assert (found.msg_backlog, found.address) == (12, "10.0.0.9:40001")
            assert found.connected_since == "2023-11-14T22:13:20.123+00:00"
            assert (await peer.ask(stats(9))).consumer_stats_response.error_code == api.ConsumerNotFound

    play(scenario)


def test_a_read_of_many_acks_is_one_run() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            peer.feed(b"".join(encode(ack(1, (7, index))) for index in range(300)))
            (run,) = consumer.ack_runs
            assert list(run.entry_ids) == list(range(300))

    play(scenario)


def test_deliveries_to_several_consumers_in_one_turn_are_one_write() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumers = [await peer.consume(index) for index in range(10)]
            before = peer.transport.writes
            for consumer in consumers:
                consumer.sink.deliver(entry_run(7, 0, [message()]), range(1), None, None, None)
            await settle()
            assert [command.message.consumer_id for command in peer.answers()] == list(range(10))
            assert peer.transport.writes == before + 1

    play(scenario)


def test_nothing_is_delivered_to_a_peer_that_is_gone() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            peer.transport.close()
            await settle()
            assert consumer.is_closed
            consumer.sink.deliver(entry_run(7, 0, [message()]), range(1), None, None, None)
            consumer.sink.closed("unloaded")
            await settle()
            assert peer.frames() == []

    play(scenario)


TRANSACTIONS = [
    BaseCommand(type=BaseCommand.NEW_TXN, new_txn=api.CommandNewTxn(request_id=3)),
    BaseCommand(
        type=BaseCommand.TC_CLIENT_CONNECT_REQUEST,
        tc_client_connect_request=api.CommandTcClientConnectRequest(request_id=3, tc_id=0),
    ),
    BaseCommand(type=BaseCommand.ADD_PARTITION_TO_TXN, add_partition_to_txn=api.CommandAddPartitionToTxn(request_id=3)),
    BaseCommand(
        type=BaseCommand.ADD_SUBSCRIPTION_TO_TXN, add_subscription_to_txn=api.CommandAddSubscriptionToTxn(request_id=3)
    ),
    BaseCommand(type=BaseCommand.END_TXN, end_txn=api.CommandEndTxn(request_id=3)),
    BaseCommand(type=BaseCommand.END_TXN_ON_PARTITION, end_txn_on_partition=api.CommandEndTxnOnPartition(request_id=3)),
    BaseCommand(
        type=BaseCommand.END_TXN_ON_SUBSCRIPTION, end_txn_on_subscription=api.CommandEndTxnOnSubscription(request_id=3)
    ),
]


@pytest.mark.parametrize("command", TRANSACTIONS, ids=lambda command: BaseCommand.Type.Name(command.type))
def test_transactions_are_not_enabled(command: BaseCommand) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(command)).error
            assert (found.request_id, found.error) == (3, api.NotAllowedError)
            assert found.message == "Transactions are not enabled."

    play(scenario)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topic": "t", "schema_version": b""}, api.IncompatibleSchema),
        ({"topic": "a/b"}, api.InvalidTopicName),
        ({"topic": "t", "schema_version": bytes(8)}, api.TopicNotFound),
    ],
)
def test_the_error_of_a_schema_request_is_in_its_response(fields: dict[str, Any], error: int) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            asked = api.CommandGetSchema(request_id=3, **fields)
            found = (await peer.ask(BaseCommand(type=BaseCommand.GET_SCHEMA, get_schema=asked))).get_schema_response
            assert (found.request_id, found.error_code) == (3, error)

    play(scenario)


AVRO = b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WIDER = b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}'
OTHER = b'{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'


def get_schema(version: bytes | None = None) -> BaseCommand:
    asked = api.CommandGetSchema(request_id=3, topic="t")
    if version is not None:
        asked.schema_version = version
    return BaseCommand(type=BaseCommand.GET_SCHEMA, get_schema=asked)


def bring_schema(definition: bytes, topic: str = "t", kind: str = "Avro") -> BaseCommand:
    schema = api.Schema(name="s", schema_data=definition, type=kind)
    asked = api.CommandGetOrCreateSchema(request_id=4, topic=topic, schema=schema)
    return BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA, get_or_create_schema=asked)


def test_a_schema_is_kept_its_versions_are_told_and_what_does_not_fit_is_refused() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            assert (await peer.ask(get_schema())).get_schema_response.error_code == api.TopicNotFound
            assert (await peer.ask(bring_schema(AVRO))).get_or_create_schema_response.error_code == api.TopicNotFound
            await peer.produce(1)
            told = (await peer.ask(bring_schema(AVRO))).get_or_create_schema_response
            assert (told.HasField("error_code"), told.schema_version) == (False, bytes(8))
            told = (await peer.ask(bring_schema(WIDER))).get_or_create_schema_response
            assert told.schema_version == bytes(7) + b"\1"
            told = (await peer.ask(bring_schema(OTHER))).get_or_create_schema_response
            assert told.error_code == api.IncompatibleSchema
            told = (await peer.ask(bring_schema(b"", kind="NoSchema"))).get_or_create_schema_response
            assert (told.HasField("error_code"), told.schema_version) == (False, b"")
            found = (await peer.ask(get_schema())).get_schema_response
            assert (found.schema.schema_data, found.schema_version) == (WIDER, bytes(7) + b"\1")
            found = (await peer.ask(get_schema(bytes(8)))).get_schema_response
            assert (found.schema.schema_data, found.schema.type) == (AVRO, api.Schema.Avro)
            assert (await peer.ask(get_schema(bytes(7) + b"\7"))).get_schema_response.error_code == api.TopicNotFound

    play(scenario)


def test_the_first_consumer_of_an_empty_topic_says_what_its_schema_is_and_others_must_be_able_to_read_it() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            avro = api.Schema(name="s", schema_data=AVRO, type=api.Schema.Avro)
            assert (await peer.ask(subscribe(schema=avro))).type == BaseCommand.SUCCESS
            assert (await peer.ask(get_schema())).get_schema_response.schema.schema_data == AVRO
            other = api.Schema(name="s", schema_data=OTHER, type=api.Schema.Avro)
            found = await peer.ask(subscribe(2, request_id=21, schema=other))
            assert (found.error.request_id, found.error.error) == (21, api.IncompatibleSchema)

    play(scenario)


def test_a_consumer_with_a_schema_does_not_make_one_for_a_topic_that_is_in_use_without() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(1)
            peer.topic().now = replace(peer.topic().now, is_schema_open=False)
            avro = api.Schema(name="s", schema_data=AVRO, type=api.Schema.Avro)
            found = await peer.ask(subscribe(schema=avro))
            assert found.error.error == api.IncompatibleSchema
            assert "empty(BYTES) schema: new schema type AVRO" in found.error.message
            assert (await peer.ask(get_schema())).get_schema_response.error_code == api.TopicNotFound

    play(scenario)
