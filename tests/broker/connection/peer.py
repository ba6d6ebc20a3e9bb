"""A client as its bytes: drives a connection over a transport that only remembers, with topics that are fakes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.connection.connection import Connection
from broker.connection.listener import Listener
from broker.connection.settings import ConnectionSettings
from broker.service.addresses import Advertised
from broker.service.broker_service import BrokerService
from broker.service.settings import BrokerSettings
from broker.transaction.coordinators import Coordinators
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.broker.fake_topics import FakeConsumer, FakeProducer, FakeTopic, FakeTopics
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from tests.simulation.worlds import run
from wire.frames import encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.payloads import payload_section

ADVERTISED = Advertised("pulsar://broker:6650", "http://broker:8080")
TOPIC = "persistent://public/default/t"
U64_MAX = (1 << 64) - 1


class FakeTransport(asyncio.Transport):
    """Keeps what is written. `is_stuck`: the peer does not read."""

    def __init__(self, peer_name: tuple[str, int] = ("10.0.0.9", 40001)) -> None:
        super().__init__({"peername": peer_name})
        self.written = bytearray()
        self.writes = 0
        self._is_paused = False
        self.closed = False
        self.aborted = False
        self.high = 64 * 1024
        self.is_stuck = False
        self.stuck_bytes = 0
        self.protocol: Connection

    def write(self, data: Any) -> None:
        self.writes += 1
        if self.closed:
            return
        self.written += data
        if self.is_stuck:
            before, self.stuck_bytes = self.stuck_bytes, self.stuck_bytes + len(data)
            if before <= self.high < self.stuck_bytes:
                self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def read_all(self) -> None:
        """The peer reads again."""
        was_paused, self.stuck_bytes, self.is_stuck = self.stuck_bytes > self.high, 0, False
        if was_paused:
            self.protocol.resume_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high or self.high

    def is_paused(self) -> bool:
        """Whether the server does not read."""
        return self._is_paused

    def pause_reading(self) -> None:
        assert not self._is_paused
        self._is_paused = True

    def resume_reading(self) -> None:
        assert self._is_paused
        self._is_paused = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()


class Peer:
    """One client connection and the server behind it."""

    def __init__(self, listener: Listener, topics: FakeTopics, peer_name: tuple[str, int] = ("10.0.0.9", 40001)) -> None:
        self.listener, self.topics = listener, topics
        self.service = listener.service
        self.transport = FakeTransport(peer_name)
        self.connection = self.transport.protocol = Connection(listener)
        self.connection.connection_made(self.transport)

    def feed(self, data: bytes, piece: int = 1 << 30) -> None:
        """Bytes as the socket gives them, in reads of at most `piece`."""
        while data and not self.transport.closed:
            room = self.connection.get_buffer(-1)
            size = min(len(data), len(room), piece)
            room[:size] = data[:size]
            data = data[size:]
            self.connection.buffer_updated(size)

    def send(self, command: BaseCommand, payload: bytes = b"") -> None:
        self.feed(encode(command, payload))

    def frames(self) -> list[tuple[BaseCommand, bytes]]:
        """Frames that were answered since the last call."""
        data, found, at = bytes(self.transport.written), [], 0
        while at < len(data):
            frame = next_frame(data, at, len(data))
            assert frame is not None, "half a frame was written"
            found.append((frame.command, bytes(frame.payload)))
            at = frame.end
        self.transport.written.clear()
        return found

    def answers(self) -> list[BaseCommand]:
        return [command for command, _ in self.frames()]

    async def answer(self) -> BaseCommand:
        """The one answer."""
        await settle()
        (found,) = self.answers()
        return found

    async def ask(self, command: BaseCommand) -> BaseCommand:
        self.send(command)
        return await self.answer()

    async def connect(self, version: int = 21) -> None:
        found = await self.ask(connect(version))
        assert found.type == BaseCommand.CONNECTED

    async def produce(self, producer_id: int = 1, topic: str = TOPIC, **fields: Any) -> FakeProducer:
        found = await self.ask(producer(producer_id, topic, **fields))
        assert found.type == BaseCommand.PRODUCER_SUCCESS, found
        return self.topic(topic).producers[-1]

    async def consume(self, consumer_id: int = 1, topic: str = TOPIC, **fields: Any) -> FakeConsumer:
        found = await self.ask(subscribe(consumer_id, topic, **fields))
        assert found.type == BaseCommand.SUCCESS, found
        return self.topic(topic).consumers[-1]

    def topic(self, name: str = TOPIC) -> FakeTopic:
        return self.topics.topics[name]


@asynccontextmanager
async def a_server(
    broker: BrokerSettings | None = None,
    settings: ConnectionSettings | None = None,
    coordinators: Coordinators | None = None,
) -> AsyncIterator[tuple[Listener, FakeTopics]]:
    """A service with the standalone's namespaces, and a listener that listens nowhere."""
    clock = RealClock()
    store = MemoryStore(clock)
    topics = FakeTopics(store)
    service = BrokerService(broker or BrokerSettings(), store, clock, topics, FakeLedgerStore(FakeLedgers()))
    await service.bootstrap_standalone(ADVERTISED)
    await service.start(ADVERTISED)
    listener = Listener(service, settings or ConnectionSettings(), coordinators=coordinators)
    try:
        yield listener, topics
    finally:
        await listener.close()
        await service.close()


