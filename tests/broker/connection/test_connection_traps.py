"""The traps of the protocol that concern connections: where real clients hang, loop or close when an answer is wrong."""

from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.service.settings import BrokerSettings
from broker.topic.contract import LastMessage
from tests.broker.connection.peer import (
    TOPIC,
    a_peer,
    ack,
    connect,
    flow,
    message,
    ping,
    play,
    producer,
    send,
    settle,
    subscribe,
)
from tests.broker.fake_topics import entry_run
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

U64_MAX = (1 << 64) - 1


def lookup(topic: str = TOPIC, **fields: Any) -> BaseCommand:
    return BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=api.CommandLookupTopic(topic=topic, request_id=0, **fields))


def partitions(topic: str, *, may_create: bool = True) -> BaseCommand:
    asked = api.CommandPartitionedTopicMetadata(topic=topic, request_id=0, metadata_auto_creation_enabled=may_create)
    return BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partition_metadata=asked)


def seek(consumer_id: int = 1, **fields: Any) -> BaseCommand:
    asked = api.CommandSeek(consumer_id=consumer_id, request_id=30, **fields)
    return BaseCommand(type=BaseCommand.SEEK, seek=asked)


def last_message_id(consumer_id: int = 1) -> BaseCommand:
    asked = api.CommandGetLastMessageId(consumer_id=consumer_id, request_id=31)
    return BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, get_last_message_id=asked)


def redeliver(consumer_id: int = 1, *ids: tuple[int, int], **fields: Any) -> BaseCommand:
    asked = api.CommandRedeliverUnacknowledgedMessages(consumer_id=consumer_id, **fields)
    for ledger_id, entry_id in ids:
        asked.message_ids.add(ledger_id=ledger_id, entry_id=entry_id)
    return BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliver_unacknowledged_messages=asked)


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


def test_an_empty_topic_has_the_last_entry_minus_one_as_an_unsigned_number() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            consumer.last = LastMessage(Position(5, -1), -1, Position(-1, -1))
            found = (await peer.ask(last_message_id())).get_last_message_id_response
            assert (found.last_message_id.ledger_id, found.last_message_id.entry_id) == (5, U64_MAX)
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
        ("non-persistent://public/default/x", api.NotAllowedError),
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


# ---- 6, 7: receipts and send errors


def test_receipts_come_in_the_order_of_sends_and_echo_both_sequence_ids() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            for first in (0, 10, 20):
                peer.send(send(1, first, highest_sequence_id=first + 9, num_messages=10), message())
            taken.release()
            await settle()
            receipts = [command.send_receipt for command in peer.answers()]
            assert [(each.sequence_id, each.highest_sequence_id) for each in receipts] == [(0, 9), (10, 19), (20, 29)]
            assert [each.message_id.entry_id for each in receipts] == [0, 1, 2]

    play(scenario)


def broken(payload: bytes) -> bytes:
    return payload[:-1] + bytes([payload[-1] ^ 1])


def test_a_checksum_error_keeps_its_place_among_the_receipts() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.is_held = True
            peer.send(send(1, 0), message())
            peer.send(send(1, 1), broken(message()))
            peer.send(send(1, 2), message())
            await settle()
            assert peer.answers() == []
            taken.release(1)
            await settle()
            first, second = peer.answers()
            assert first.send_receipt.sequence_id == 0
            assert (second.send_error.sequence_id, second.send_error.error) == (1, api.ChecksumError)
            taken.release()
            assert (await peer.answer()).send_receipt.sequence_id == 2
            assert len(taken.payloads) == 2

    play(scenario)


def test_what_a_go_client_survives_is_what_refused_messages_get() -> None:
    """Any SEND_ERROR but NotAllowed and TopicTerminated makes it close the connection."""

    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce()
            message_id = api.MessageIdData(ledger_id=1, entry_id=1)
            for fields in ({"txnid_most_bits": 1, "txnid_least_bits": 2}, {"message_id": message_id}, {"num_messages": -3}):
                peer.send(send(1, 5, **fields), message())
                found = (await peer.answer()).send_error
                assert (found.producer_id, found.sequence_id, found.error) == (1, 5, api.NotAllowedError)

    play(scenario)


# ---- 8, 9: PRODUCER_SUCCESS


