"""TopicSnapshots: the snapshots of one topic's aborted transactions in its namespace's topics, in either of Apache's forms.

A whole list in one message, or, where transactionBufferSegmentedSnapshotEnabled says so or the list is long, segments and an
index (PIP-196). Both are read, and what reaches further counts: an Apache broker may have had the topic with the other setting.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from broker.topic.transactions.aborted import AbortedSegment, AbortedTransactions
from broker.topic.transactions.snapshot_store import Snapshot
from managed_ledger.contract import EARLIEST
from ports.clock import Clock
from ports.logs import line
from wire.position import Position

from . import records
from .avro_longs import BadSnapshot
from .messages import Keyed
from .schemas import Kind
from .snapshot_topic import SnapshotTopic

SINGLE_BYTES_MAX = 1 << 20
"""A longer list is kept in segments: it is written again as a whole each time, and beyond 5 MB not at all."""
log = logging.getLogger(__name__)


class TopicSnapshots:
    """A `SnapshotStore`. `topic_of` gives the namespace's topic of a kind."""

    def __init__(
        self, name: str, topic_of: Callable[[Kind], SnapshotTopic], clock: Clock, *, is_segmented: bool, segment_capacity: int
    ) -> None:
        self.is_segmented = is_segmented
        self.segment_capacity = segment_capacity
        self.last_segment_ms = 0
        self._name, self._topic_of, self._clock = name, topic_of, clock

    # ---- reading

    async def read(self) -> Snapshot | None:
        single, index = await asyncio.gather(
            self._topic_of(Kind.SINGLE).latest(self._name), self._topic_of(Kind.INDEXES).latest(self._name)
        )
        found = [
            *([] if single is None else [self._single(single)]),
            *([] if index is None else [await self._segmented(index)]),
        ]
        return max(found, key=lambda each: each.max_read, default=None)

    def _single(self, record: bytes) -> Snapshot:
        try:
            return records.decode_single(record)
        except BadSnapshot as error:
            return self._unreadable(Kind.SINGLE, str(error))

    async def _segmented(self, record: bytes) -> Snapshot:
        """Segments whose transactions are all gone need not be there any more; of others without one the log knows."""
        try:
            index = records.decode_index(record)
            segments = await self._segments(index)
        except BadSnapshot as error:
            return self._unreadable(Kind.INDEXES, str(error))
        aborted = AbortedTransactions()
        for place, segment in zip(index.places, segments, strict=True):
            aborted.restore(segment.ids, place.last, place.sequence_id, place.place)
        for txn_id in index.loose:
            aborted.add(txn_id, index.max_read)  # their markers were before it
        return Snapshot(aborted, index.max_read)

    async def _segments(self, index: records.Index) -> Sequence[records.Segment]:
        if not index.places:
            return ()
        found = await self._topic_of(Kind.SEGMENTS).at({each.place for each in index.places})
        missing = [each.place for each in index.places if each.place not in found]
        if missing:
            raise BadSnapshot(f"the segment at {missing[0]} is not there")
        return [records.decode_segment(found[each.place]) for each in index.places]

    def _unreadable(self, kind: Kind, why: str) -> Snapshot:
        """Empty snapshot in place of an unreadable one: the topic itself has all its facts."""
        log.error(
            line(
                "snapshot of aborted transactions cannot be read: the whole topic is read instead",
                topic=self._name,
                kind=kind.value,
                reason=why,
            )
        )
        return Snapshot(AbortedTransactions(), EARLIEST)

    # ---- writing

    async def write(self, aborted: AbortedTransactions, max_read: Position) -> None:
        if not self.is_segmented:
            whole = records.encode_single(self._name, aborted, max_read)
            if len(whole) <= SINGLE_BYTES_MAX:
                await self._topic_of(Kind.SINGLE).append(Keyed(self._name, whole))
                return
        aborted.seal(self.segment_capacity)
        sealed, loose, gone = list(aborted.sealed), records.encode_loose(aborted), aborted.take_gone()
        for segment in sealed:
            if segment.place is None:
                await self._write_segment(segment)
        index = records.encode_index(self._name, sealed, loose, max_read)
        await self._topic_of(Kind.INDEXES).append(Keyed(self._name, index))
        for sequence_id in gone:
            await self._topic_of(Kind.SEGMENTS).append(Keyed(self._key(sequence_id), None))

    async def _write_segment(self, segment: AbortedSegment) -> None:
        assert segment.sequence_id is not None
        record = records.encode_segment(self._name, segment)
        segment.place = await self._topic_of(Kind.SEGMENTS).append(Keyed(self._key(segment.sequence_id), record))
        self.last_segment_ms = self._clock.now_ms()

    def _key(self, sequence_id: int) -> str:
        """Returns the key that Apache's SnapshotSegmentAbortedTxnProcessorImpl.buildKey makes."""
        return f"multiple-{sequence_id}-{self._name}"

    # ---- the end

    async def delete(self) -> None:
        """Segments that are in no index stay until their namespace is deleted: no number is given to two transactions."""
        index = await self._topic_of(Kind.INDEXES).latest(self._name)
        if index is not None:
            for sequence_id in self._numbers(index):
                await self._forget(Kind.SEGMENTS, self._key(sequence_id))
            await self._forget(Kind.INDEXES, self._name)
        if await self._topic_of(Kind.SINGLE).latest(self._name) is not None:
            await self._forget(Kind.SINGLE, self._name)

    def _numbers(self, index: bytes) -> Sequence[int]:
        try:
            return [place.sequence_id for place in records.decode_index(index).places]
        except BadSnapshot as error:
            log.warning(
                line(
                    "index of transaction snapshot segments cannot be read: the segments are kept",
                    topic=self._name,
                    reason=error,
                )
            )
            return ()

    async def _forget(self, kind: Kind, key: str) -> None:
        await self._topic_of(kind).append(Keyed(key, None), is_made=False)
