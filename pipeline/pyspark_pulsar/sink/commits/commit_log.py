"""Decisions of a write: the transactions of a batch, noted in a topic before the first of them is committed.

One topic for each query, whose newest decision is held by a subscription; that subscription is exclusive, so a second driver
of the same query is refused. Beside the decisions tasks note in it which transactions they open: those that no decision has, as
their task was killed or was the slower of two, are aborted with the next one, so that readers do not wait for their time-outs.
"""

from typing import Self

import numpy
import pyarrow

from wire.generated.pulsar_api_pb2 import (
    NONE,
    BaseCommand,
    CommandAck,
    CommandFlow,
    CommandSubscribe,
    MessageIdData,
)

from ...client.admin import ledgers_of
from ...client.brokers import connection_to, tried_again
from ...client.connection import Connection, Lost
from ...client.deliveries import deliveries
from ...client.last_message import last_message, place_of
from ...decode.arrow_columns import batch_of
from ...decode.rows import rows_of
from ...errors import PipelineError
from ...options import Access
from ...positions import Place
from ..entries import Limits, Stamp
from ..messages import OutgoingRows
from ..publisher import Producing, Publisher
from .commit_records import Decision, Opened, Record, decode, encode

_CONSUMER_ID, _PERMITS = 1, 1000
_SUBSCRIPTION = "pipeline"
_BLOCK_BYTES = 1 << 16


def log_topic(write_id: str, namespace: str) -> str:
    return f"persistent://{namespace}/pipeline-commits-{write_id}"


def note(record: Record, topic: str, access: Access) -> None:
    """Stores a record: it is stored when this returns. Refused, Unreachable."""
    stamp = Stamp("", NONE, None, None)
    publisher = Publisher(topic, access, Producing("", stamp, None, Limits(1 << 20, 1), 1 << 20, True))
    try:
        publisher.send(
            OutgoingRows(pyarrow.array([encode(record)], pyarrow.binary()), None, None, None, numpy.zeros(1, numpy.uint64))
        )
        publisher.flush()
    finally:
        publisher.close()


class CommitLog:
    """Open it, look at `last` and `opened`, `write`, `let_go`, close. Refused, Unreachable (also while another driver has it).

    `opened`: the transactions that tasks noted since the decision before the last one. Without `lasts` it is looked at once,
    and is not made where it is not there: NoSuchTopic.
    """

    def __init__(self, topic: str, access: Access, lasts: bool = True) -> None:
        self._topic, self._access, self._lasts = topic, access, lasts
        if not lasts:
            ledgers_of(topic, access)
        self._has_written = False
        self._connection = tried_again(topic, access, self._subscribed)
        try:
            self._records = self._held()
        except Lost as error:
            self._connection.close()
            raise PipelineError(f"{topic}: {error}, while it was looked which batch was committed") from None
        except BaseException:
            self._connection.close()
            raise
        self._last_at = max((at for at, (_, each) in enumerate(self._records) if isinstance(each, Decision)), default=None)
        last = None if self._last_at is None else self._records[self._last_at][1]
        self.last = last if isinstance(last, Decision) else None
        self.opened = tuple(each for _, each in self._records if isinstance(each, Opened))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def write(self, decision: Decision) -> None:
        """Stores a decision: it is stored when this returns."""
        note(decision, self._topic, self._access)
        self._has_written = True

    def let_go(self) -> None:
        """Acknowledges all records before the newest decision. Nothing waits for it; otherwise the next commit does it."""
        count = len(self._records) if self._has_written else self._last_at or 0
        if count:
            place = self._records[count - 1][0]
            ids = [MessageIdData(ledger_id=place.ledger_id, entry_id=place.entry_id)]
            asked = CommandAck(consumer_id=_CONSUMER_ID, ack_type=CommandAck.Cumulative, message_id=ids)
            self._connection.send(BaseCommand(type=BaseCommand.ACK, ack=asked))

    def _subscribed(self) -> Connection:
        connection = connection_to(self._topic, self._access)
        try:
            asked = CommandSubscribe(
                topic=self._topic,
                subscription=_SUBSCRIPTION,
                sub_type=CommandSubscribe.Exclusive,
                consumer_id=_CONSUMER_ID,
                request_id=connection.request_id(),
                durable=self._lasts,
                initial_position=CommandSubscribe.Earliest,
                force_topic_creation=self._lasts,
            )
            connection.ask(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=asked), BaseCommand.SUCCESS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _held(self) -> list[tuple[Place, Record]]:
        """Those that are held, up to the newest, and where they are."""
        answer = last_message(self._connection, _CONSUMER_ID)
        newest = place_of(answer.last_message_id)
        has_any = answer.last_message_id.entry_id < 1 << 63 and newest > place_of(answer.consumer_mark_delete_position)
        found: list[tuple[Place, Record]] = []
        permits = _PERMITS if has_any else 0
        while has_any and (not found or found[-1][0] < newest):
            if permits:
                flow = CommandFlow(consumer_id=_CONSUMER_ID, message_permits=permits)
                self._connection.send(BaseCommand(type=BaseCommand.FLOW, flow=flow))
            frames = self._connection.block(_BLOCK_BYTES, self._access.timeout_seconds)
            if frames is None:
                raise Lost(f"the record at {newest} does not come")
            block = deliveries(frames).block
            permits = block.count
            if block.count:
                values = batch_of(rows_of(block), self._topic, ("value",)).column("value").to_pylist()
                places = zip(block.ledger_ids.tolist(), block.entry_ids.tolist(), strict=True)
                found += [(Place(*place), decode(value, self._topic)) for place, value in zip(places, values, strict=True)]
        return found
