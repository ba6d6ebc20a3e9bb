"""The entries of one split through a broker: a non-durable subscription of its own, which leaves nothing behind.

Reads on after a broker was lost, from where it was: entries come once and in order. Planned entries that do not come are looked
up in the topic's ledgers: a ledger that is gone is lost data; entries of a ledger that is there are those that brokers keep to
themselves (markers of transactions and replication).
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy

from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandFlow,
    CommandSubscribe,
    MessageIdData,
)

from ..decode.rows import Rows, rows_in_parts, rows_of
from ..decode.sections import Block
from ..errors import DataLost, NoSuchTopic, Unreachable
from ..options import Access
from ..plan import Split
from ..positions import Place, told
from .admin import ledgers_of
from .brokers import connection_to, tried_again
from .connection import Connection, Lost, raise_refusal
from .deliveries import between, deliveries, parted
from .dispatchable import is_nothing_left, readable_until

_BLOCK_BYTES = 4 << 20
"""Bytes of a block of entries, about: a task's memory is a few times this."""
_PERMITS = 50_000
_LOOK_SECONDS = 2.0
"""Time without a message after which the reader looks whether the awaited entries are still there."""
_PAUSE_SECONDS = 0.1
"""Pause before a broker that took the reader and let it go is asked again."""
_CONSUMER_ID = 1


