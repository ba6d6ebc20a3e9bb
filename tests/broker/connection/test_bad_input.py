"""A peer's mistakes: one log line with the peer and the reason, an answer or a closed connection, nothing lost for others."""

import pytest

from broker.connection.settings import ConnectionSettings
from ports.network import outbox
from tests.broker.connection.peer import (
    Peer,
    a_peer,
    a_server,
    ack,
    connect,
    flow,
    message,
    ping,
    play,
    producer,
    reasons,
    seek,
    send,
    settle,
    subscribe,
)
from wire.frames import PONG, encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand


@pytest.mark.parametrize("command", [producer(), subscribe(), send(1, 1), flow(1, 1), ack(1, (1, 1))])
def test_a_command_before_connect_ends_the_connection(caplog: pytest.LogCaptureFixture, command: BaseCommand) -> None:
    async def scenario() -> None:
        async with a_peer(version=-1) as peer:
            payload = message() if command.type == BaseCommand.SEND else b""
            peer.send(command, payload)
            assert peer.transport.closed
            assert f"{BaseCommand.Type.Name(command.type)} before CONNECT" in reasons(caplog)[0]
            await settle()
            assert peer.topics.opened == []

    play(scenario)


def test_connect_twice_and_commands_of_brokers_end_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):
            commands = (
                connect(),
                BaseCommand(type=BaseCommand.SUCCESS, success=api.CommandSuccess(request_id=1)),
                BaseCommand(type=BaseCommand.AUTH_RESPONSE, auth_response=api.CommandAuthResponse()),
            )
            for command in commands:
                peer = Peer(listener, topics)
                await peer.connect()
                peer.send(command)
                assert peer.transport.closed
            assert ["CONNECT a second time" in reasons(caplog)[0], "for brokers" in reasons(caplog)[1]] == [True, True]
            assert "AUTH_RESPONSE was not asked for" in reasons(caplog)[2]

    play(scenario)


def test_a_send_for_a_producer_that_is_not_there_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(send(5, 0), message())
            assert peer.transport.closed
            assert "SEND for producer 5" in reasons(caplog)[0]

    play(scenario)


def test_a_send_for_a_producer_that_is_still_pending_ends_the_connection() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(producer())
            peer.send(send(1, 0), message())
            assert peer.transport.closed
            await settle()
            assert [each.is_closed for each in peer.topic().producers] == [True]

    play(scenario)


def test_a_late_send_for_a_producer_that_the_broker_closed_is_ignored() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.sink.closed("fenced")
            peer.send(send(1, 0), message())
            peer.send(send(1, 1, num_messages=-1), message())
            assert (await peer.answer()).type == BaseCommand.CLOSE_PRODUCER
            assert not peer.transport.closed
            assert taken.runs == []

    play(scenario)


WRONG_PAYLOADS = {
    "wrong checksum": (message()[:-1] + b"?", api.ChecksumError),
    "checksum cut off": (b"\x0e\x01\x00\x00", api.NotAllowedError),
    "checksum of nothing": (b"\x0e\x01" + bytes(6), api.NotAllowedError),
    "empty": (b"", api.NotAllowedError),
    "three bytes": (b"abc", api.NotAllowedError),
    "broker entry metadata": (b"\x0e\x02" + (0).to_bytes(4) + message(), api.NotAllowedError),
}


@pytest.mark.parametrize(("payload", "error"), WRONG_PAYLOADS.values(), ids=WRONG_PAYLOADS.keys())
def test_a_wrong_payload_fails_one_message(payload: bytes, error: int) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            peer.feed(encode(send(1, 0), message()) + encode(send(1, 1), payload) + encode(send(1, 2), message(b"after")))
            await settle()
            first, second, third = peer.answers()
            assert first.send_receipt.sequence_id == 0
            assert (second.send_error.sequence_id, second.send_error.error) == (1, error)
            assert third.send_receipt.sequence_id == 2
            assert taken.payloads == [message(), message(b"after")]

    play(scenario)


def test_a_payload_without_a_checksum_is_taken_as_it_is() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            peer.send(send(1, 0), message()[6:])
            assert (await peer.answer()).type == BaseCommand.SEND_RECEIPT
            assert taken.payloads == [message()[6:]]

    play(scenario)


