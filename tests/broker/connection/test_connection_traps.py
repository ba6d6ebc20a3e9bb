"""The traps of the protocol in handshake, keep-alive and lookups: where real clients hang or close on a wrong answer."""

import pytest

from broker.service.settings import BrokerSettings
from broker.topic.contract import LastMessage
from tests.broker.connection.peer import (
    TOPIC,
    U64_MAX,
    a_peer,
    connect,
    last_message_id,
    lookup,
    message,
    partitions,
    ping,
    play,
    producer,
    send,
    subscribe,
)
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

# ---- 1: required fields that are 0; -1 as 2 ** 64 - 1


def test_ids_that_are_zero_are_written() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = await peer.ask(producer(0, request_id=0))
            assert found.producer_success.HasField("request_id")
            peer.send(send(0, 0), message())
            receipt = (await peer.answer()).send_receipt
            assert receipt.HasField("producer_id")
            assert receipt.HasField("sequence_id")
            assert receipt.message_id.HasField("entry_id")
            assert (await peer.ask(subscribe(0, request_id=0))).success.HasField("request_id")
            peer.topic().consumers[0].sink.active_changed(False)
            change = (await peer.answer()).active_consumer_change
            assert change.HasField("consumer_id")
            assert change.HasField("is_active")

    play(scenario)


def test_an_empty_topic_has_the_last_message_minus_one_minus_one_as_unsigned_numbers() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            consumer.last = LastMessage(Position(5, -1), -1, Position(-1, -1))
            found = (await peer.ask(last_message_id())).get_last_message_id_response
            assert (found.last_message_id.ledger_id, found.last_message_id.entry_id) == (U64_MAX, U64_MAX)
            assert found.consumer_mark_delete_position.entry_id == U64_MAX

    play(scenario)


# ---- 2: CONNECTED


@pytest.mark.parametrize(("theirs", "answered"), [(21, 21), (99, 21), (12, 12), (1, 1), (0, 0), (-5, 0)])
def test_the_protocol_version_is_the_smaller_one(theirs: int, answered: int) -> None:
    async def scenario() -> None:
        async with a_peer(version=-1) as peer:
            found = (await peer.ask(connect(theirs))).connected
            assert found.protocol_version == answered
            assert found.max_message_size == 5 * 1024 * 1024

    play(scenario)


def test_the_feature_flags_are_those_of_apache_four() -> None:
    async def scenario() -> None:
        async with a_peer(version=-1) as peer:
            flags = (await peer.ask(connect())).connected.feature_flags
            assert {field.name for field, value in flags.ListFields() if value} == {
                "supports_topic_watchers",
                "supports_topic_watcher_reconcile",
                "supports_get_partitioned_metadata_without_auto_creation",
                "supports_repl_dedup_by_lid_and_eid",
            }

    play(scenario)


def test_without_watchers_no_client_is_told_that_there_are_any() -> None:
    async def scenario() -> None:
        async with a_peer(BrokerSettings(enable_broker_topic_list_watcher=False), version=-1) as peer:
            flags = (await peer.ask(connect())).connected.feature_flags
            assert (flags.supports_topic_watchers, flags.supports_topic_watcher_reconcile) == (False, False)
            assert flags.supports_get_partitioned_metadata_without_auto_creation

    play(scenario)


# ---- 3: PONG


def test_ping_is_answered_before_the_handshake() -> None:
    async def scenario() -> None:
        async with a_peer(version=-1) as peer:
            assert (await peer.ask(ping())).type == BaseCommand.PONG
            assert (await peer.ask(connect())).type == BaseCommand.CONNECTED

    play(scenario)


def test_ping_is_answered_while_publishes_are_under_way() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            for sequence_id in range(100):
                peer.send(send(1, sequence_id), message())
            assert (await peer.ask(ping())).type == BaseCommand.PONG
            taken.release()

    play(scenario)


# ---- 4, 5: lookups


@pytest.mark.parametrize("topic", ["t", "public/default/t", TOPIC])
def test_partitions_of_any_topic_are_answered_with_zero_and_a_response(topic: str) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(partitions(topic))).partition_metadata_response
            assert found.HasField("partitions")
            assert found.HasField("response")
            assert (found.partitions, found.response) == (0, api.CommandPartitionedTopicMetadataResponse.Success)

    play(scenario)


def test_a_partition_has_no_partitions() -> None:
    async def scenario() -> None:
        async with a_peer(BrokerSettings(allow_auto_topic_creation_type="partitioned", default_num_partitions=4)) as peer:
            assert (await peer.ask(partitions("t"))).partition_metadata_response.partitions == 4
            assert (await peer.ask(partitions("t-partition-3"))).partition_metadata_response.partitions == 0

    play(scenario)


def test_asking_for_partitions_without_creation_fails_for_a_topic_that_is_not_there() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(partitions("t", may_create=False))).partition_metadata_response
            assert found.response == api.CommandPartitionedTopicMetadataResponse.Failed
            assert found.error == api.TopicNotFound
            await peer.produce()
            found = (await peer.ask(partitions("t", may_create=False))).partition_metadata_response
            assert found.response == api.CommandPartitionedTopicMetadataResponse.Success

    play(scenario)


def test_a_lookup_gives_the_advertised_address() -> None:
    async def scenario() -> None:
        listeners = ("outside:pulsar://outside:7000", "outside:pulsar+ssl://outside:7001")
        async with a_peer(BrokerSettings(advertised_listeners=listeners)) as peer:
            found = (await peer.ask(lookup())).lookup_topic_response
            assert found.broker_service_url == "pulsar://broker:6650"
            assert found.response == api.CommandLookupTopicResponse.Connect
            assert found.authoritative
            found = (await peer.ask(lookup(advertised_listener_name="outside"))).lookup_topic_response
            assert (found.broker_service_url, found.broker_service_url_tls) == (
                "pulsar://outside:7000",
                "pulsar+ssl://outside:7001",
            )

    play(scenario)


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("a/b", api.InvalidTopicName),
        ("persistent://t/c/n/x", api.InvalidTopicName),
        ("persistent://nobody/nowhere/x", api.TopicNotFound),
    ],
)
def test_lookups_fail_in_their_own_response_and_never_with_service_not_ready(topic: str, error: int) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(lookup(topic))).lookup_topic_response
            assert (found.response, found.error) == (api.CommandLookupTopicResponse.Failed, error)
            told = (await peer.ask(partitions(topic))).partition_metadata_response
            assert (told.response, told.error) == (api.CommandPartitionedTopicMetadataResponse.Failed, error)

    play(scenario)


def test_an_unknown_listener_fails_one_lookup_and_not_the_connection_of_the_client() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(lookup(advertised_listener_name="nowhere"))).lookup_topic_response
            assert found.error == api.MetadataError

    play(scenario)