@asynccontextmanager
async def a_peer(
    broker: BrokerSettings | None = None, settings: ConnectionSettings | None = None, *, version: int = 21
) -> AsyncIterator[Peer]:
    """A client; connected unless `version` is -1."""
    async with a_server(broker, settings) as (listener, topics):
        peer = Peer(listener, topics)
        if version >= 0:
            await peer.connect(version)
        yield peer
        peer.transport.close()


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On virtual time; a callback or task that fails ends the test."""
    run(lambda _: scenario())


def play_for_real(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On asyncio's own loop, which is made sooner: for many short scenarios that wait for no time."""
    failures: list[Any] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        await scenario()

    asyncio.run(watched())
    assert not failures


async def settle() -> None:
    """Waits until nothing is ready to run any more, for everything that the fakes do without a clock."""
    for _ in range(30):
        await asyncio.sleep(0)


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Warnings about mistakes of the peer, like `peer=... reason=...`."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


# ---- Commands


def connect(version: int = 21) -> BaseCommand:
    return BaseCommand(type=BaseCommand.CONNECT, connect=api.CommandConnect(client_version="test", protocol_version=version))


def ping() -> BaseCommand:
    return BaseCommand(type=BaseCommand.PING, ping=api.CommandPing())


def producer(producer_id: int = 1, topic: str = TOPIC, request_id: int = 10, **fields: Any) -> BaseCommand:
    asked = api.CommandProducer(topic=topic, producer_id=producer_id, request_id=request_id, **fields)
    return BaseCommand(type=BaseCommand.PRODUCER, producer=asked)


def send(producer_id: int, sequence_id: int, **fields: Any) -> BaseCommand:
    asked = api.CommandSend(producer_id=producer_id, sequence_id=sequence_id, **fields)
    return BaseCommand(type=BaseCommand.SEND, send=asked)


def message(text: bytes = b"hello", sequence_id: int = 0) -> bytes:
    """A payload section with its checksum."""
    metadata = api.MessageMetadata(producer_name="p", sequence_id=sequence_id, publish_time=1)
    return payload_section(metadata, text)


def subscribe(consumer_id: int = 1, topic: str = TOPIC, request_id: int = 20, **fields: Any) -> BaseCommand:
    asked = {"subscription": "s", "sub_type": api.CommandSubscribe.Exclusive, **fields}
    told = api.CommandSubscribe(topic=topic, consumer_id=consumer_id, request_id=request_id, **asked)
    return BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=told)


def flow(consumer_id: int, permits: int) -> BaseCommand:
    return BaseCommand(type=BaseCommand.FLOW, flow=api.CommandFlow(consumer_id=consumer_id, message_permits=permits))


def ack(consumer_id: int, *ids: tuple[int, int], **fields: Any) -> BaseCommand:
    told = api.CommandAck(consumer_id=consumer_id, **{"ack_type": api.CommandAck.Individual, **fields})
    for ledger_id, entry_id in ids:
        told.message_id.add(ledger_id=ledger_id, entry_id=entry_id)
    return BaseCommand(type=BaseCommand.ACK, ack=told)


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
