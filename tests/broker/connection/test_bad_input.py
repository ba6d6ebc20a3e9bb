"""A peer's mistakes: one log line with the peer and the reason, an answer or a closed connection, nothing lost for others."""

import logging
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.connection.read_buffer import READ_BYTES
from broker.connection.settings import ConnectionSettings
from ports import outbox
from tests.broker.connection.peer import (
    TOPIC,
    Peer,
    a_peer,
    a_server,
    ack,
    connect,
    flow,
    message,
    ping,
    play,
    play_for_real,
    producer,
    send,
    settle,
    subscribe,
)
from tests.broker.fake_topics import FakeConsumer, FakeProducer
from wire.frames import PONG, encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

FRAME_MAX = ConnectionSettings().frame_bytes_max


def u32(number: int) -> bytes:
    return (number & 0xFFFFFFFF).to_bytes(4)


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of mistakes, as `peer=... reason=...`."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


BAD_FRAMES = {
    "size 0": (u32(0), "frame of 0 bytes"),
    "negative size": (u32(-1) + u32(10), "more than the"),
    "size over the maximum": (u32(FRAME_MAX) + u32(10), "more than the"),
    "command larger than its frame": (u32(10) + u32(7) + bytes(10), "command of 7 bytes in a frame of 10"),
    "negative command size": (u32(10) + u32(-1) + bytes(10), "in a frame of 10"),
    "command of no bytes": (u32(10) + u32(0) + bytes(10), "command of 0 bytes"),
    "unreadable command": (u32(8) + u32(4) + b"\xff\xff\xff\xff", "unreadable command"),
    "unknown command": (u32(6) + u32(2) + b"\x08\x63", "unknown type 99"),
    "command without a body": (u32(6) + u32(2) + b"\x08\x0b", "FLOW without its body"),
}


@pytest.mark.parametrize(("data", "said"), BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
@pytest.mark.parametrize("is_connected", [False, True])
def test_a_malformed_frame_ends_its_connection_only(
    caplog: pytest.LogCaptureFixture, data: bytes, said: str, is_connected: bool
) -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):
            other, bad = Peer(listener, topics), Peer(listener, topics, ("10.0.0.66", 666))
            await other.connect()
            taken = await other.produce()
            taken.is_held = True
            other.send(send(1, 0), message())
            if is_connected:
                await bad.connect()
                await bad.produce(topic=f"{TOPIC}-bad")
            caplog.clear()
            bad.feed(data)
            assert bad.transport.closed
            (line,) = reasons(caplog)
            assert "peer=10.0.0.66:666" in line
            assert said in line
            await settle()
            closed = [each.is_closed for topic in topics.topics.values() for each in topic.producers]
            assert closed == [False, True][: 1 + is_connected]
            assert not other.transport.closed
            taken.release()
            assert (await other.answer()).send_receipt.sequence_id == 0

    play(scenario)


def test_no_memory_is_reserved_on_the_strength_of_a_declared_size() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.feed(u32(FRAME_MAX - 4) + u32(20))
            for _ in range(5):
                room = peer.connection.get_buffer(-1)
                assert len(room) <= READ_BYTES
                peer.connection.buffer_updated(1)
            assert not peer.transport.closed

    play(scenario)


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
    "no name": ({"subscription": ""}, api.NotAllowedError),
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
        {"schema": api.Schema(name="s", schema_data=b"{}", type=api.Schema.Avro)},
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


def session_transcript() -> bytes:
    """What a client says that does most things."""
    return b"".join(
        (
            encode(connect()),
            encode(producer(1, request_id=1)),
            encode(subscribe(1, request_id=2)),
            encode(ping()),
            encode(flow(1, 10)),
        )
    )


def after_transcript() -> bytes:
    sends = b"".join(encode(send(1, index), message(b"%d" % index)) for index in range(5))
    acks = encode(ack(1, (7, 1))) + encode(ack(1, (7, 2), request_id=9))
    close = BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=api.CommandCloseConsumer(consumer_id=1, request_id=3))
    return sends + acks + encode(send(1, 6, num_messages=-1), message()) + encode(ping()) + encode(close)


