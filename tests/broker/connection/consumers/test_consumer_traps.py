"""The traps of the protocol that concern consumers: where real clients hang, loop or close when an answer is wrong."""

import asyncio

import pytest

from broker.connection.settings import ConnectionSettings
from broker.errors import BrokerError, ServerError
from broker.service.addresses import Advertised
from broker.service.ownership.owners import SoleOwner
from broker.service.settings import BrokerSettings
from broker.service.topic_name import TopicName
from broker.topic.contract import LastMessage
from tests.broker.connection.peer import (
    TOPIC,
    U64_MAX,
    a_peer,
    ack,
    connect,
    flow,
    last_message_id,
    message,
    partitions,
    play,
    redeliver,
    seek,
    send,
    settle,
    subscribe,
)
from tests.broker.fake_topics import entry_run
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

# ---- 10 to 13, 16, 17: consumers


def test_permits_that_come_before_the_success_count_for_nothing() -> None:
    """Go's consumer that subscribes again sends old permits at once, and drops messages that come before the success."""

    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(subscribe())
            peer.send(flow(1, 100))
            peer.send(flow(1, 50))
            assert (await peer.answer()).type == BaseCommand.SUCCESS
            peer.send(flow(1, 1))
            await settle()
            assert peer.topic().consumers[0].permits == [1]

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


@pytest.mark.parametrize(
    "command",
    [seek(message_id=api.MessageIdData(ledger_id=7, entry_id=1)), last_message_id()],
    ids=["seek", "last message id"],
)
def test_a_request_that_is_cut_off_with_its_reads_is_answered_too(command: BaseCommand) -> None:
    """A log that is closed cancels its reads, and with them the requests that wait for one."""

    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            consumer.failure = asyncio.CancelledError()
            assert (await peer.ask(command)).error.error == api.ServiceNotReady

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
            assert not first.close_producer.HasField("assigned_broker_service_url")
            assert not second.close_consumer.HasField("assigned_broker_service_url")
            assert (first.close_producer.producer_id, first.close_producer.request_id) == (1, U64_MAX)
            assert (second.close_consumer.consumer_id, second.close_consumer.request_id) == (1, U64_MAX)
            assert not peer.transport.closed

    play(scenario)


def test_the_broker_says_with_the_close_where_the_topic_goes() -> None:
    """PIP-307: so that the client need not look it up. Not where it has listeners, of which it cannot know the client's."""

    class MovedAway(SoleOwner):
        def heir(self, topic: TopicName) -> Advertised | None:
            assert str(topic) == TOPIC
            return Advertised("pulsar://heir:6650", "http://heir:8080", "pulsar+ssl://heir:6651")

    async def scenario() -> None:
        async with a_peer() as peer:
            taken, consumer = await peer.produce(), await peer.consume()
            peer.service.lookup.owners = MovedAway()
            taken.sink.closed("unloaded")
            consumer.sink.closed("unloaded")
            await settle()
            first, second = peer.answers()
            for told in (first.close_producer, second.close_consumer):
                assert told.assigned_broker_service_url == "pulsar://heir:6650"
                assert told.assigned_broker_service_url_tls == "pulsar+ssl://heir:6651"
        async with a_peer(BrokerSettings(advertised_listeners=("inside:pulsar://broker:6650",))) as peer:
            taken = await peer.produce()
            peer.service.lookup.owners = MovedAway()
            taken.sink.closed("unloaded")
            assert not (await peer.answer()).close_producer.HasField("assigned_broker_service_url")

    play(scenario)


# ---- 20, 22


@pytest.mark.parametrize("is_exposed", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("version", [10, 17, 18, 21])
def test_broker_entry_metadata_is_sent_to_clients_that_know_it_when_it_is_exposed(
    is_exposed: bool, is_known: bool, version: int
) -> None:
    async def scenario() -> None:
        settings = ConnectionSettings(exposing_broker_entry_metadata_to_client_enabled=is_exposed)
        async with a_peer(settings=settings, version=-1) as peer:
            command = connect(version)
            command.connect.feature_flags.supports_broker_entry_metadata = is_known
            await peer.ask(command)
            consumer = await peer.consume()
            stored = b"\x0e\x02" + (4).to_bytes(4) + b"\x08\x01\x10\x07" + message()
            consumer.sink.deliver(entry_run(7, 0, [stored]), range(1), None, None, None)
            await settle()
            ((_, payload),) = peer.frames()
            plain = message() if version >= 11 else message()[6:]
            assert payload == (stored if is_exposed and is_known and version >= 18 else plain)

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
