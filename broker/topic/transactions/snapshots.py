"""The entries of a topic's snapshot log: segments of aborted transactions, and the index that says which are live. Pure.

Version 1 of proto/transaction_buffer.proto; why it is none of Apache's: docs/adr/0024-snapshots-of-aborted-transactions.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from pyroaring import BitMap64

from wire.generated.transaction_buffer_pb2 import (
    AbortedSegment as SegmentEntry,
)
from wire.generated.transaction_buffer_pb2 import (
    SegmentPlace,
    SnapshotEntry,
    SnapshotIndex,
    TransactionIds,
)
from wire.payloads import MAGIC_BROKER_ENTRY_METADATA
from wire.position import Position
from wire.run import Buffer

from .aborted import AbortedSegment

VERSION = 1


class UnreadableSnapshot(Exception):
    """An entry that is no snapshot of a version that we know."""


@dataclass(frozen=True, slots=True)
class Index:
    """Where the topic's log has to be replayed from, and where the live segments are."""

    replay_from: Position
    places: tuple[Position, ...]


def encode_segment(segment: AbortedSegment) -> bytes:
    aborted = [TransactionIds(most_bits=most, least_bits=ids.serialize()) for most, ids in segment.ids.items()]
    return SnapshotEntry(
        version=VERSION, segment=SegmentEntry(ledger_id=segment.ledger_id, aborted=aborted)
    ).SerializeToString()


def encode_index(replay_from: Position, segments: Sequence[tuple[int, Position]]) -> bytes:
    """`segments`: of each its ledger and where it is stored."""
    places = [
        SegmentPlace(segment_id=segment_id, ledger_id=place.ledger_id, entry_id=place.entry_id)
        for segment_id, place in segments
    ]
    index = SnapshotIndex(replay_ledger_id=replay_from.ledger_id, replay_entry_id=replay_from.entry_id, segments=places)
    return SnapshotEntry(version=VERSION, index=index).SerializeToString()


def decode(payload: Buffer, place: Position) -> AbortedSegment | Index:
    """The entry at `place`. UnreadableSnapshot."""
    try:
        entry = SnapshotEntry.FromString(bytes(without_broker_metadata(payload)))
    except DecodeError as error:
        raise UnreadableSnapshot(f"entry {place} is no snapshot") from error
    if entry.version != VERSION:
        raise UnreadableSnapshot(f"entry {place} is of version {entry.version}; this broker reads {VERSION}")
    if entry.HasField("segment"):
        ids = {each.most_bits: BitMap64.deserialize(each.least_bits) for each in entry.segment.aborted}
        return AbortedSegment(entry.segment.ledger_id, ids, sum(map(len, ids.values())), place)
    index = entry.index
    places = tuple(Position(each.ledger_id, each.entry_id) for each in index.segments)
    return Index(Position(index.replay_ledger_id, index.replay_entry_id), places)


def without_broker_metadata(payload: Buffer) -> memoryview:
    """An entry of a log of our own, which has the broker's metadata in front where topics have them."""
    data = memoryview(payload)
    if data[:2] == MAGIC_BROKER_ENTRY_METADATA:
        return data[6 + int.from_bytes(data[2:6]) :]
    return data
