"""The copies of one ledger's messages on their way to a topic: by the partition that their key chooses, each there once.

Their producers' names are made of the job's and the ledger, their sequence ids of positions (`source_positions`): no run sends
again what a broker has stored of them. Relies on the topic's deduplication, which is looked at first.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandCloseProducer, CommandProducer

from ...client.brokers import connection_to, tried_again
from ...client.connection import Connection
from ...options import Access
from ...positions import Place
from ...sink.entries import Stamp
from ...sink.errors import TooLarge, WrongFrame
from ...sink.messages import OutgoingRows
from ...sink.options import SinkOptions
from ...sink.publisher import Producing, Publisher
from ...sink.routing import partitions_of
from .source_positions import entries_of, entry_of

_PRODUCER_ID = 1
_TURN_ENTRIES = 100
"""Entries without a key go to a partition in turns of so many: by their place, so that a second run sends them there too."""
_ROWS_A_TURN = 1000


def producer_name(job: str, topic: str, ledger_id: int) -> str:
    return f"{job}-{topic.removeprefix('persistent://')}-{ledger_id}"


class LedgerCopy:
    """`with` it. `send` in the order of the ledger, then `flush`. The errors of the sink."""

    def __init__(self, job: str, topic: str, ledger_id: int, partitions: tuple[str, ...], options: SinkOptions) -> None:
        self._name = producer_name(job, topic, ledger_id)
        self._topic, self._ledger_id, self._partitions, self._options = topic, ledger_id, partitions, options
        self._publishers: dict[str, Publisher] = {}
        self._schema: Any = None
        self.repeated = 0
        """Messages that were there already."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def send(self, rows: OutgoingRows, schema: Any) -> None:
        """Rows of one schema: another one has producers of its own, after all before it is stored."""
        if schema != self._schema:
            self.flush()
            self._close()
            self._schema = schema
        if len(self._partitions) == 1:
            self._publish(self._partitions[0], rows)
            return
        numbers = entries_of(rows.sequence_ids) * _ROWS_A_TURN // _TURN_ENTRIES
        chosen = partitions_of(rows.keys, numbers, 0, len(self._partitions), self._options.hashing)
        for partition, theirs in rows.parts(chosen):
            self._publish(self._partitions[partition], theirs)

    def _publish(self, partition: str, rows: OutgoingRows) -> None:
        try:
            self.repeated += self._publisher(partition).send_new(rows)
        except TooLarge as error:
            place = Place(self._ledger_id, entry_of(error.sequence_id))
            raise WrongFrame(f"{self._topic} at {place} cannot be copied: {error}") from None

    def _publisher(self, partition: str) -> Publisher:
        if partition not in self._publishers:
            stamp = Stamp(self._name, self._options.compression, None, None)
            pending = self._options.pending_bytes_max
            producing = Producing(self._name, stamp, self._schema, self._options.limits, pending, sends_again=True)
            self._publishers[partition] = Publisher(partition, self._options.access, producing)
        return self._publishers[partition]

    def flush(self) -> None:
        """Waits until all is stored."""
        for each in self._publishers.values():
            each.flush()

    def _close(self) -> None:
        for each in self._publishers.values():
            each.close()
        self._publishers.clear()


def newest_known(names: Sequence[str], partitions: Sequence[str], access: Access) -> str:
    """The first of these producers' names that the deduplication of any partition knows; "" for none. Refused, Unreachable.

    Names are asked for in the order that is given: the newest ledger's first.
    """
    return tried_again(", ".join(partitions), access, lambda: _newest_known(names, partitions, access))


def _newest_known(names: Sequence[str], partitions: Sequence[str], access: Access) -> str:
    connections: dict[str, Connection] = {}
    try:
        for each in partitions:
            connections[each] = connection_to(each, access)
        return next((name for name in names if any(_knows(each, topic, name) for topic, each in connections.items())), "")
    finally:
        for connection in connections.values():
            connection.close()


def _knows(connection: Connection, topic: str, name: str) -> bool:
    asked = CommandProducer(topic=topic, producer_id=_PRODUCER_ID, request_id=connection.request_id(), producer_name=name)
    asked.user_provided_producer_name = True
    found = connection.ask(BaseCommand(type=BaseCommand.PRODUCER, producer=asked), BaseCommand.PRODUCER_SUCCESS)
    closing = CommandCloseProducer(producer_id=_PRODUCER_ID, request_id=connection.request_id())
    connection.ask(BaseCommand(type=BaseCommand.CLOSE_PRODUCER, close_producer=closing), BaseCommand.SUCCESS)
    return found.producer_success.last_sequence_id >= 0
