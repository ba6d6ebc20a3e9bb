"""SimProducer: publishes numbered messages, batched or not, and sends again after a break what has no receipt."""

import asyncio
import random
from collections import deque
from dataclasses import dataclass

from simulation.checks.history import Acknowledged, Message, MessageKey, ProducerOpened, Refused, Sent
from simulation.clients.client import Connection, RequestFailed, TopicClient
from simulation.clients.wire_format import encode_entry, payload_for, signed
from wire.generated import pulsar_api_pb2 as pb
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

RETRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ProducerShape:
    """Habits of one producer. `pause_seconds` is the mean time between entries; 0: as fast as the window allows."""

    name: str
    entries: int
    batch_messages_max: int
    payload_bytes_max: int
    window_entries: int
    pause_seconds: float
    keys: int


class SimProducer:
    """One producer, over all its connections."""

    def __init__(self, client: TopicClient, shape: ProducerShape, rng: random.Random, number: int) -> None:
        self.shape = shape
        self.sent_entries = 0
        self._client, self._rng, self._id = client, rng, number
        self._recorder = client.recorder
        self._wire_name = ""
        self._epoch = 0
        self._next_sequence = 0
        self._pending: deque[tuple[Message, ...]] = deque()
        self._moved = asyncio.Event()
        self._session = -1
        self._connection: Connection | None = None
        self._is_broken = False

    @property
    def is_done(self) -> bool:
        return self.sent_entries == self.shape.entries and not self._pending

    async def run(self) -> None:
        """Until everything is sent and answered."""
        while not self.is_done:
            try:
                await self._publish(await self._client.connection())
            except (OSError, RequestFailed):
                await asyncio.sleep(RETRY_SECONDS * self._rng.uniform(0.5, 1.5))
            finally:
                if self._connection is not None:
                    self._connection.producers.pop(self._id, None)

    # One connection

    async def _publish(self, connection: Connection) -> None:
        await self._open(connection)
        for messages in tuple(self._pending):
            self._send(connection, messages)
        while not self.is_done:
            if connection.lost.is_set() or self._is_broken:
                raise ConnectionResetError
            if self.sent_entries < self.shape.entries and len(self._pending) < self.shape.window_entries:
                self._send_next(connection)
                await asyncio.sleep(self._pause())
            else:
                await self._wait(connection)

    async def _open(self, connection: Connection) -> None:
        number = connection.next_id()
        command = pb.CommandProducer(topic=self._client.topic, producer_id=self._id, request_id=number, epoch=self._epoch)
        if self._wire_name:
            command.producer_name = self._wire_name
        command.user_provided_producer_name = False
        self._epoch += 1
        self._is_broken = False
        self._connection = connection
        connection.producers[self._id] = self
        answer = await connection.request(BaseCommand(type=BaseCommand.PRODUCER, producer=command), number)
        self._wire_name = answer.producer_success.producer_name
        self._session = self._recorder.next_id()
        self._recorder.record(ProducerOpened(self._recorder.clock(), self._session, self.shape.name))

    async def _wait(self, connection: Connection) -> None:
        self._moved.clear()
        lost = asyncio.create_task(connection.lost.wait())
        moved = asyncio.create_task(self._moved.wait())
        try:
            await asyncio.wait((lost, moved), return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost.cancel()
            moved.cancel()

    def _pause(self) -> float:
        return self._rng.expovariate(1 / self.shape.pause_seconds) if self.shape.pause_seconds else 0.0

    # Sending

    def _send_next(self, connection: Connection) -> None:
        count = self._rng.randint(1, self.shape.batch_messages_max)
        is_batch = count > 1 or (self.shape.batch_messages_max > 1 and self._rng.random() < 0.5)
        key = f"key-{self._rng.randrange(self.shape.keys)}"
        messages = tuple(self._message(index if is_batch else -1, key) for index in range(count))
        self._pending.append(messages)
        self.sent_entries += 1
        self._send(connection, messages)

    def _message(self, batch_index: int, key: str) -> Message:
        sequence, self._next_sequence = self._next_sequence, self._next_sequence + 1
        filler = self._rng.randbytes(self._rng.randint(0, self.shape.payload_bytes_max))
        return Message(batch_index, MessageKey(self.shape.name, sequence), key, payload_for(self.shape.name, sequence, filler))

    def _send(self, connection: Connection, messages: tuple[Message, ...]) -> None:
        send = pb.CommandSend(producer_id=self._id, sequence_id=messages[0].id.sequence, num_messages=len(messages))
        if len(messages) > 1:
            send.highest_sequence_id = messages[-1].id.sequence
        self._recorder.record(Sent(self._recorder.clock(), self._session, messages))
        publish_time_ms = int(self._recorder.clock() * 1000)
        entry = encode_entry(self._wire_name, messages, publish_time_ms)
        connection.send(BaseCommand(type=BaseCommand.SEND, send=send), entry)

    # Answers

    def on_command(self, command: BaseCommand, payload: bytes) -> None:
        if command.type == BaseCommand.SEND_RECEIPT:
            receipt = command.send_receipt
            position = Position(signed(receipt.message_id.ledger_id), signed(receipt.message_id.entry_id))
            self._recorder.record(Acknowledged(self._recorder.clock(), self._session, receipt.sequence_id, position))
            self._pending.popleft()
        elif command.type == BaseCommand.SEND_ERROR:
            self._recorder.record(Refused(self._recorder.clock(), self._session, command.send_error.sequence_id))
            self._break_off()
        else:
            self._break_off()
        self._moved.set()

    def _break_off(self) -> None:
        """Leaves the session. Pending messages are sent again by the next session; answers to this one are ignored."""
        self._is_broken = True
        if self._connection is not None:
            self._connection.producers.pop(self._id, None)
