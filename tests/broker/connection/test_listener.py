"""The listener over a network: ports, limits, and the stop."""

import asyncio

from broker.connection.listener import Listener, serve
from broker.connection.settings import ConnectionSettings
from broker.service.broker_service import BrokerService
from broker.service.settings import BrokerSettings
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.broker.connection.peer import ADVERTISED, TOPIC, Peer, a_server, connect, message, play, producer, send
from tests.broker.fake_topics import FakeTopics
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from wire.frames import encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand


async def read(reader: asyncio.StreamReader) -> BaseCommand | None:
    """The next command, None at the end."""
    try:
        size = await reader.readexactly(4)
        frame = next_frame(size + await reader.readexactly(int.from_bytes(size)), 0, 1 << 30)
    except asyncio.IncompleteReadError:
        return None
    assert frame is not None
    return frame.command


def test_a_client_over_the_network_publishes_and_the_stop_tells_it() -> None:
    async def scenario() -> None:
        async with a_server() as (unused, topics):
            listener = await serve(unused.service, ConnectionSettings(), "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(encode(connect()) + encode(producer()))
            assert (found := await read(reader)) is not None
            assert found.type == BaseCommand.CONNECTED
            assert (found := await read(reader)) is not None
            assert found.type == BaseCommand.PRODUCER_SUCCESS
            writer.write(b"".join(encode(send(1, index), message(b"%d" % index)) for index in range(1000)))
            for index in range(1000):
                assert (found := await read(reader)) is not None
                assert found.send_receipt.sequence_id == index
            assert topics.topics[TOPIC].producers[0].payloads == [message(b"%d" % index) for index in range(1000)]
            assert listener.connection_count == 1
            topics.topics[TOPIC].producers[0].sink.closed("unloaded")
            await listener.close()
            assert listener.connection_count == 0
            assert (found := await read(reader)) is not None
            assert found.type == BaseCommand.CLOSE_PRODUCER
            assert await read(reader) is None
            writer.close()
            await listener.close()

    play(scenario)


def test_connections_above_the_limits_are_told_why() -> None:
    async def scenario() -> None:
        for settings in (
            ConnectionSettings(broker_max_connections=2),
            ConnectionSettings(broker_max_connections_per_ip=2),
        ):
            async with a_server(settings=settings) as (unused, _):
                listener = await serve(unused.service, settings, "127.0.0.1", 0)
                streams = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(3)]
                found = await read(streams[2][0])
                assert found is not None
                assert (found.error.request_id, found.error.error) == ((1 << 64) - 1, api.NotAllowedError)
                assert "maximum number of connections" in found.error.message
                assert await read(streams[2][0]) is None
                streams[0][1].close()
                await asyncio.sleep(1)
                reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
                writer.write(encode(connect()))
                assert (found := await read(reader)) is not None
                assert found.type == BaseCommand.CONNECTED
                for _, each in (*streams, (reader, writer)):
                    each.close()
                await listener.close()

    play(scenario)


def test_a_client_that_comes_before_the_broker_has_started_is_told_to_come_again() -> None:
    """A lookup answered with an error then would be final for it."""

    async def scenario() -> None:
        clock = RealClock()
        store = MemoryStore(clock)
        service = BrokerService(BrokerSettings(), store, clock, FakeTopics(store), FakeLedgerStore(FakeLedgers()))
        peer = Peer(Listener(service, ConnectionSettings()), FakeTopics(store))
        found = (await peer.ask(connect())).error
        assert (found.request_id, found.error) == ((1 << 64) - 1, api.ServiceNotReady)
        assert peer.transport.closed
        await service.bootstrap_standalone(ADVERTISED)
        await service.start(ADVERTISED)
        await Peer(peer.listener, peer.topics).connect()
        await peer.listener.close()
        await service.close()

    play(scenario)
