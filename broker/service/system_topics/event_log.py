"""`__change_events` of a namespace for reading and writing: a reader and a producer on the topic, like a client's. Owns one
reading each. `topic_policies_elsewhere` does the same over the network for a topic of another broker.
"""

import asyncio
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from wire.position import Position
from wire.run import EntryRun, SendRun, batch_of

from ...errors import BrokerError, ServerError
from ...topic.contract import (
    AccessMode,
    Acknowledgement,
    Consumer,
    KeySharedMeta,
    ProducerRequest,
    SubscribeRequest,
    SubscriptionType,
    Topic,
)
from ...topic.sent_part import SentPart

COMPACTION_CURSOR = "__compaction"
"""The durable cursor that keeps uncompacted messages; without it retention would delete policies."""

_PERMITS = 1000
_READER = "__system_reader"
_ADDRESS = "broker"
_PRODUCE_SECONDS_MAX = 30.0

OnMessage = Callable[[Position, memoryview], None]
"""Told of each entry, in order: where it is, and its payload section, of which nothing may be kept."""


class EventLog(Protocol):
    """Log of one namespace. BrokerError for every failure."""

    async def read(self, on_message: OnMessage, on_end: Callable[[str], None]) -> Position:
        """Reads all entries, from the first one on, and new ones; once for each log. Returns the last entry at its
        beginning. `on_end` is called once when no more will come: the topic was unloaded, or the connection is gone.
        """

    async def append(self, section_of: Callable[[str], bytes]) -> Position:
        """Store the message that `section_of` makes for a producer's name; where it is, once it is durable."""

    def close(self) -> None:
        """End the reading without `on_end`."""


class _Reading:
    """The sink of a reader (`ConsumerSink`)."""

    def __init__(self, on_message: OnMessage, on_end: Callable[[str], None]) -> None:
        self._on_message = on_message
        self._on_end = on_end
        self.consumer: Consumer | None = None

    @property
    def is_writable(self) -> bool:
        return True

    async def is_alive(self) -> bool:
        return True

    def deliver(
        self,
        run: EntryRun,
        indexes: range | Sequence[int],
        redelivery_counts: Sequence[int] | None,
        ack_sets: Mapping[int, Sequence[int]] | None,
        consumer_epoch: int | None,
    ) -> None:
        for index in indexes:
            entry_id = run.first_entry_id + index
            self._on_message(Position(run.ledger_id, entry_id), run.payload(entry_id))
        if indexes:
            last = Position(run.ledger_id, run.first_entry_id + indexes[-1])
            asyncio.get_running_loop().call_soon(self._go_on, last)  # not while the dispatcher is at it

    def _go_on(self, last: Position) -> None:
        """Permits count messages: an entry takes as many as it says that it has, and anybody may write batches."""
        if self.consumer is not None:
            self.consumer.acknowledge(Acknowledgement(True, (last,), ((),), (0,)))
            used = _PERMITS - self.consumer.stats().available_permits
            if used > 0:
                self.consumer.flow(used)

    def active_changed(self, is_active: bool) -> None:
        """Whether it is the active one: a reader alone always is."""

    def reached_end_of_topic(self) -> None:
        """Ignores the end: this topic is terminated by hand only, and stored messages still hold."""

    def closed(self, reason: str) -> None:
        self.consumer = None
        self._on_end(reason)


class _Writing:
    """The sink of a producer of one message (`ProducerSink`)."""

    def __init__(self) -> None:
        self.stored: asyncio.Future[Position] = asyncio.get_running_loop().create_future()

    async def is_alive(self) -> bool:
        return True

    def receipts(self, run: SendRun, stored: EntryRun) -> None:
        if not self.stored.done():
            self.stored.set_result(Position(stored.ledger_id, stored.last_entry_id))

    def part_stored(self, part: SentPart) -> None:
        raise AssertionError("the policies are written run by run")

    def send_failed(self, run: SendRun, code: ServerError, message: str) -> None:
        self._fail(BrokerError(code, message))

    def hold_reading(self) -> None:
        """One message: there is nothing to hold back."""

    def resume_reading(self) -> None:
        """Ignored, like `stop_reading`."""

    def ready(self, topic_epoch: int) -> None:
        """A shared producer never waits for its turn."""

    def refused(self, code: ServerError, message: str) -> None:
        self._fail(BrokerError(code, message))

    def closed(self, reason: str) -> None:
        self._fail(BrokerError(ServerError.SERVICE_NOT_READY, reason))

    def _fail(self, error: BrokerError) -> None:
        if not self.stored.done():
            self.stored.set_exception(error)


class ServedEventLog:
    """An `EventLog` on the topic, which this broker serves. `only_new`: nothing is kept for it, and the old is not read."""

    def __init__(self, topic: Topic, new_name: Callable[[], str], *, only_new: bool = False) -> None:
        self._topic = topic
        self._new_name = new_name
        self._only_new = only_new
        self._reading: _Reading | None = None

    async def read(self, on_message: OnMessage, on_end: Callable[[str], None]) -> Position:
        if not self._only_new:
            await self._topic.create_subscription(COMPACTION_CURSOR, from_earliest=True, properties={})
        self._reading = reading = _Reading(on_message, on_end)
        name = f"{_READER}-{self._new_name()}"
        consumer = await self._topic.subscribe(_reader_request(name, from_earliest=not self._only_new), reading)
        reading.consumer = consumer
        consumer.flow(_PERMITS)
        return (await consumer.last_message()).position

    async def append(self, section_of: Callable[[str], bytes]) -> Position:
        name, writing = self._new_name(), _Writing()
        producer = await self._topic.add_producer(_producer_request(name), writing)
        try:
            producer.publish(_send_run(section_of(name), self._topic.header_bytes))
            async with asyncio.timeout(_PRODUCE_SECONDS_MAX):
                return await writing.stored
        except TimeoutError:
            message = f"{self._topic.name} was not written within {_PRODUCE_SECONDS_MAX} s"
            raise BrokerError(ServerError.SERVICE_NOT_READY, message) from None
        finally:
            producer.close()

    def close(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None and reading.consumer is not None:
            consumer, reading.consumer = reading.consumer, None
            consumer.close()


def _send_run(section: bytes, header_bytes: int) -> SendRun:
    return SendRun(0, batch_of((section,), header_bytes), array("Q", (0,)), array("Q", (0,)), 0, 0)


def _reader_request(name: str, *, from_earliest: bool) -> SubscribeRequest:
    return SubscribeRequest(
        consumer_id=0,
        subscription=name,
        type=SubscriptionType.EXCLUSIVE,
        consumer_name=name,
        priority_level=0,
        durable=False,
        start=None,
        start_batch_index=-1,
        start_rollback_seconds=0,
        from_earliest=from_earliest,
        metadata={},
        subscription_properties={},
        key_shared=KeySharedMeta(),
        consumer_epoch=None,
        read_compacted=True,
        address=_ADDRESS,
        client_version="",
    )


def _producer_request(name: str) -> ProducerRequest:
    return ProducerRequest(
        producer_id=0,
        name=name,
        name_is_generated=True,
        epoch=0,
        access_mode=AccessMode.SHARED,
        topic_epoch=None,
        is_encrypted=False,
        metadata={},
        address=_ADDRESS,
        client_version="",
    )