def test_the_last_sequence_id_is_minus_one_without_deduplication() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = (await peer.ask(producer())).producer_success
            assert found.HasField("last_sequence_id")
            assert found.last_sequence_id == -1
            assert found.producer_name == "standalone-0-0"
            assert found.producer_ready

    play(scenario)


def test_a_waiting_producer_gets_two_successes_for_one_request() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(9)
            peer.topic().producer_is_ready = False
            found = (await peer.ask(producer(1, request_id=77, producer_access_mode=api.WaitForExclusive))).producer_success
            assert (found.request_id, found.producer_ready) == (77, False)
            taken = peer.topic().producers[-1]
            taken.is_ready = True
            taken.sink.ready(4)
            found = (await peer.answer()).producer_success
            assert (found.request_id, found.producer_ready, found.topic_epoch) == (77, True, 4)
            peer.send(send(1, 0), message())
            assert (await peer.answer()).send_receipt.producer_id == 1

    play(scenario)


def test_a_waiting_producer_that_is_fenced_out_gets_an_error_for_its_request() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce(9)
            peer.topic().producer_is_ready = False
            await peer.ask(producer(1, request_id=77))
            peer.topic().producers[-1].sink.refused(ServerError.PRODUCER_FENCED, "fenced")
            found = (await peer.answer()).error
            assert (found.request_id, found.error) == (77, api.ProducerFenced)

    play(scenario)


# ---- 10 to 13, 16, 17: consumers


def test_permits_that_come_before_the_success_are_not_lost() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(subscribe())
            peer.send(flow(1, 100))
            peer.send(flow(1, 50))
            assert (await peer.answer()).type == BaseCommand.SUCCESS
            assert peer.topic().consumers[0].permits == [150]

    play(scenario)


def test_ack_sets_pass_as_they_are_in_acks_seeks_and_messages() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            told = ack(1)
            told.ack.message_id.add(ledger_id=7, entry_id=3, ack_set=[-2, 5], batch_size=70)
            peer.send(told)
            assert consumer.acks[0].positions == (Position(7, 3),)
            assert consumer.acks[0].ack_sets == ((-2, 5),)
            assert consumer.acks[0].batch_sizes == (70,)
            consumer.sink.deliver(entry_run(7, 3, [message()]), range(1), [2], {0: [-2, 5]}, 9)
            found = (await peer.answer()).message
            assert list(found.ack_set) == [-2, 5]
            assert (found.redelivery_count, found.consumer_epoch) == (2, 9)
            message_id = api.MessageIdData(ledger_id=7, entry_id=3, ack_set=[6])
            peer.send(seek(message_id=message_id))
            await settle()
            assert consumer.seeks == [(Position(7, 3), (6,))]

    play(scenario)


def test_redelivery_of_nothing_in_particular_is_redelivery_of_all() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            peer.send(redeliver())
            peer.send(redeliver(1, (7, 3), (7, 4), consumer_epoch=2))
            peer.send(redeliver(99))
            assert consumer.redeliveries == [([], None), ([Position(7, 3), Position(7, 4)], 2)]
            assert peer.answers() == []

    play(scenario)


def test_an_epoch_that_was_not_given_is_not_stamped() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            assert consumer.request.consumer_epoch is None
            consumer.sink.deliver(entry_run(7, 0, [message()]), range(1), None, None, None)
            found = (await peer.answer()).message
            assert not found.HasField("consumer_epoch")
            assert not found.ack_set

    play(scenario)


@pytest.mark.parametrize("by_time", [False, True])
def test_seek_closes_the_consumer_first_then_succeeds_and_waits_for_nobody(by_time: bool) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            if by_time:
                peer.send(seek(message_publish_time=1234))
            else:
                peer.send(seek(message_id=api.MessageIdData(ledger_id=U64_MAX, entry_id=U64_MAX)))
            await settle()
            closed, success = peer.answers()
            assert (closed.close_consumer.consumer_id, closed.close_consumer.request_id) == (1, U64_MAX)
            assert success.success.request_id == 30
            assert consumer.seeks == [1234 if by_time else (Position(-1, -1), ())]

    play(scenario)


def test_seek_to_nothing_or_of_nobody_is_a_metadata_error() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.consume()
            assert (await peer.ask(seek())).error.error == api.MetadataError
            assert (await peer.ask(seek(99, message_publish_time=1))).error.error == api.MetadataError

    play(scenario)


