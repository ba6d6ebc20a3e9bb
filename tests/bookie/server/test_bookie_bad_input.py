"""Errors of a peer: the protocol's error or a closed connection, one line in the log, and nothing lost for others."""

import asyncio
import logging
import random

import pytest

from bookie.server.adds import ADD_BYTES_MAX
from bookie.server.connection import READS_AT_ONCE
from bookie.server.session import TICK_SECONDS, Session
from bookie.server.settings import BookieServerSettings
from tests.bookie.runs import KEY
from tests.bookie.server.client import EBADREQ, EBADVERSION, EOK, Served, served
from tests.wire.bookie.bookie_samples import add, batch_read, entry, frame, read
from wire.errors import MalformedCommand
from wire.generated import bookie_protocol_pb2 as api


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x7f\xff\xff\xff", "nettyMaxFrameSizeBytes"),
        (b"\xff\xff\xff\xff", "nettyMaxFrameSizeBytes"),
        (b"\0\0\0\0", "nettyMaxFrameSizeBytes"),
        (frame(b"\x02\x09\0\0"), "opcode 9"),
        (frame(b"\x02\x01\0\0short"), "a request of"),
        (frame(b"\x02\x02\0\0short"), "a read of"),
        (frame(b"\x02\x07\0\0short"), "a batch read of"),
        (b"GET / HTTP/1.1\r\nHost: bookie\r\n\r\n", "nettyMaxFrameSizeBytes"),
    ],
)
def test_an_unanswerable_request_ends_the_connection_with_one_log_line(
    data: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as other, at.client() as client:
            assert (await other.ask(add(7, 0, key=KEY))).code == EOK
            caplog.clear()
            client.send(data)
            assert await client.ended()
            assert (await other.ask(read(7, 0))).code == EOK
            (warning,) = warnings_of(caplog)
            assert said in warning

    served(scenario)


def test_answerable_bad_requests_are_answered_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            caplog.clear()
            for _ in range(3):
                assert (await client.ask(add(7, -5, key=KEY))).code == EBADREQ
                assert (await client.ask(read(-7, 0))).code == EBADREQ
                assert (await client.ask(frame(b"\x03" + read(7, 0)[5:]))).code == EBADVERSION
            assert (await client.ask(add(7, 0, key=KEY))).code == EOK
            assert len(warnings_of(caplog)) == 1
        async with at.client() as client:
            response = await client.ask3(api.START_TLS, startTLSRequest=api.StartTLSRequest())
            assert response.status == api.EBADREQ

    served(scenario)


def test_a_frame_that_stops_half_way_is_given_up_and_an_idle_peer_is_not() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as half, at.client() as idle:
            half.send(add(7, 0, b"x" * 1000, key=KEY)[:500])
            assert (await idle.ask(read(7, 0))).code != EOK
            began = asyncio.get_running_loop().time()
            assert await half.ended()
            assert asyncio.get_running_loop().time() - began < 3 * TICK_SECONDS
            await asyncio.sleep(100 * TICK_SECONDS)
            assert (await idle.ask(add(7, 0, key=KEY))).code == EOK

    served(scenario)


def test_a_declared_size_alone_takes_no_memory() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            client.send((5 << 20).to_bytes(4) + b"\x02\x01\0\0")
            await asyncio.sleep(1)
            (connection,) = at.listener.server_port.connections
            assert connection._input.kept_bytes == 8
            assert connection._input._own is None

    served(scenario)


def test_a_frame_of_the_largest_size_is_taken_and_one_byte_more_is_not() -> None:
    settings = BookieServerSettings(netty_max_frame_size_bytes=4096, max_batch_read_size=4096)

    async def scenario(at: Served) -> None:
        largest = b"x" * (4096 - 28 - 32)
        async with at.client() as client:
            assert (await client.ask(add(7, 0, largest, key=KEY))).code == EOK
            client.send(add(7, 1, largest + b"x", key=KEY))
            assert await client.ended()

    served(scenario, settings)


def test_a_peer_that_never_reads_is_not_read_from_and_then_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(at: Served) -> None:
        large = b"x" * 1_000_000
        async with at.client() as client, at.client() as other:
            for index in range(4):
                assert (await other.ask(add(7, index, large, key=KEY))).code == EOK
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a ReadTransport, which the stream hides
            client.send(b"".join(read(7, index % 4) for index in range(400)))
            await asyncio.sleep(TICK_SECONDS / 2)
            connection = next(each for each in at.listener.server_port.connections if each._requests)
            unsent = connection._transport.get_write_buffer_size()
            assert unsent < (READS_AT_ONCE + 2) * 1_000_100, "only what was begun is held"
            assert not connection._is_reading
            await asyncio.sleep(3 * TICK_SECONDS)
            assert at.listener.connection_count == 1
            assert "the peer read none of" in " ".join(warnings_of(caplog))
            assert (await other.ask(read(7, 0))).code == EOK

    served(scenario)


@pytest.mark.parametrize("way", ["reads of version 3", "batch reads", "reads with a fence"])
def test_bookkeeper_3408_answers_to_a_slow_reader_are_bounded_in_every_way_of_reading(way: str) -> None:
    header = api.BKPacketHeader(version=api.VERSION_THREE, operation=api.READ_ENTRY, txnId=1)
    three = api.Request(header=header, readRequest=api.ReadRequest(ledgerId=7, entryId=0)).SerializeToString()
    request = {
        "reads of version 3": frame(three),
        "batch reads": batch_read(7, 0, 1, 1_000_000),
        "reads with a fence": read(7, 0, flags=1, key=KEY),
    }[way]

    async def scenario(at: Served) -> None:
        async with at.client() as client, at.client() as other:
            assert (await other.ask(add(7, 0, b"x" * 1_000_000, key=KEY))).code == EOK
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a ReadTransport, which the stream hides
            client.send(request * 300)
            await asyncio.sleep(TICK_SECONDS / 2)
            connection = next(each for each in at.listener.server_port.connections if each._requests)
            assert connection._transport.get_write_buffer_size() < (READS_AT_ONCE + 2) * 1_000_100
            assert not connection._is_reading
            await asyncio.sleep(3 * TICK_SECONDS)
            assert at.listener.connection_count == 1, "it was given up"
            assert (await other.ask(read(7, 0))).code == EOK

    served(scenario)


def test_adds_under_way_are_bounded_by_reading_no_more() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            large = b"x" * 1_000_000
            at.machine.disk.steps = 0
            client.send(b"".join(add(7, index, large, key=KEY) for index in range(60)))
            most = 0
            for _ in range(60):
                answer = await client.answer()
                (connection,) = at.listener.server_port.connections
                most = max(most, int(connection._adds.load * ADD_BYTES_MAX))
                assert answer.code in (EOK, 106)
            assert most <= ADD_BYTES_MAX + 2_000_000

    served(scenario)


@pytest.mark.parametrize("seed", range(30))
def test_random_bytes_never_hurt_anybody_else(seed: int) -> None:
    rng = random.Random(seed)

    async def scenario(at: Served) -> None:
        async with at.client() as other, at.client() as client:
            assert (await other.ask(add(7, 0, key=KEY))).code == EOK
            message = rng.choice([add(8, 0, key=KEY), read(7, 0), frame(b"\n\x06\x08\x03\x10\x01\x18\x05")])
            damaged = bytearray(message * 3)
            for _ in range(rng.randrange(1, 5)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            client.send(bytes(damaged))
            await asyncio.sleep(1)
            assert await other.ask(read(7, 0)) == (2, EOK, 7, 0, entry(7, 0))

    served(scenario)


def test_a_session_tells_versions_apart_for_good() -> None:
    session = Session()
    three = api.Request(header=api.BKPacketHeader(version=api.VERSION_THREE, operation=api.AUTH, txnId=1))
    assert session.version == 3
    session.decode(three.SerializeToString())
    assert session.version == 3
    session.decode(read(7, 0)[4:])
    assert session.version == 2
    with pytest.raises(MalformedCommand):
        session.decode(three.SerializeToString())
