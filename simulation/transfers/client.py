"""A client program that moves tokens in transactions: takes one from a topic, publishes it to two others, acknowledges it.

Speaks the wire over the connection of `simulation.clients`. After a failure the client begins anew with a new connection, like
a program that was started again; a client that had acknowledged everything ends its transaction over the new connection, as
Apache's clients do. The books (`simulation.transfers.books`) record each answer.
"""

import asyncio
import random
from collections import deque
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c

from simulation.clients.client import PORT, SERVER, Connection, Recorder, RequestFailed
from simulation.clients.wire_format import MAGIC
from simulation.transfers.books import FROM, SUBSCRIPTION, TO, Books
from wire.generated import pulsar_api_pb2 as pb
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata

RETRY_SECONDS = 0.5
TIMEOUT_MS = 4000
ABORTED = 0.25
"""Share of the transactions that are aborted by their client."""
FORGETS = 0.3
"""Share of the lost connections after which a mover is another program, which knows nothing of the one before."""


class Peer:
    """One connection with a consumer and producers; answers are waited for one at a time."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.connection: Connection
        self.received: deque[tuple[pb.MessageIdData, bytes]] = deque()
        self._moved = asyncio.Event()
        self._receipts = 0
        self._is_broken = False

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        _, self.connection = await loop.create_connection(lambda: Connection(self.recorder), SERVER, PORT)
        try:
            await self.connection.handshake()
        except BaseException:
            self.connection.abort()
            raise

    async def ask(self, kind: Any, field: str, asked: Any) -> BaseCommand:
        asked.request_id = number = self.connection.next_id()
        return await self.connection.request(BaseCommand(type=kind, **{field: asked}), number)

    async def produce(self, producer_id: int, topic: str) -> None:
        self.connection.producers[producer_id] = self
        asked = pb.CommandProducer(topic=topic, producer_id=producer_id, request_id=0, txn_enabled=True)
        await self.ask(BaseCommand.PRODUCER, "producer", asked)

    async def consume(self, topic: str, name: str, kind: Any) -> None:
        self.connection.consumers[0] = self
        asked = pb.CommandSubscribe(topic=topic, subscription=name, sub_type=kind, consumer_id=0, request_id=0)
        asked.initial_position = pb.CommandSubscribe.Earliest
        await self.ask(BaseCommand.SUBSCRIBE, "subscribe", asked)
        flow = pb.CommandFlow(consumer_id=0, message_permits=1000)
        self.connection.send(BaseCommand(type=BaseCommand.FLOW, flow=flow))

    async def publish(self, producer_id: int, sequence: int, body: bytes, txn: tuple[int, int] | None = None) -> None:
        """Until its receipt."""
        send = pb.CommandSend(producer_id=producer_id, sequence_id=sequence, num_messages=1)
        metadata = MessageMetadata(producer_name="transfers", sequence_id=sequence, publish_time=1)
        if txn is not None:
            send.txnid_most_bits, send.txnid_least_bits = txn
            metadata.txnid_most_bits, metadata.txnid_least_bits = txn
        head = metadata.SerializeToString()
        rest = len(head).to_bytes(4) + head + body
        before = self._receipts
        self.connection.send(BaseCommand(type=BaseCommand.SEND, send=send), MAGIC + crc32c(rest).to_bytes(4) + rest)
        await self._until(lambda: self._receipts > before)

    async def next(self, seconds_max: float) -> tuple[pb.MessageIdData, bytes] | None:
        """None: nothing came for so long."""
        try:
            async with asyncio.timeout(seconds_max):
                await self._until(lambda: bool(self.received))
        except TimeoutError:
            return None
        return self.received.popleft()

    async def _until(self, condition: Any) -> None:
        lost = asyncio.create_task(self.connection.lost.wait())
        try:
            while not condition():
                if self.connection.lost.is_set() or self._is_broken:
                    raise ConnectionResetError("the connection, or what is on it, has ended")
                self._moved.clear()
                moved = asyncio.create_task(self._moved.wait())
                try:
                    await asyncio.wait((lost, moved), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    moved.cancel()
        finally:
            lost.cancel()

    def on_command(self, command: BaseCommand, payload: bytes) -> None:
        if command.type == BaseCommand.MESSAGE:
            start = 10 + int.from_bytes(payload[6:10])
            self.received.append((command.message.message_id, payload[start:]))
        elif command.type == BaseCommand.SEND_RECEIPT:
            self._receipts += 1
        elif command.type != BaseCommand.ACTIVE_CONSUMER_CHANGE:
            self._is_broken = True
        self._moved.set()


class _Program:
    """Begins anew whenever something fails. `stop` lets it end after what it is at."""

    def __init__(self, recorder: Recorder, books: Books, rng: random.Random, number: int) -> None:
        self._recorder, self._books, self._rng, self._number = recorder, books, rng, number
        self._is_stopping = False

    def stop(self) -> None:
        self._is_stopping = True

    async def run(self) -> None:
        while not self._is_stopping:
            peer = Peer(self._recorder)
            try:
                await peer.open()
                await self._work(peer)
            except (OSError, RequestFailed):
                await asyncio.sleep(RETRY_SECONDS * self._rng.uniform(0.5, 1.5))
            finally:
                if hasattr(peer, "connection"):
                    peer.connection.abort()

    async def _work(self, peer: Peer) -> None:
        raise NotImplementedError


class Watcher(_Program):
    """Reads one of the topics while tokens are moved, from its beginning each time."""

    async def _work(self, peer: Peer) -> None:
        await peer.consume(TO[self._number], "watch", pb.CommandSubscribe.Exclusive)
        while not self._is_stopping:
            found = await peer.next(1.0)
            if found is not None:
                self._books.seen(found[1])


@dataclass(frozen=True, slots=True)
class _Ending:
    """A transaction in which all is answered that was asked, and how its client wants it to end."""

    txn: tuple[int, int]
    token: bytes
    is_committed: bool


class Mover(_Program):
    """Moves tokens with the coordinator of that number, which others may use too."""

    def __init__(self, recorder: Recorder, books: Books, rng: random.Random, number: int) -> None:
        super().__init__(recorder, books, rng, number)
        self._sequence = 0
        self._unanswered: _Ending | None = None
        """The connection was lost before it was told that it had ended."""

    async def _work(self, peer: Peer) -> None:
        asked = pb.CommandTcClientConnectRequest(request_id=0, tc_id=self._number)
        await peer.ask(BaseCommand.TC_CLIENT_CONNECT_REQUEST, "tc_client_connect_request", asked)
        await self._go_on(peer)
        for index, topic in enumerate(TO):
            await peer.produce(index, topic)
        await peer.consume(FROM, SUBSCRIPTION, pb.CommandSubscribe.Shared)
        while not self._is_stopping:
            found = await peer.next(1.0)
            if found is not None:
                self._books.moved_at = self._recorder.loop_time()
                await self._move(peer, *found)

    async def _move(self, peer: Peer, message_id: pb.MessageIdData, token: bytes) -> None:
        opened = await peer.ask(
            BaseCommand.NEW_TXN, "new_txn", pb.CommandNewTxn(request_id=0, tc_id=self._number, txn_ttl_seconds=TIMEOUT_MS)
        )
        txn = (opened.new_txn_response.txnid_most_bits, opened.new_txn_response.txnid_least_bits)
        self._books.opened(txn)
        ids: dict[str, Any] = {"request_id": 0, "txnid_most_bits": txn[0], "txnid_least_bits": txn[1]}
        added = pb.CommandAddPartitionToTxn(partitions=TO, **ids)
        await peer.ask(BaseCommand.ADD_PARTITION_TO_TXN, "add_partition_to_txn", added)
        body = token + b" %d %d" % txn
        for index in range(len(TO)):
            self._sequence += 1
            await peer.publish(index, self._sequence, body, txn)
        named = pb.CommandAddSubscriptionToTxn(**ids)
        named.subscription.add(topic=FROM, subscription=SUBSCRIPTION)
        await peer.ask(BaseCommand.ADD_SUBSCRIPTION_TO_TXN, "add_subscription_to_txn", named)
        ack = pb.CommandAck(consumer_id=0, ack_type=pb.CommandAck.Individual, message_id=[message_id], **ids)
        await peer.ask(BaseCommand.ACK, "ack", ack)
        ending = _Ending(txn, token, is_committed=self._rng.random() >= ABORTED)
        if ending.is_committed:
            self._books.committing(txn)
        await self._end(peer, ending)

    async def _end(self, peer: Peer, ending: _Ending) -> None:
        self._unanswered = ending
        asked = pb.CommandEndTxn(request_id=0, txn_action="COMMIT" if ending.is_committed else "ABORT")
        asked.txnid_most_bits, asked.txnid_least_bits = ending.txn
        try:
            await peer.ask(BaseCommand.END_TXN, "end_txn", asked)
        except RequestFailed as failure:
            self._unanswered = None  # its time was up
            if "ended otherwise" in str(failure):
                self._books.contradicted(ending.txn, str(failure))
            raise
        self._unanswered = None
        self._books.told(ending.txn, ending.token, is_committed=ending.is_committed)

    async def _go_on(self, peer: Peer) -> None:
        """After the connection was lost: what was acknowledged in it, and answered, counts with it all the same. Or it is
        forgotten, and ends as was decided, else when its time is up."""
        if self._rng.random() < FORGETS:
            self._unanswered = None
        if self._unanswered is not None:
            await self._end(peer, self._unanswered)
