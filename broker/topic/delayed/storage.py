"""Buckets of delayed messages in ledgers: writes one, reads one. Owns no ledger and no name of one.

A bucket's ledger is Apache's (BookkeeperBucketSnapshotStorage): entry 0 is a SnapshotMetadata, each of the others the
SnapshotSegment that it describes, by time. A bucket counts whole or not at all: a kill in between leaves one that is too short.
"""

import asyncio
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace

from google.protobuf.message import DecodeError

from bookkeeper.ledgers import LedgerReader, LedgerStore, LedgerWriter
from broker.dispatchers.delays.delayed_part import DelayedPart, Facts, bitmaps
from wire.generated.delayed_index_pb2 import SnapshotMetadata
from wire.kernels.delayed_index import decode_segment, encode_segment
from wire.run import batch_of

METADATA_BYTES_MAX = 4 << 20
"""An entry holds 5 MB at most."""
_BYTES_AT_ONCE = 1 << 20
_READ_ENTRIES_MAX = 1000


class DamagedBucket(Exception):
    """The bucket is incomplete or malformed: another attempt will not help."""


class BucketTooLarge(Exception):
    """The names of the bucket's entries do not fit an entry."""


def custom_metadata(key: str, topic: str, subscription: str) -> Mapping[str, bytes]:
    """Metadata that names the ledger's owner. Apache: LedgerMetadataUtils.buildMetadataForDelayedIndexBucket."""
    return {
        "application": b"pulsar",
        "component": b"delayed-index-bucket",
        "pulsar/delayedIndexBucketKey": key.encode(),
        "pulsar/delayedIndexTopic": topic.encode(),
        "pulsar/delayedIndexCursor": subscription.encode(),
    }


class BucketContent:
    """Content of a part to write. Gathered piece by piece; other tasks have their turn in between."""

    def __init__(self, part: DelayedPart, segment_count: int) -> None:
        self.first, self.last = part.first, part.last
        self._part = part
        self._segment_count = segment_count
        self._items = array("Q")
        self.metadata = b""

    async def gather(self) -> None:
        """BucketTooLarge."""
        for items in self._part.sift():
            self._items += items
            await asyncio.sleep(0)
        self._part = replace(self._part, items=array("Q"))  # they are not needed any more, and many
        described = SnapshotMetadata()
        for facts in self._segments():
            segment = described.metadata_list.add(min_schedule_timestamp=facts[0][0], max_schedule_timestamp=facts[0][-1])
            for ledger_id, entry_ids in bitmaps(facts).items():
                segment.delayed_index_bit_map[ledger_id] = entry_ids.serialize()
            await asyncio.sleep(0)
        self.metadata = described.SerializeToString()
        if len(self.metadata) > METADATA_BYTES_MAX:
            raise BucketTooLarge(f"{len(self._items)} entries take {len(self.metadata)} bytes to name")

    async def write(self, writer: LedgerWriter) -> None:
        """All of it, a megabyte at a time. LedgerError."""
        payloads, size = [self.metadata], len(self.metadata)
        for facts in self._segments():
            if size >= _BYTES_AT_ONCE:
                await writer.append(batch_of(payloads))
                payloads, size = [], 0
            payloads.append(encode_segment(*facts))
            size += len(payloads[-1])
        await writer.append(batch_of(payloads))

    def _segments(self) -> Iterator[Facts]:
        for start in range(0, len(self._items), self._segment_count):
            yield self._part.facts(self._items[start : start + self._segment_count])


class StoredBucket:
    """One that is read: the segments that have something due first, the others later."""

    def __init__(self, key: str, reader: LedgerReader, metadata: SnapshotMetadata) -> None:
        self.key = key
        self.ledger_id = reader.ledger_id
        self.size_bytes = reader.length_bytes
        self._reader = reader
        self._segments = metadata.metadata_list
        self._next = 1

    @property
    def is_whole(self) -> bool:
        return self._reader.last_entry_id == len(self._segments)

    async def next_facts(self, time_ms: int | None) -> Facts | None:
        """Some of the segments that begin before that time and were not read yet; None of the time: of all; None: that is all.

        LedgerError, ValueError.
        """
        end = min(len(self._segments), self._reader.last_entry_id)
        count = self._count_until(time_ms, end)
        if not count:
            return None
        run = await self._reader.read(self._next, count, _BYTES_AT_ONCE)
        self._next = run.last_entry_id + 1
        found: Facts = (array("q"), array("Q"), array("I"))
        for entry_id in range(run.first_entry_id, run.last_entry_id + 1):
            for known, more in zip(found, decode_segment(run.payload(entry_id)), strict=True):
                known += more
        return found

    def _count_until(self, time_ms: int | None, end: int) -> int:
        count = 0
        while count < _READ_ENTRIES_MAX and self._next + count <= end:
            if time_ms is not None and self._segments[self._next + count - 1].min_schedule_timestamp > time_ms:
                break
            count += 1
        return count


async def open_bucket(ledgers: LedgerStore, key: str, ledger_id: int) -> StoredBucket:
    """LedgerError (NoSuchLedger, when it is gone), DamagedBucket."""
    reader = await ledgers.open(ledger_id)
    if reader.last_entry_id < 0:
        raise DamagedBucket(f"ledger {ledger_id} is empty")
    run = await reader.read(0, 1, _BYTES_AT_ONCE)
    try:
        metadata = SnapshotMetadata.FromString(bytes(run.payload(0)))
    except DecodeError as error:
        raise DamagedBucket(f"ledger {ledger_id} does not begin as a bucket: {error}") from error
    return StoredBucket(key, reader, metadata)
