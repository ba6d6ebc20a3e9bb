"""SimConsumer: subscribes, takes messages, acknowledges them in every way there is, nacks, seeks, closes, comes again.

Its rng draws its next action, never one that is not allowed (to acknowledge a message that it did not get).
"""

import asyncio
import random
from dataclasses import dataclass

from broker.topic.contract import SubscriptionType
from simulation.checks.history import (
    AckAnswered,
    AckSent,
    ActiveNotified,
    Delivered,
    LastMessageReported,
    MessageId,
    Nacked,
    SeekAsked,
    SeekDone,
    SeekRefused,
    SessionEnded,
    Subscribed,
)
from simulation.clients.client import Connection, RequestFailed, TopicClient
from simulation.clients.wire_format import WORD, ack_set_of, decode_entry, indexes_of, signed
from wire.generated import pulsar_api_pb2 as pb
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

RETRY_SECONDS = 0.5
ORDERED = (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


@dataclass(frozen=True, slots=True)
class ConsumerShape:
    """Habits of one consumer. Chances are per message taken (acks, nacks) or per idle moment (close, seek, ask)."""

    subscription: str
    type: SubscriptionType
    name: str
    receiver_queue: int
    ack_chance: float
    cumulative_chance: float
    part_chance: float
    receipt_chance: float
    nack_chance: float
    close_chance: float
    seek_chance: float
    idle_seconds: float
    tricks_max: int = 20
    """Nacks, closes and seeks together; then it only takes and acknowledges. Otherwise some would never come to an end."""
    start_seconds: float = 0.0
    priority_level: int = 0
    durable: bool = True


@dataclass(slots=True)
class Entry:
    """An entry as this session has it: which messages of how many, and which of them are not acknowledged by it."""

    position: Position
    size: int
    is_batch: bool
    got: set[int]
    open: set[int]
    is_nacked: bool = False


class SimConsumer:
    """One consumer, over all its connections and subscribings."""

    def __init__(self, client: TopicClient, shape: ConsumerShape, rng: random.Random, number: int) -> None:
        self.shape = shape
        self.is_stopping = False
        self.drained = asyncio.Event()
        self.mark_delete: Position | None = None
        self.last_position: Position | None = None
        self._client, self._rng, self._id = client, rng, number
        self._recorder = client.recorder
        self._session = -1
        self._is_open = False
        self._told_early: list[bool] = []
        self._connection: Connection | None = None
        self._entries: dict[Position, Entry] = {}
        self._queue: list[Entry] = []
        self._permits_due = 0
        self._moved = asyncio.Event()
        self._tricks = 0
        self._receipts: dict[asyncio.Task[None], None] = {}

    async def run(self) -> None:
        """Runs until it is told to stop."""
        await asyncio.sleep(self.shape.start_seconds)
        while not self.is_stopping:
            try:
                await self._consume(await self._client.connection())
            except (OSError, RequestFailed):
                pass  # the server is away or said no: once more, later; a server that never says yes fails as not live
            finally:
                self._end()
            if not self.is_stopping:
                await asyncio.sleep(RETRY_SECONDS * self._rng.uniform(0.5, 1.5))

    async def open_and_close(self, connection: Connection) -> None:
        """Subscribe, which makes the subscription, and leave."""
        await self._subscribe(connection)
        await self._close(connection)

    def _has_drained(self) -> bool:
        """Whether the server says that everything there is, is acknowledged."""
        return self.last_position is not None and (
            self.last_position.entry_id < 0 or (self.mark_delete is not None and self.mark_delete >= self.last_position)
        )

    def stop(self) -> None:
        self.is_stopping = True
        self._moved.set()

    # One session

    async def _consume(self, connection: Connection) -> None:
        await self._subscribe(connection)
        lost = asyncio.create_task(self._wake_when_lost(connection))
        try:
            while self._is_open and not connection.lost.is_set():
                if self.is_stopping:
                    await self._close(connection)
                    return
                if self._queue:
                    self._take(connection)
                    await asyncio.sleep(self._rng.expovariate(1 / 0.002))
                else:
                    await self._idle(connection)
        finally:
            lost.cancel()

    async def _wake_when_lost(self, connection: Connection) -> None:
        await connection.lost.wait()
        self._end()
        self._moved.set()

    async def _subscribe(self, connection: Connection) -> None:
        number = connection.next_id()
        command = pb.CommandSubscribe(
            topic=self._client.topic,
            subscription=self.shape.subscription,
            sub_type=int(self.shape.type),  # type: ignore[arg-type]  # the stub wants its own enum
            consumer_id=self._id,
            request_id=number,
            consumer_name=self.shape.name,
            priority_level=self.shape.priority_level,
            durable=self.shape.durable,
            initial_position=pb.CommandSubscribe.Earliest,
        )
        if not self.shape.durable:
            command.start_message_id.ledger_id = command.start_message_id.entry_id = WORD
        self._entries.clear()
        self._queue.clear()
        self._told_early.clear()
        self._connection = connection
        connection.consumers[self._id] = self
        await connection.request(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=command), number)
        self._session, self._is_open = self._recorder.next_id(), True
        self._recorder.record(
            Subscribed(
                self._recorder.clock(),
                self._session,
                connection.number,
                self.shape.subscription,
                self.shape.type,
                from_earliest=True,
                durable=self.shape.durable,
            )
        )
        for is_active in self._told_early:
            self._on_active(is_active)
        self._flow(connection, self.shape.receiver_queue)

    def _end(self) -> None:
        if self._is_open:
            self._is_open = False
            self._recorder.record(SessionEnded(self._recorder.clock(), self._session))
        if self._connection is not None:
            self._connection.consumers.pop(self._id, None)

    async def _close(self, connection: Connection) -> None:
        self._end()
        number = connection.next_id()
        close = pb.CommandCloseConsumer(consumer_id=self._id, request_id=number)
        await connection.request(BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=close), number)

    def _flow(self, connection: Connection, permits: int) -> None:
        flow = pb.CommandFlow(consumer_id=self._id, message_permits=permits)
        connection.send(BaseCommand(type=BaseCommand.FLOW, flow=flow))

    # Messages

    def on_command(self, command: BaseCommand, payload: bytes) -> None:
        if command.type == BaseCommand.CLOSE_CONSUMER:
            self._end()
        elif command.type == BaseCommand.MESSAGE and self._is_open:
            self._on_message(command.message, payload)
        elif command.type == BaseCommand.ACTIVE_CONSUMER_CHANGE:
            self._on_active(command.active_consumer_change.is_active)
        self._moved.set()

    def _on_active(self, is_active: bool) -> None:
        """Handles a notification that may come together with the answer to SUBSCRIBE, before its waiter runs."""
        if self._is_open:
            self._recorder.record(ActiveNotified(self._recorder.clock(), self._session, is_active))
        else:
            self._told_early.append(is_active)

    def _on_message(self, command: pb.CommandMessage, payload: bytes) -> None:
        position = Position(signed(command.message_id.ledger_id), signed(command.message_id.entry_id))
        messages = decode_entry(payload)
        is_batch = messages[0].batch_index >= 0
        left = indexes_of(command.ack_set, len(messages))
        taken = tuple(messages[index] for index in left)
        self._recorder.record(Delivered(self._recorder.clock(), self._session, position, taken))
        entry = self._entries.get(position)
        if entry is None:
            entry = self._entries[position] = Entry(position, len(messages), is_batch, set(), set())
        entry.got |= set(left)
        entry.open |= set(left)
        entry.is_nacked = False
        self._queue.append(entry)
        self._permits_due += len(left)

    def _take(self, connection: Connection) -> None:
        entry = self._queue.pop(0)
        chance = self._rng.random()
        if chance < self.shape.ack_chance:
            self._acknowledge(connection, entry)
        elif chance < self.shape.ack_chance + self.shape.nack_chance and self._may_trick():
            self._nack(connection, entry)
        if self._permits_due >= max(1, self.shape.receiver_queue // 2):
            self._flow(connection, self._permits_due)
            self._permits_due = 0

    # Acknowledgements

    def _acknowledge(self, connection: Connection, entry: Entry) -> None:
        if not entry.open:
            return
        ack = pb.CommandAck(consumer_id=self._id, ack_type=pb.CommandAck.Individual)
        if self.shape.type in ORDERED and self._rng.random() < self.shape.cumulative_chance:
            ack.ack_type = pb.CommandAck.Cumulative
            ids = self._fill_cumulative(ack, entry)
        elif entry.is_batch and self._rng.random() < self.shape.part_chance:
            part = {index for index in sorted(entry.open) if self._rng.random() < 0.5} or {min(entry.open)}
            ids = self._fill(ack, entry, part)
        else:
            ids = self._fill(ack, entry, set(entry.open))
        is_cumulative = ack.ack_type == pb.CommandAck.Cumulative
        sent = AckSent(self._recorder.clock(), self._session, ids, is_cumulative)
        self._recorder.record(sent)
        self._send_ack(connection, ack, sent)

    def _fill(self, ack: pb.CommandAck, entry: Entry, part: set[int]) -> tuple[MessageId, ...]:
        """The command speaks of the whole entry: what is not left is acknowledged, again where it was before."""
        entry.open -= part
        self._add_id(ack, entry, sorted(entry.open))
        return tuple(self._message_id(entry, index) for index in range(entry.size) if index not in entry.open)

    def _fill_cumulative(self, ack: pb.CommandAck, entry: Entry) -> tuple[MessageId, ...]:
        for position, other in self._entries.items():
            if position < entry.position:
                other.open.clear()
        upto = max(entry.open)
        if entry.is_batch and self._rng.random() < self.shape.part_chance:
            upto = self._rng.choice(sorted(entry.open))
        entry.open = {index for index in entry.open if index > upto}
        self._add_id(ack, entry, range(upto + 1, entry.size))
        return (self._message_id(entry, upto),)

    def _add_id(self, ack: pb.CommandAck, entry: Entry, left: "list[int] | range") -> None:
        """Adds the id of an entry, with the ack set of the messages left of its batch; without one when none is left."""
        where = ack.message_id.add(ledger_id=entry.position.ledger_id, entry_id=entry.position.entry_id)
        if len(left):
            where.ack_set.extend(ack_set_of(left, entry.size))
            where.batch_size = entry.size

    def _message_id(self, entry: Entry, index: int) -> MessageId:
        return MessageId(*entry.position, index if entry.is_batch else -1)

    def _send_ack(self, connection: Connection, ack: pb.CommandAck, sent: AckSent) -> None:
        command = BaseCommand(type=BaseCommand.ACK, ack=ack)
        if self._rng.random() < self.shape.receipt_chance:
            number = command.ack.request_id = connection.next_id()
            task = asyncio.create_task(self._await_receipt(connection, command, number, sent))
            self._receipts[task] = None
            task.add_done_callback(lambda done: self._receipts.pop(done, None))
        else:
            connection.send(command)

    async def _await_receipt(self, connection: Connection, command: BaseCommand, number: int, sent: AckSent) -> None:
        try:
            await connection.request(command, number)
        except (OSError, RequestFailed):
            return
        now = self._recorder.clock()
        self._recorder.record(AckAnswered(now, sent.session, sent.ids, sent.cumulative, sent.at))

    def _nack(self, connection: Connection, entry: Entry) -> None:
        command = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=self._id)
        ids: tuple[MessageId, ...] = ()
        if self.shape.type in ORDERED:
            self._queue.clear()
        else:
            ids = tuple(self._message_id(entry, index) for index in sorted(entry.open))
            command.message_ids.add(ledger_id=entry.position.ledger_id, entry_id=entry.position.entry_id)
            self._queue = [other for other in self._queue if other is not entry]
            entry.is_nacked = True
            if not ids:
                return
        self._recorder.record(Nacked(self._recorder.clock(), self._session, ids))
        connection.send(
            BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliver_unacknowledged_messages=command)
        )

    # Idle moments

    async def _idle(self, connection: Connection) -> None:
        self._moved.clear()
        try:
            async with asyncio.timeout(self._rng.expovariate(1 / self.shape.idle_seconds)):
                await self._moved.wait()
        except TimeoutError:
            await self._use_idle_moment(connection)

    async def _use_idle_moment(self, connection: Connection) -> None:
        chance = self._rng.random()
        if chance < self.shape.close_chance and self._may_trick():
            await self._close(connection)
        elif chance < self.shape.close_chance + self.shape.seek_chance and self._may_trick():
            await self._seek(connection)
        elif chance < 0.5:
            await self.ask_last_message(connection)
        elif chance < 0.7:
            await connection.ping()
        elif self._permits_due:
            self._flow(connection, self._permits_due)
            self._permits_due = 0
        else:
            held = [entry for entry in self._entries.values() if entry.open and not entry.is_nacked]
            if held and self.shape.ack_chance:
                self._acknowledge(connection, self._rng.choice(held))

    def _may_trick(self) -> bool:
        self._tricks += 1
        return self._tricks <= self.shape.tricks_max

    async def ask_last_message(self, connection: Connection) -> None:
        number, session = connection.next_id(), self._session
        ask = pb.CommandGetLastMessageId(consumer_id=self._id, request_id=number)
        command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, get_last_message_id=ask)
        try:
            answer = await connection.request(command, number)
        except RequestFailed:
            return  # a disk that fails; the consumer goes on
        told = answer.get_last_message_id_response
        self.last_position = _position(told.last_message_id)
        self.mark_delete = None
        if told.HasField("consumer_mark_delete_position"):
            self.mark_delete = _position(told.consumer_mark_delete_position)
        if self._has_drained():
            self.drained.set()
        if self._is_open:
            self._recorder.record(LastMessageReported(self._recorder.clock(), session, self.last_position, self.mark_delete))

    async def _seek(self, connection: Connection) -> None:
        number, session = connection.next_id(), self._session
        target = self._rng.choice([Position(-1, -1), *self._entries])
        seek = pb.CommandSeek(consumer_id=self._id, request_id=number)
        seek.message_id.ledger_id, seek.message_id.entry_id = target.ledger_id & WORD, target.entry_id & WORD
        self._recorder.record(SeekAsked(self._recorder.clock(), session, target))
        try:
            await connection.request(BaseCommand(type=BaseCommand.SEEK, seek=seek), number)
        except RequestFailed:
            self._recorder.record(SeekRefused(self._recorder.clock(), session))
            return
        self._recorder.record(SeekDone(self._recorder.clock(), session))
        self._end()


def _position(message_id: pb.MessageIdData) -> Position:
    return Position(signed(message_id.ledger_id), signed(message_id.entry_id))
