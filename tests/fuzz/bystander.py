"""Bystander: publishes and consumes in its right mind beside the fuzz, with deduplication, and counts what it gets."""

import asyncio
import time
from typing import TypeVar

from tests.wire.frame_samples import metadata, send
from tests.wire.frame_samples import section as payload_section
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.payloads import split_section

from .plain_client import ANSWER_SECONDS_MAX, PlainClient

T = TypeVar("T")
TOPIC = "persistent://public/sober/t"
BATCH = 10


class Bystander:
    """`begin`, then `run` until it is cancelled, then `end`."""

    def __init__(self, host: str, port: int) -> None:
        self._where = host, port
        self.published = self.received = 0
        self.round_trips: list[float] = []
        """Seconds from the first of a few messages to the last one's arrival."""
        self._client: PlainClient

    async def begin(self) -> None:
        self._client = client = await PlainClient.connected(*self._where)
        await client.request(
            BaseCommand.SUBSCRIBE, topic=TOPIC, subscription="s", sub_type=api.CommandSubscribe.Exclusive, consumer_id=0
        )
        await client.request(BaseCommand.PRODUCER, topic=TOPIC, producer_id=0, producer_name="sober")

    async def run(self, pause: float = 0.05) -> None:
        """Each message twice: the second time the broker knows it."""
        while True:
            started = time.monotonic()
            self._client.flow(BATCH)
            await self._publish(is_known=False)
            await self._publish(is_known=True)
            self.published += BATCH
            for _ in range(BATCH):
                await self._receive()
            self.round_trips.append(time.monotonic() - started)
            await asyncio.sleep(pause)

    async def _publish(self, *, is_known: bool) -> None:
        """A few; -1 is where the broker says that those are which it knows already."""
        for number in range(self.published, self.published + BATCH):
            section = payload_section(metadata("sober", number).SerializeToString(), b"%d" % number)
            self._client.send_raw(send(0, number, section))
        for _ in range(BATCH):
            receipt = await self._next(self._client.receipts)
            assert receipt.type == BaseCommand.SEND_RECEIPT, receipt
            assert bool(receipt.send_receipt.message_id.ledger_id >> 63) is is_known, receipt

    async def _receive(self) -> None:
        """The next one, which has to be the one that comes next."""
        command, data = await self._next(self._client.deliveries)
        assert split_section(data).payload == b"%d" % self.received, (self.received, data)
        told = api.CommandAck(consumer_id=0, ack_type=api.CommandAck.Individual, message_id=[command.message.message_id])
        self._client.send(BaseCommand(type=BaseCommand.ACK, ack=told))
        self.received += 1

    async def _next(self, queue: "asyncio.Queue[T]") -> T:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            return await queue.get()

    async def end(self) -> None:
        await self._client.close()