def test_a_message_over_the_maximum_is_refused_and_its_neighbours_are_not() -> None:
    async def scenario() -> None:
        async with a_peer(settings=ConnectionSettings(max_message_size=4096)) as peer:
            taken = await peer.produce()
            texts = [b"a", b"b" * 4096, b"c" * 4097, b"d"]
            peer.feed(b"".join(encode(send(1, index), message(text)) for index, text in enumerate(texts)))
            await settle()
            kinds = [(command.type, command.send_error.error) for command in peer.answers()]
            assert kinds == [
                (BaseCommand.SEND_RECEIPT, 0),
                (BaseCommand.SEND_RECEIPT, 0),
                (BaseCommand.SEND_ERROR, api.NotAllowedError),
                (BaseCommand.SEND_RECEIPT, 0),
            ]
            assert taken.payloads == [message(text) for text in texts if len(text) <= 4096]

    play(scenario)


def test_a_message_over_its_topic_s_maximum_is_refused_its_neighbours_and_chunks_are_not() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce()
            taken.message_size_max = len(message(b"b" * 100))
            texts = [b"a", b"b" * 100, b"c" * 101, b"d"]
            peer.feed(b"".join(encode(send(1, index), message(text)) for index, text in enumerate(texts)))
            await settle()
            kinds = [(command.type, command.send_error.error) for command in peer.answers()]
            assert kinds == [
                (BaseCommand.SEND_RECEIPT, 0),
                (BaseCommand.SEND_RECEIPT, 0),
                (BaseCommand.SEND_ERROR, api.NotAllowedError),
                (BaseCommand.SEND_RECEIPT, 0),
            ]
            chunk = send(1, 4)
            chunk.send.is_chunk = True
            peer.feed(encode(chunk, message(b"e" * 200)))
            await settle()
            assert [command.type for command in peer.answers()] == [BaseCommand.SEND_RECEIPT]

    play(scenario)


@pytest.mark.parametrize("permits", [0, (1 << 31), (1 << 32) - 1])
def test_permits_out_of_range_end_the_connection(caplog: pytest.LogCaptureFixture, permits: int) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            peer.send(flow(1, permits))
            assert peer.transport.closed
            assert f"FLOW with {permits} permits" in reasons(caplog)[0]
            assert consumer.permits == []
            assert consumer.is_closed

    play(scenario)


def test_flows_and_acks_for_consumers_that_are_not_there_are_ignored() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.send(flow(5, 10))
            peer.send(ack(5, (1, 1)))
            peer.send(ack(5, (1, 1), ack_type=api.CommandAck.Cumulative))
            await settle()
            assert peer.answers() == []
            assert not peer.transport.closed

    play(scenario)


def test_a_message_that_a_client_could_not_read_is_acknowledged_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            peer.send(ack(1, (7, 5), validation_error=api.CommandAck.ChecksumMismatch))
            assert [each.positions for each in consumer.acks] == [((7, 5),)]
            (said,) = reasons(caplog)
            assert "ChecksumMismatch" in said
            assert "7" in said
            assert "10.0.0.9" in said

    play(scenario)


def test_ids_out_of_range_reach_the_consumer_as_numbers_with_a_sign() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            told = ack(1, ((1 << 64) - 1, (1 << 63)), ack_type=api.CommandAck.Cumulative)
            peer.send(told)
            assert consumer.acks[0].positions == ((-1, -(1 << 63)),)
            peer.send(ack(1, ack_type=api.CommandAck.Cumulative))
            assert len(consumer.acks) == 1
            assert not peer.transport.closed

    play(scenario)


REFUSED_SUBSCRIPTIONS: dict[str, tuple[dict[str, object], int]] = {
    "a long name": ({"subscription": "x" * 5000}, api.NotAllowedError),
    "a long name of its own": ({"consumer_name": "x" * 5000}, api.NotAllowedError),
    "much metadata": ({"metadata": [api.KeyValue(key="k", value="v" * 1024)]}, api.MetadataError),
    "hash ranges": (
        {
            "sub_type": api.CommandSubscribe.Key_Shared,
            "key_shared_meta": api.KeySharedMeta(key_shared_mode=api.STICKY, hash_ranges=[api.IntRange(start=-1, end=70000)]),
        },
        api.ConsumerAssignError,
    ),
    "a schema": (
        {"schema": api.Schema(name="s", schema_data=b"{]", type=api.Schema.Avro)},
        api.IncompatibleSchema,
    ),
    "a topic of no name": ({"topic": "a/b"}, api.InvalidTopicName),
    "a topic not to be made": ({"force_topic_creation": False}, api.TopicNotFound),
}


