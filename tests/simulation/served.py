"""A simulated server with clients that do, command by command, what a scenario says."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from broker.service.topic_name import TopicName
from broker.topic.contract import SubscriptionType, Topic
from managed_ledger.contract import ManagedCursor
from simulation.checks.checker import Checker
from simulation.checks.history import Event, Message, MessageKey, Stop
from simulation.clients.client import Client, Connection, Recorder
from simulation.clients.wire_format import ack_set_of, decode_entry, encode_entry, indexes_of, payload_for, signed
from simulation.standalone.machine import ServerMachine
from simulation.standalone.plan import QUIET_SETTINGS
from simulation.standalone.scenario import TOPIC
from simulation.world.process import SimProcess
from wire.generated import pulsar_api_pb2 as pb
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

from .worlds import World

T = TypeVar("T")
PRODUCER = "p"
PRODUCER_ID, CONSUMER_ID = 1, 2
SECONDS_MAX = 60.0


class Unjudged(Checker):
    """The scenario itself says what must hold."""

    def handle(self, event: Event) -> None:
        """Nothing."""


class Served:
    """A standalone and, one after the other, client programs."""

    def __init__(self, world: World, settings: Mapping[str, str] | None = None) -> None:
        self.world = world
        self.server = ServerMachine(world.loop, world.network, 0, {**QUIET_SETTINGS, **(settings or {})})
        self._clients = 0

    def now_ms(self) -> int:
        return self.server.clock.now_ms()

    async def client(self, work: "Callable[[Session], Awaitable[T]]") -> T:
        """A program with one connection; what its work returns."""
        results: list[T] = []

        async def main() -> None:
            recorder = Recorder(Unjudged(), self.world.loop.trace, self.world.loop.time)
            results.append(await work(Session(await Client(recorder, TOPIC).connection(), self)))

        self._clients += 1
        program = SimProcess(self.world.loop, self.world.network, f"client-{self._clients}", None, main)
        program.start()
        async with asyncio.timeout(SECONDS_MAX):
            await program.ended.wait()
        return results[0]

    async def restart(self, how: Stop) -> None:
        if how is Stop.CLEAN:
            await self.server.stop()
        elif how is Stop.KILL:
            self.server.process.kill()
        else:
            self.server.process.cut_power()
        await self.server.start()

    def mark_delete(self, subscription: str) -> Position:
        return self.cursor(subscription).mark_delete

    def cursor(self, subscription: str) -> ManagedCursor:
        """Cursor of a loaded topic, as the server has it."""
        return self.topic().operations.log.cursors[subscription]

    def delayed(self, subscription: str) -> int:
        """Count of its messages that wait for their time."""
        return self.topic().stats().subscriptions[subscription].msg_delayed

    def topic(self) -> Topic:
        """The one that is loaded."""
        assert self.server.standalone is not None
        topic = self.server.standalone.service.catalogue.loaded_topic(TopicName.parse(TOPIC))
        assert topic is not None
        return topic

    async def unload(self) -> None:
        unloading = self.server.unload(TOPIC)
        assert unloading is not None
        await unloading


class Session:
    """A connected client: one producer, one consumer."""

    def __init__(self, connection: Connection, served: Served) -> None:
        self.connection, self.served = connection, served
        self.received: dict[Position, list[bytes]] = {}
        """Payloads by entry, without those that its ack set takes out; in the order of arrival."""
        self.deliveries = 0
        self.arrived_ms: dict[Position, int] = {}
        """The time of day at the server when each came last."""
        self._positions: list[Position] = []
        self._expected = 0
        self._answered = asyncio.Event()

    async def publish(self, *entries: Sequence[bytes], deliver_at_ms: int | Sequence[int] = 0) -> list[Position]:
        """Each is a batch, or with one payload a message by itself. Returns when all are answered."""
        times = [deliver_at_ms] * len(entries) if isinstance(deliver_at_ms, int) else deliver_at_ms
        number = self.connection.next_id()
        command = pb.CommandProducer(topic=TOPIC, producer_id=PRODUCER_ID, request_id=number)
        self.connection.producers[PRODUCER_ID] = self
        await self.connection.request(BaseCommand(type=BaseCommand.PRODUCER, producer=command), number)
        for sequence, payloads in enumerate(entries):
            self._send(sequence * 1000, payloads, times[sequence])
        self._expected = len(entries)
        await self._answered.wait()
        return self._positions

    def _send(self, sequence: int, payloads: Sequence[bytes], deliver_at_ms: int) -> None:
        is_batch = len(payloads) > 1
        messages = [
            Message(
                index if is_batch else -1, MessageKey(PRODUCER, sequence + index), "", payload_for(PRODUCER, sequence, payload)
            )
            for index, payload in enumerate(payloads)
        ]
        send = pb.CommandSend(producer_id=PRODUCER_ID, sequence_id=sequence, num_messages=len(messages))
        entry = encode_entry(PRODUCER, messages, self.served.now_ms(), deliver_at_ms)
        self.connection.send(BaseCommand(type=BaseCommand.SEND, send=send), entry)

    async def subscribe(
        self, name: str = "sub", kind: SubscriptionType = SubscriptionType.SHARED, permits: int = 10_000
    ) -> None:
        number = self.connection.next_id()
        command = pb.CommandSubscribe(topic=TOPIC, subscription=name, consumer_id=CONSUMER_ID, request_id=number)
        command.sub_type = int(kind)  # type: ignore[assignment]  # the stub wants its own enum
        command.initial_position = pb.CommandSubscribe.Earliest
        self.connection.consumers[CONSUMER_ID] = self
        await self.connection.request(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=command), number)
        flow = pb.CommandFlow(consumer_id=CONSUMER_ID, message_permits=permits)
        self.connection.send(BaseCommand(type=BaseCommand.FLOW, flow=flow))

    async def receive(self, seconds: float) -> dict[Position, list[bytes]]:
        """Waits so many seconds of virtual time; returns all entries received by then."""
        await asyncio.sleep(seconds)
        return dict(self.received)

    async def acknowledge(self, position: Position, left: Sequence[int] = (), size: int = 0) -> None:
        """The entry, or of a batch of `size` all but `left`. Returns when it is answered."""
        number = self.connection.next_id()
        command = pb.CommandAck(consumer_id=CONSUMER_ID, ack_type=pb.CommandAck.Individual, request_id=number)
        where = command.message_id.add(ledger_id=position.ledger_id, entry_id=position.entry_id)
        if left:
            where.ack_set.extend(ack_set_of(left, size))
            where.batch_size = size
        await self.connection.request(BaseCommand(type=BaseCommand.ACK, ack=command), number)

    def on_command(self, command: BaseCommand, payload: bytes) -> None:
        if command.type == BaseCommand.SEND_RECEIPT:
            found = command.send_receipt.message_id
            self._positions.append(Position(signed(found.ledger_id), signed(found.entry_id)))
            if len(self._positions) == self._expected:
                self._answered.set()
        elif command.type == BaseCommand.MESSAGE:
            found = command.message.message_id
            messages = decode_entry(payload)
            left = indexes_of(command.message.ack_set, len(messages))
            texts = [messages[index].payload.split(b":", 2)[2] for index in left]
            position = Position(signed(found.ledger_id), signed(found.entry_id))
            self.received[position] = texts
            self.arrived_ms[position] = self.served.now_ms()
            self.deliveries += 1
