"""One task of a write: its rows to their topics and partitions, as the guarantee wants it. Knows nothing of Spark.

Rows are numbered in their task. With deduplication a row's sequence id is its batch and its number, under a name that the task
of that number has in every attempt; what a broker has stored of it is not sent again. With transactions each attempt has one of
its own, which the driver ends.
"""

import logging
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy
import pyarrow

from ..errors import PipelineError, WrongOption
from ..names import full_name
from .commits.commit_log import log_topic, note
from .commits.commit_records import Opened, Written
from .commits.transactions import HasEnded, TransactionClient, coordinators
from .entries import Stamp, TxnId
from .errors import BatchChanged
from .frame_check import encoder_of, usual
from .frame_rows import outgoing, topics_in
from .messages import OutgoingRows
from .options import AT_LEAST_ONCE, DEDUPLICATION, TRANSACTIONS, SinkOptions
from .publisher import Producing, Publisher
from .routing import partitions_of
from .topics import check_deduplicates, partition_count
from .values.value_column import ValueEncoder

_log = logging.getLogger(__name__)
_SLICE_BYTES_MAX = 16 << 20
_PUBLISHERS_MAX = 100
"""Topics that a task writes to at the same time; of more, the one not used for longest is waited for and closed."""
_NAME_SECONDS = 600.0
"""Longest wait for the attempt that has the task's name. It ends, or its broker sees that it does not answer, sooner."""
_ROW_BITS = 32
_ROWS_MAX = 1 << _ROW_BITS


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Part of a write. `write_id` is the same whenever this batch is written again; "" is unique.

    `noted_as`: for a unique write, the topic in which its opened transactions are noted; "" for none.
    """

    write_id: str
    batch: int
    partition: int
    noted_as: str = ""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """`repeated` of the `rows` were there already. `written`: the open transaction, with guarantee=transactions."""

    write_id: str
    batch: int
    rows: int
    repeated: int
    written: Written | None


class SinkTask:
    """`run` once. An error leaves no connection, and no open transaction that could be aborted."""

    def __init__(self, options: SinkOptions, place: TaskPlace) -> None:
        self._options, self._place = options, place
        self._publishers: OrderedDict[str, Publisher] = OrderedDict()
        self._partition_counts: dict[str, int] = {}
        self._topics: dict[str, None] = {}
        self._transactions: TransactionClient | None = None
        self._txn_id: TxnId | None = None
        self._values: ValueEncoder | None = None
        self._rows = self._repeated = 0
        own = f"{place.write_id or uuid.uuid4().hex}-{place.partition}"
        # an attempt's own name: with a transaction nothing is to be taken for a repeat of what another attempt sent
        self._name = f"{own}-{uuid.uuid4().hex}" if options.guarantee == TRANSACTIONS else own

    def run(self, batches: Iterable[Any]) -> TaskResult:
        try:
            for batch in batches:
                for part in _slices(batch):
                    self._write(usual(part))
            for each in self._publishers.values():
                each.flush()
                self._check_rows(each)
        except BaseException:
            self._abort()
            raise
        finally:
            self._close()
        written = None if self._txn_id is None else Written(self._txn_id, tuple(self._topics))
        return TaskResult(self._place.write_id, self._place.batch, self._rows, self._repeated, written)

    # ---- Rows

    def _write(self, batch: Any) -> None:
        if self._values is None:
            self._values = encoder_of(self._options, batch.schema)
        numbers = numpy.arange(self._rows, self._rows + len(batch))
        if self._rows + len(batch) > _ROWS_MAX:
            raise WrongOption(f"a task of more than {_ROWS_MAX} rows: repartition the frame before it is written")
        self._rows += len(batch)
        for each in self._publishers.values():
            each.heed()
        rows = outgoing(batch, self._values, (numbers + (self._place.batch << _ROW_BITS)).astype(numpy.uint64))
        for topic, chosen in self._by_topic(batch):
            self._route(topic, rows if chosen is None else rows.take(chosen), numbers if chosen is None else numbers[chosen])

    def _by_topic(self, batch: Any) -> Iterator[tuple[str, Any]]:
        """Rows of each topic; None for all rows."""
        if self._options.topic:
            yield self._options.topic, None
            return
        coded = topics_in(batch).dictionary_encode()
        indices = numpy.asarray(coded.indices)
        for index, topic in enumerate(coded.dictionary.to_pylist()):
            yield full_name(topic), numpy.flatnonzero(indices == index)

    def _route(self, topic: str, rows: OutgoingRows, numbers: Any) -> None:
        if topic not in self._partition_counts:
            options = self._options
            self._partition_counts[topic] = partition_count(topic, options.access, options.creates_topic)
        count = self._partition_counts[topic]
        if count <= 1:
            self._publish(topic if count == 0 else f"{topic}-partition-0", rows)
            return
        chosen = partitions_of(rows.keys, numbers, self._place.partition, count, self._options.hashing)
        for partition, theirs in rows.parts(chosen):
            self._publish(f"{topic}-partition-{partition}", theirs)

    def _publish(self, topic: str, rows: OutgoingRows) -> None:
        publisher = self._publisher(topic)
        if self._options.guarantee == DEDUPLICATION:
            self._repeated += publisher.send_new(rows)
        else:
            publisher.send(rows)

    # ---- Producers

    def _publisher(self, topic: str) -> Publisher:
        found = self._publishers.get(topic)
        if found is not None:
            self._publishers.move_to_end(topic)
            return found
        if len(self._publishers) >= _PUBLISHERS_MAX:
            _, oldest = self._publishers.popitem(last=False)
            try:
                oldest.flush()
            finally:
                oldest.close()
        found = self._publishers[topic] = self._opened(topic)
        return found

    def _opened(self, topic: str) -> Publisher:
        options = self._options
        assert self._values is not None
        is_known = topic in self._topics
        self._topics[topic] = None
        if options.guarantee == TRANSACTIONS and not is_known:
            self._take_part(topic)
        stamp = Stamp(self._name, options.compression, None, self._txn_id)
        is_named = options.guarantee != AT_LEAST_ONCE
        producing = Producing(
            self._name if is_named else "",
            stamp if is_named else replace(stamp, producer_name=""),
            self._values.schema(),
            options.limits,
            options.pending_bytes_max,
            sends_again=options.guarantee != TRANSACTIONS,
            # one that was here before does not wait long: two attempts would for each other
            name_seconds=0.0 if is_known else _NAME_SECONDS,
        )
        publisher = Publisher(topic, options.access, producing)
        if options.guarantee == DEDUPLICATION and not is_known:
            try:
                self._check_deduplicating(publisher)
            except BaseException:
                publisher.close()
                raise
        return publisher

    def _check_deduplicating(self, publisher: Publisher) -> None:
        """Checks that the topic deduplicates: it is loaded now, and its stats are there."""
        check_deduplicates(publisher.topic, self._options.access)
        if publisher.last_stored >= (self._place.batch + 1) << _ROW_BITS:
            raise BatchChanged(
                f"{publisher.topic}: its broker has a later batch ({publisher.last_stored >> _ROW_BITS}) of "
                f"{self._name} than the one "
                f"that is written now ({self._place.batch}): an old checkpoint, or a writeId that was used before. "
                "Rows of it would "
                "be taken for repeats and lost; begin with a new checkpoint or writeId"
            )

    def _check_rows(self, publisher: Publisher) -> None:
        """Checks at the end that an earlier attempt of this batch had no row that this one lacks."""
        batch, number = divmod(publisher.last_stored, _ROWS_MAX)
        is_same = self._options.guarantee == DEDUPLICATION and publisher.last_stored >= 0 and batch == self._place.batch
        if is_same and number >= self._rows:
            raise BatchChanged(
                f"{publisher.topic}: batch {batch} of {self._name} was written before with more than {number} rows, "
                "and now has "
                f"{self._rows}: guarantee=deduplication needs a frame that gives the same rows in the same order each time"
            )

    def _take_part(self, topic: str) -> None:
        if self._transactions is None:
            access = self._options.access
            self._transactions = TransactionClient(self._place.partition % coordinators(access), access)
            self._txn_id = self._transactions.open(self._options.transaction_ms)
            self._note_opened(self._txn_id)
        assert self._txn_id is not None
        self._transactions.add(self._txn_id, topic)

    def _note_opened(self, txn_id: TxnId) -> None:
        """Should this attempt be killed, or not be the one that counts, the driver knows of it."""
        place, options = self._place, self._options
        if not (place.write_id or place.noted_as):
            return
        topic = log_topic(place.write_id or place.noted_as, options.commits_namespace)
        try:
            note(Opened(place.batch, txn_id), topic, options.access)
        except PipelineError as error:
            if place.write_id:
                raise
            # without a note it takes longer until it is aborted, and nothing else
            _log.warning("what is killed of this write is aborted after transactionTimeoutMs and not before: %s", error)

    # ---- The end

    def _abort(self) -> None:
        if self._transactions is None or self._txn_id is None:
            return
        try:
            self._transactions.end(self._txn_id, commits=False)
        except HasEnded:
            return  # the transaction timed out: it is aborted already

    def _close(self) -> None:
        for each in self._publishers.values():
            each.close()
        self._publishers.clear()
        if self._transactions is not None:
            self._transactions.close()


def _slices(batch: Any) -> Iterator[pyarrow.RecordBatch]:
    """Parts of a bounded size: a batch of Spark's is bounded in rows alone."""
    count = max(1, len(batch) * _SLICE_BYTES_MAX // max(1, batch.nbytes))
    for start in range(0, len(batch), count):
        yield batch.slice(start, count)
