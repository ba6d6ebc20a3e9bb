"""Frames that are none, and sessions cut anywhere: one log line, a closed connection, nothing lost for others."""

from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.connection.settings import ConnectionSettings
from ports.network.read_buffer import READ_BYTES
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
    reasons,
    send,
    settle,
    subscribe,
)
from tests.broker.fake_topics import FakeConsumer, FakeProducer
from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

FRAME_MAX = ConnectionSettings().frame_bytes_max


def u32(number: int) -> bytes:
    return (number & 0xFFFFFFFF).to_bytes(4)


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


def test_cve_2026_111108_no_memory_is_reserved_on_the_strength_of_a_declared_size() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            peer.feed(u32(FRAME_MAX - 4) + u32(20))
            for _ in range(5):
                room = peer.connection.get_buffer(-1)
                assert len(room) <= READ_BYTES
                peer.connection.buffer_updated(1)
            assert not peer.transport.closed

    play(scenario)


def session_transcript() -> bytes:
    """Bytes of a client that uses most commands."""
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


def test_half_a_frame_of_a_connection_that_is_lost_is_not_kept() -> None:
    async def scenario() -> None:
        async with a_peer() as peer:
            await peer.produce()
            whole = encode(send(1, 0), message(bytes(2_000_000)))
            peer.feed(whole[:1_500_000])
            assert peer.connection._input.kept_bytes == 1_500_000
            peer.transport.close()
            await settle()
            assert peer.connection._input.kept_bytes == 0

    play(scenario)