class SplitReader:
    """Iterate once. DataLost unless that is not to fail; Unreachable, Refused."""

    def __init__(self, split: Split, access: Access, fails_on_data_loss: bool, verifies_checksums: bool = True) -> None:
        self._split, self._access = split, access
        self._fails_on_data_loss, self._verifies = fails_on_data_loss, verifies_checksums
        self._next: Place = split.first
        self._entries = 0
        self._read: Counter[int] = Counter()
        """Entries, by ledger: of one that is gone, what was not read is lost, also where the broker went on behind it."""
        self._is_done = False

    def __iter__(self) -> Iterator[Rows]:
        until: float | None = None
        while not self._is_done:
            before = self._next
            try:
                yield from self._from_broker()
            except Lost as error:
                now = time.monotonic()
                until = now + self._access.timeout_seconds if until is None or before != self._next else until
                if now > until:
                    raise Unreachable(f"{self._split.topic} at {self._next}: {error}") from None
                time.sleep(_PAUSE_SECONDS)
        if self._entries < self._split.entries:
            self._look_for_loss()

    def _from_broker(self) -> Iterator[Rows]:
        topic, access = self._split.topic, self._access
        connection = tried_again(f"{topic} at {self._next}", access, lambda: self._subscribed(topic))
        try:
            yield from self._delivered(connection)
        finally:
            connection.close()

    def _subscribed(self, topic: str) -> Connection:
        connection = connection_to(topic, self._access)
        try:
            connection.ask(_subscription(topic, self._next, connection.request_id()), BaseCommand.SUCCESS)
            connection.send(_flow(_PERMITS))
        except BaseException:
            connection.close()
            raise
        return connection

    def _delivered(self, connection: Connection) -> Iterator[Rows]:
        permits, waited_since = 0, time.monotonic()
        while not self._is_done:
            frames = connection.block(_BLOCK_BYTES, _LOOK_SECONDS)
            if frames is None:
                self._check_awaited(waited_since)
                continue
            found = deliveries(frames)
            if not found.block.count:
                self._take_others(connection, found.others)
                continue
            wanted, others = parted(between(found.block, self._next, self._split.last), self._split.ranges)
            waited_since = time.monotonic()
            permits += rows_of(others, False).message_count if others.count else 0
            for rows in rows_in_parts(wanted, self._verifies):
                permits += rows.message_count
                self._took(rows.block)
                yield rows
            if self._advance(Place(int(found.block.ledger_ids[-1]), int(found.block.entry_ids[-1]))):
                return
            self._take_others(connection, found.others)
            if permits * 2 >= _PERMITS:
                connection.send(_flow(permits))
                permits = 0

    def _took(self, block: Block) -> None:
        """Notes a block before it is handed out: none of its entries comes again after an error."""
        if not block.count:
            return
        self._entries += block.count
        ledgers, counts = numpy.unique(block.ledger_ids, return_counts=True)
        self._read.update(dict(zip(ledgers.tolist(), counts.tolist(), strict=True)))
        self._next = Place(int(block.ledger_ids[-1]), int(block.entry_ids[-1]) + 1)

    def _advance(self, came: Place) -> bool:
        """Whether that was all of the split."""
        self._next = max(self._next, Place(came.ledger_id, came.entry_id + 1))
        self._is_done = came >= self._split.last
        return self._is_done

    def _take_others(self, connection: Connection, commands: list[BaseCommand]) -> None:
        for command in commands:
            raise_refusal(connection.url, command)
            if command.type == BaseCommand.PING:
                connection.pong()
            elif command.type == BaseCommand.CLOSE_CONSUMER:
                raise Lost(f"{connection.url} closed the consumer")

    def _check_awaited(self, since: float) -> None:
        """Nothing came for a while: it is gone, or kept back by the broker, or slow."""
        self._look_for_loss()
        if not self._is_done:
            self._is_done = is_nothing_left(self._split.topic, self._next, self._split.last, self._access)
        if self._is_done:
            return
        if time.monotonic() - since > self._access.timeout_seconds:
            raise Unreachable(f"{self._split.topic} at {self._next}: no message came in {self._why_none()}")

    def _why_none(self) -> str:
        seconds, last = f"{self._access.timeout_seconds:g} s", self._split.last
        readable = readable_until(self._split.topic, self._access)
        if readable is not None and readable < last:
            return (
                f"{seconds}: a transaction that is open holds back what is behind {readable}. End it, or end the query there, "
                f"by endingOffsets={readable.ledger_id}:{readable.entry_id + 1}"
            )
        said = f"{seconds}, and the topic's ledgers say that there is one up to {last}"
        return f"{said}. If brokers are that slow, raise pollTimeoutMs"

    def _look_for_loss(self) -> None:
        """DataLost for ledgers of the split that are gone; where that is not to fail, the split is what is still there."""
        missing = self._missing()
        if not missing:
            return
        if self._fails_on_data_loss or self._is_done:
            told(self._loss(missing), self._fails_on_data_loss)
        self._is_done = self._is_done or self._split.last.ledger_id in missing

    def _loss(self, missing: Mapping[int, int]) -> DataLost:
        places = ", ".join(f"{count} of ledger {ledger_id}" for ledger_id, count in missing.items())
        return DataLost(
            f"{self._split.topic}: {sum(missing.values())} entries between {self._split.first} and {self._split.last} are "
            f"missing: {places}, deleted before they were read"
        )

    def _missing(self) -> Mapping[int, int]:
        """Number of unread entries, by ledger, that the topic does not have any more."""
        try:
            there = {ledger.ledger_id for ledger in ledgers_of(self._split.topic, self._access)}
        except NoSuchTopic:
            there = set()
        left = Counter[int]()
        for each in self._split.ranges:
            left[each.ledger_id] += each.count
        left.subtract(self._read)
        return {ledger_id: count for ledger_id, count in left.items() if ledger_id not in there and count > 0}


def _subscription(topic: str, first: Place, request_id: int) -> BaseCommand:
    """Command that subscribes at `first`: with a batch index brokers begin with that entry, else after it (PersistentTopic)."""
    asked = CommandSubscribe(
        topic=topic,
        subscription=f"pipeline-{time.time_ns():x}-{id(first):x}",
        sub_type=CommandSubscribe.Exclusive,
        consumer_id=_CONSUMER_ID,
        request_id=request_id,
        durable=False,
        initial_position=CommandSubscribe.Earliest,
        force_topic_creation=False,
        start_message_id=MessageIdData(ledger_id=first.ledger_id, entry_id=first.entry_id, batch_index=0),
    )
    return BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=asked)


def _flow(permits: int) -> BaseCommand:
    return BaseCommand(type=BaseCommand.FLOW, flow=CommandFlow(consumer_id=_CONSUMER_ID, message_permits=permits))
