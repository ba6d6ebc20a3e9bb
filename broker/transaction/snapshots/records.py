"""The three records of snapshots: a whole one, a segment, and the index of segments with the unsealed rest. Pure.

Apache's TransactionBufferSnapshot, TransactionBufferSnapshotSegment and TransactionBufferSnapshotIndexes as Schema.AVRO lays
them out: fields in alphabetical order. `schemas` has the same as definitions.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyroaring import BitMap64

from broker.topic.transactions.aborted import AbortedSegment, AbortedTransactions
from broker.topic.transactions.snapshot_store import Snapshot
from wire.int64 import unsigned
from wire.position import Position
from wire.transactions import TxnId

from .avro_longs import END, PRESENT, Reader, block, longs, text


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """Place of a stored segment: its number, the last marker of its transactions, and its position."""

    sequence_id: int
    last: Position
    place: Position


@dataclass(frozen=True, slots=True)
class Index:
    """Places of the segments, and transactions that were aborted after those."""

    places: tuple[SegmentPlace, ...]
    loose: tuple[TxnId, ...]
    max_read: Position


@dataclass(frozen=True, slots=True)
class Segment:
    """Aborted transactions by coordinator."""

    sequence_id: int
    last: Position
    ids: dict[int, BitMap64]


def encode_single(topic: str, aborted: AbortedTransactions, max_read: Position) -> bytes:
    """Returns a row for each transaction: its marker's place (of its segment's last one: it goes when that does), and its
    id."""
    rows = b"".join(_kept(segment, "single", _single_rows) for segment in aborted.segments)
    return PRESENT + rows + END + longs((max_read.entry_id, max_read.ledger_id)) + text(topic)


def encode_segment(topic: str, segment: AbortedSegment) -> bytes:
    """A sealed one."""
    assert segment.sequence_id is not None
    rows = block(segment.count, _ids(segment))
    return PRESENT + rows + END + longs((segment.last.entry_id, segment.last.ledger_id, segment.sequence_id)) + text(topic)


def encode_loose(aborted: AbortedTransactions) -> bytes:
    """Returns the list in an index of transactions that are in no segment."""
    return b"".join(_kept(segment, "loose", _loose_rows) for segment in aborted.loose) + END


def encode_index(topic: str, sealed: Iterable[AbortedSegment], loose: bytes, max_read: Position) -> bytes:
    """`sealed` are stored; `loose`: from `encode_loose`."""
    rows = b"".join(block(1, longs(_index_row(segment))) for segment in sealed)
    places = PRESENT + rows + END
    snapshot = PRESENT + PRESENT + loose + longs((max_read.entry_id, max_read.ledger_id))
    return places + snapshot + text(topic)


def _index_row(segment: AbortedSegment) -> tuple[int, ...]:
    assert segment.sequence_id is not None
    assert segment.place is not None
    last, place = segment.last, segment.place
    return last.entry_id, last.ledger_id, place.entry_id, place.ledger_id, segment.sequence_id


def _kept(segment: AbortedSegment, form: str, encode: Callable[[AbortedSegment], bytes]) -> bytes:
    found = segment.encoded.get(form)
    if found is None:
        found = segment.encoded[form] = encode(segment)
    return found


def _single_rows(segment: AbortedSegment) -> bytes:
    start = longs((segment.last.entry_id, segment.last.ledger_id))
    rows = [
        start + longs((least,)) + ending for most, ids in segment.ids.items() for ending in (longs((most,)),) for least in ids
    ]
    return block(segment.count, b"".join(rows))


def _loose_rows(segment: AbortedSegment) -> bytes:
    return block(segment.count, _ids(segment))


def _ids(segment: AbortedSegment) -> bytes:
    """Rows of least and most bits."""
    return longs(bits for most, ids in segment.ids.items() for least in ids for bits in (least, most))


def decode_single(data: bytes | memoryview) -> Snapshot:
    """BadSnapshot."""
    reader, aborted = Reader(data), AbortedTransactions()
    rows = sorted(reader.rows(4), key=lambda row: (row[1], row[0]))
    max_read = _position(reader)
    reader.text()
    reader.end()
    for entry_id, ledger_id, least, most in rows:
        aborted.add(TxnId(unsigned(most), unsigned(least)), Position(ledger_id, entry_id))
    return Snapshot(aborted, max_read)


def decode_segment(data: bytes | memoryview) -> Segment:
    """BadSnapshot."""
    reader, ids = Reader(data), dict[int, BitMap64]()
    for least, most in reader.rows(2):
        ids.setdefault(unsigned(most), BitMap64()).add(unsigned(least))
    last = _position(reader)
    sequence_id = reader.long()
    reader.text()
    reader.end()
    return Segment(sequence_id, last, ids)


def decode_index(data: bytes | memoryview) -> Index:
    """BadSnapshot. An index without a snapshot says nothing of the log, which is read from its beginning."""
    reader, loose, max_read = Reader(data), tuple[TxnId, ...](), Position(-1, -1)
    places = tuple(_place(row) for row in reader.rows(5))
    if not reader.is_null():
        loose = tuple(TxnId(unsigned(most), unsigned(least)) for least, most in reader.rows(2))
        max_read = _position(reader)
    reader.text()
    reader.end()
    return Index(places, loose, max_read)


def _place(row: tuple[int, ...]) -> SegmentPlace:
    last_entry, last_ledger, entry, ledger, sequence_id = row
    return SegmentPlace(sequence_id, Position(last_ledger, last_entry), Position(ledger, entry))


def _position(reader: Reader) -> Position:
    entry_id = reader.long()
    return Position(reader.long(), entry_id)
