"""What was decided of a write: which transactions are a batch's, noted in a topic before the first of them is committed.

One topic for each query, whose newest record is held by a subscription; that subscription is exclusive, so a second driver
of the same query is refused. A record is JSON: `{"version": 1, "batch": 7, "transactions": [[most, least, [topics]], ...]}`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
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

from ..client.brokers import connection_to, tried_again
from ..client.connection import Connection, Lost
from ..client.deliveries import deliveries
from ..client.last_message import last_message, place_of
from ..decode.arrow_columns import batch_of
from ..decode.rows import rows_of
from ..errors import PipelineError
from ..options import Access
from ..positions import Place
from .entries import Limits, Stamp, TxnId
from .messages import OutgoingRows
from .publisher import Producing, Publisher

_CONSUMER_ID, _PERMITS = 1, 1000
_SUBSCRIPTION = "pipeline"
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Written:
    """A task's transaction, and the topics that took part in it."""

    txn_id: TxnId
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """These transactions are the batch; no others of it are ever committed."""

    batch: int
    written: tuple[Written, ...]


def encode(decision: Decision) -> bytes:
    found = [[each.txn_id.most, each.txn_id.least, list(each.topics)] for each in decision.written]
    return json.dumps({"version": 1, "batch": decision.batch, "transactions": found}).encode()


def decode(record: bytes, topic: str) -> Decision:
    try:
        found = json.loads(record)
        if found["version"] != 1:
            raise ValueError(f"version {found['version']}")
        written = [Written(TxnId(most, least), tuple(topics)) for most, least, topics in found["transactions"]]
        return Decision(int(found["batch"]), tuple(written))
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{topic}: its newest message is no record of a commit: {error}. Who else writes there?") from None


class CommitLog:
    """Open it, look at `last`, `write`, close. Refused, Unreachable (also while another driver has it)."""

    def __init__(self, topic: str, access: Access) -> None:
        self._topic, self._access = topic, access
        self._connection = tried_again(topic, access, self._subscribed)
        try:
            records = self._records()
        except Lost as error:
            self._connection.close()
            raise PipelineError(f"{topic}: {error}, while it was looked which batch was committed") from None
        except BaseException:
            self._connection.close()
            raise
        self.last = decode(records[-1], topic) if records else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def write(self, decision: Decision) -> None:
        """When it returns it is stored."""
        stamp = Stamp("", NONE, None, None)
        publisher = Publisher(self._topic, self._access, Producing("", stamp, None, Limits(1 << 20, 1), 1 << 20, True))
        try:
            values = pyarrow.array([encode(decision)], pyarrow.binary())
            publisher.send(OutgoingRows(values, None, None, None, numpy.zeros(1, numpy.uint64)))
            publisher.flush()
        finally:
            publisher.close()

    def _subscribed(self) -> Connection:
        connection = connection_to(self._topic, self._access)
        try:
            asked = CommandSubscribe(
                topic=self._topic,
                subscription=_SUBSCRIPTION,
                sub_type=CommandSubscribe.Exclusive,
                consumer_id=_CONSUMER_ID,
                request_id=connection.request_id(),
                durable=True,
                initial_position=CommandSubscribe.Earliest,
            )
            connection.ask(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=asked), BaseCommand.SUCCESS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _records(self) -> Sequence[bytes]:
        """Those that are held, up to the newest; of several only that one is kept."""
        connection = self._connection
        answer = last_message(connection, _CONSUMER_ID)
        newest = place_of(answer.last_message_id)
        has_any = answer.last_message_id.entry_id < 1 << 63 and newest > place_of(answer.consumer_mark_delete_position)
        if not has_any:
            return ()
        connection.send(
            BaseCommand(type=BaseCommand.FLOW, flow=CommandFlow(consumer_id=_CONSUMER_ID, message_permits=_PERMITS))
        )
        found: list[bytes] = []
        places: list[Place] = []
        while not places or places[-1] < newest:
            frames = connection.block(_BLOCK_BYTES, self._access.timeout_seconds)
            if frames is None:
                raise Lost(f"the record at {newest} does not come")
            block = deliveries(frames).block
            if block.count:
                found += batch_of(rows_of(block), self._topic, ("value",)).column("value").to_pylist()
                places += [Place(*each) for each in zip(block.ledger_ids.tolist(), block.entry_ids.tolist(), strict=True)]
        if len(places) > 1:
            self._let_go(places[-2])
        return found

    def _let_go(self, until: Place) -> None:
        """What is before the newest record. Nobody waits for it: what is not let go now is so the next time."""
        ids = [MessageIdData(ledger_id=until.ledger_id, entry_id=until.entry_id)]
        asked = CommandAck(consumer_id=_CONSUMER_ID, ack_type=CommandAck.Cumulative, message_id=ids)
        self._connection.send(BaseCommand(type=BaseCommand.ACK, ack=asked))