def test_the_last_message_id_has_its_batch_index_and_the_mark_delete_position() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            consumer.last = LastMessage(Position(7, 41), 9, Position(7, 12))
            found = (await peer.ask(last_message_id())).get_last_message_id_response
            told = found.last_message_id
            assert (told.ledger_id, told.entry_id, told.batch_index, told.partition) == (7, 41, 9, -1)
            assert found.consumer_mark_delete_position.entry_id == 12
            assert (await peer.ask(last_message_id(99))).error.error == api.MetadataError

    play(scenario)


def test_an_ack_is_answered_if_and_only_if_it_has_a_request_id() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            peer.send(ack(1, (7, 3)))
            await settle()
            assert peer.answers() == []
            found = (await peer.ask(ack(1, (7, 4), request_id=0))).ack_response
            assert (found.HasField("request_id"), found.HasField("error")) == (True, False)
            assert (await peer.ask(ack(1, request_id=5))).ack_response.request_id == 5
            consumer.failure = BrokerError(ServerError.NOT_ALLOWED, "no")
            peer.send(ack(1, (7, 5), ack_type=api.CommandAck.Cumulative))
            await settle()
            assert peer.answers() == []
            found = (await peer.ask(ack(1, (7, 5), request_id=6))).ack_response
            assert (found.error, found.message) == (api.NotAllowedError, "no")
            assert (await peer.ask(ack(99, (7, 5), request_id=7))).ack_response.error == api.ConsumerNotFound
            found = (await peer.ask(ack(1, (7, 5), txnid_most_bits=1, txnid_least_bits=2, request_id=8))).ack_response
            assert (found.error, found.txnid_most_bits, found.txnid_least_bits) == (api.NotAllowedError, 1, 2)

    play(scenario)


def test_old_peers_are_not_told_of_what_they_do_not_know() -> None:
    async def scenario() -> None:
        async with a_peer(version=8) as peer:
            consumer = await peer.consume()
            consumer.sink.active_changed(True)
            consumer.sink.reached_end_of_topic()
            await settle()
            assert peer.answers() == []

    play(scenario)


# ---- 18: CLOSE by the broker


def test_the_broker_closes_with_a_request_id_of_minus_one() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken, consumer = await peer.produce(), await peer.consume()
            taken.sink.closed("unloaded")
            consumer.sink.closed("unloaded")
            await settle()
            first, second = peer.answers()
            assert (first.close_producer.producer_id, first.close_producer.request_id) == (1, U64_MAX)
            assert (second.close_consumer.consumer_id, second.close_consumer.request_id) == (1, U64_MAX)
            assert not peer.transport.closed

    play(scenario)


# ---- 20, 22


def test_broker_entry_metadata_is_not_sent_to_clients() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            stored = b"\x0e\x02" + (3).to_bytes(4) + b"\x08\x01\x10" + message()
            consumer.sink.deliver(entry_run(7, 0, [stored]), range(1), None, None, None)
            await settle()
            ((_, payload),) = peer.frames()
            assert payload == message()

    play(scenario)


def test_a_client_of_version_12_without_flags_publishes_and_consumes_batches() -> None:
    async def scenario() -> None:
        async with a_peer(version=12) as peer:
            await peer.produce()
            peer.send(send(1, 0, num_messages=10), message())
            assert (await peer.answer()).send_receipt.sequence_id == 0
            consumer = await peer.consume()
            consumer.sink.deliver(entry_run(7, 0, [message()]), range(1), None, None, None)
            await settle()
            ((_, payload),) = peer.frames()
            assert payload == message()

    play(scenario)


def test_a_partition_says_its_index() -> None:
    async def scenario() -> None:
        async with a_peer(BrokerSettings(allow_auto_topic_creation_type="partitioned", default_num_partitions=4)) as peer:
            await peer.ask(partitions("t"))
            name = f"{TOPIC}-partition-3"
            consumer = await peer.consume(topic=name)
            assert peer.topics.partition_indexes == {name: 3}
            consumer.sink.deliver(entry_run(7, 0, [message()]), range(1), None, None, None)
            assert (await peer.answer()).message.message_id.partition == 3
            assert (await peer.ask(last_message_id())).get_last_message_id_response.last_message_id.partition == 3

    play(scenario)