@pytest.mark.parametrize(("fields", "error"), REFUSED_SUBSCRIPTIONS.values(), ids=REFUSED_SUBSCRIPTIONS.keys())
def test_a_subscription_that_cannot_be_is_refused(fields: dict[str, object], error: int) -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = await peer.ask(subscribe(**fields))  # type: ignore[arg-type]
            assert (found.error.request_id, found.error.error) == (20, error)
            assert not peer.transport.closed
            await peer.consume()

    play(scenario)


def test_a_broker_of_apaches_may_read_its_topic_policies_here() -> None:
    """The reader of Apache's broker has an Avro schema; while it is refused, that broker loads no topic of the namespace."""

    async def scenario() -> None:
        async with a_peer() as peer:
            schema = api.Schema(name="", schema_data=b"{}", type=api.Schema.Avro)
            found = await peer.ask(subscribe(topic="persistent://public/default/__change_events", schema=schema, durable=False))
            assert found.type == api.BaseCommand.SUCCESS

    play(scenario)


def test_a_peer_that_never_reads_is_given_up(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "BLOCKED_ANSWER_BYTES_MAX", 100_000)

    async def scenario() -> None:
        async with a_peer() as peer:
            peer.transport.is_stuck = True
            asked = 0
            while not peer.transport.closed:
                peer.feed(encode(ping()) * 1000)
                await settle()
                asked += 1000
                assert asked * len(PONG) < outbox.HIGH_WATER_BYTES + 200_000
            assert peer.transport.aborted
            assert "that does not read" in reasons(caplog)[0]

    play(scenario)


def test_longs_of_producers_and_seeks_have_a_sign() -> None:
    """2^64 - 1 was taken for the greatest of all epochs, and stored: no broker of Apache's could load the topic after that."""

    async def scenario() -> None:
        async with a_peer() as peer:
            taken = await peer.produce(topic_epoch=(1 << 64) - 1, epoch=(1 << 64) - 2)
            assert (taken.request.topic_epoch, taken.request.epoch) == (-1, -2)
            consumer = await peer.consume(start_message_rollback_duration_sec=(1 << 64) - 1)
            assert consumer.request.start_rollback_seconds == -1
            peer.send(seek(message_publish_time=(1 << 64) - 1))
            await settle()
            assert consumer.seeks == [-1]

    play(scenario)


def test_an_epoch_after_which_there_is_no_other_is_refused() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            found = await peer.ask(producer(topic_epoch=(1 << 63) - 1, producer_access_mode=api.Exclusive))
            assert found.error.error == api.NotAllowedError
            await peer.produce(topic_epoch=5, producer_access_mode=api.Exclusive)

    play(scenario)


def test_a_seek_into_a_batch_larger_than_any_is_refused() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume()
            found = await peer.ask(seek(message_id=api.MessageIdData(ledger_id=1, entry_id=1, ack_set=[-1] * 16385)))
            assert found.error.error == api.NotAllowedError
            assert consumer.seeks == []

    play(scenario)


@pytest.mark.parametrize("name", ["__change_events", "__transaction_buffer_snapshot"])
def test_an_exclusive_producer_on_a_brokers_system_topic_is_refused(name: str) -> None:
    """Transactions of its namespace were never ended, nor policies stored, while an exclusive producer was there."""

    async def scenario() -> None:
        async with a_peer() as peer:
            topic = f"persistent://public/default/{name}"
            for mode in (api.Exclusive, api.WaitForExclusive, api.ExclusiveWithFencing):
                found = await peer.ask(producer(topic=topic, producer_access_mode=mode))
                assert found.error.error == api.NotAllowedError
            await peer.produce(topic=topic)

    play(scenario)