async def told(peer: Peer, feed: Callable[[bytes], Awaitable[None]]) -> list[bytes]:
    """Everything that a peer gets for the transcript, frame by frame."""
    await feed(session_transcript())
    await settle()
    first = peer.frames()
    await feed(after_transcript())
    await settle()
    return [encode(command, payload) for command, payload in first + peer.frames()]


def test_a_session_cut_at_any_byte_gets_the_same_answers_as_a_whole_one() -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):

            async def play_in_two(cut: int) -> list[bytes]:
                peer = Peer(listener, topics)

                async def feed(data: bytes) -> None:
                    peer.feed(data[:cut])
                    if cut < len(data):
                        peer.feed(data[cut:])

                answers = await told(peer, feed)
                peer.transport.close()
                await settle()
                return normal(answers)

            whole = await play_in_two(1 << 30)
            assert len(whole) == 13
            for cut in range(1, max(len(session_transcript()), len(after_transcript()))):
                assert await play_in_two(cut) == whole, cut

    play(scenario)


def normal(answers: list[bytes]) -> list[bytes]:
    """Without the producer's generated name and the entry ids, which grow from session to session."""
    found = []
    for each in answers:
        command = BaseCommand.FromString(each[8:])
        if command.type == BaseCommand.PRODUCER_SUCCESS:
            command.producer_success.producer_name = ""
        if command.type == BaseCommand.SEND_RECEIPT:
            command.send_receipt.message_id.entry_id = 0
        found.append(encode(command))
    return found


def test_a_session_byte_by_byte_gets_the_same_answers_as_a_whole_one() -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):
            whole, slow = Peer(listener, topics), Peer(listener, topics)

            async def feed_whole(data: bytes) -> None:
                whole.feed(data)

            async def feed_slowly(data: bytes) -> None:
                slow.feed(data, 1)

            assert normal(await told(whole, feed_whole)) == normal(await told(slow, feed_slowly))

    play(scenario)


def test_a_connection_that_ends_at_any_byte_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):
            data = session_transcript()
            for cut in range(len(data)):
                peer = Peer(listener, topics)
                peer.feed(data[:cut])
                if cut % 2:
                    await settle()
                peer.transport.close()
                await settle()
            assert listener.connection_count == 0
            left: list[FakeProducer | FakeConsumer] = []
            for topic in topics.topics.values():
                left += topic.producers
                left += topic.consumers
            assert left
            assert all(each.is_closed for each in left)

    play(scenario)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.builds(lambda body: u32(len(body) + 4) + u32(len(body)) + body, st.binary(min_size=1, max_size=60)),
            st.builds(
                lambda kind, body, payload: (
                    u32(len(body) + 4 + 3 + len(payload))
                    + u32(len(body) + 3)
                    + bytes([8, kind, kind * 8 % 256])
                    + body
                    + payload
                ),
                st.integers(2, 80),
                st.binary(max_size=30),
                st.binary(max_size=30),
            ),
            st.sampled_from((session_transcript(), after_transcript())).flatmap(
                lambda data: st.builds(
                    lambda at, octet: data[:at] + bytes([octet]) + data[at + 1 :],
                    st.integers(0, len(data) - 1),
                    st.integers(0, 255),
                )
            ),
        ),
        max_size=5,
    ),
    st.booleans(),
    st.integers(1, 400),
)
def test_garbage_never_does_more_than_end_its_connection(pieces: list[bytes], is_connected: bool, piece: int) -> None:
    async def scenario() -> None:
        async with a_server() as (listener, topics):
            bad, other = Peer(listener, topics), Peer(listener, topics)
            await other.connect()
            if is_connected:
                await bad.connect()
                await bad.produce()
                await bad.consume()
            bad.feed(b"".join(pieces), piece)
            await settle()
            bad.frames()
            assert (await other.ask(ping())).type == BaseCommand.PONG
            bad.transport.close()
            await settle()
            assert listener.connection_count == 1

    play_for_real(scenario)
