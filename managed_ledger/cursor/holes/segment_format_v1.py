"""Segments, additions and markers as entries of a cursor ledger: format version 1, described in docs/cursor-segments.md. Pure.

The first byte of the magic has protobuf's wire type 7, which does not exist: a reader that takes such an entry for a
PositionInfo gets an error, never a position. An unreadable entry is an error that names the cursor and the entry.
"""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from pyroaring import BitMap

from managed_ledger.errors import BrokenMetadata, ManagedLedgerError
from wire.position import Position

from ..state import CursorState, StoredSegment, decode_position, encode_position
from .segment_rows import ROW, MarkerRows

MAGIC = b"gaps"
VERSION = 1
ENTRY_BYTES_MAX = 4 << 20
"""Size of a marker at most; an entry may have 5 MB. A marker of that size lists some 300,000 segments."""

_INFLATED_BYTES_MAX = 64 << 20
_DEFLATED = 1
_SMALL_BYTES = 4096
"""A marker, which every save writes, is not deflated below it: that took a quarter of the time of a save."""
_HEAD = struct.Struct(">4sBBBx")
_SPAN = struct.Struct(">qqqqI")
_LEDGER = struct.Struct(">qI")
_COUNT = struct.Struct(">I")


class EntryKind(IntEnum):
    """Kind of an entry in this format."""

    SEGMENT = 1
    ADDITION = 2
    MARKER = 3


@dataclass(frozen=True, slots=True)
class Span:
    """The positions of one segment: from `start` on, before `end`."""

    start: Position
    end: Position


def kind_of(name: str, entry: bytes) -> EntryKind | None:
    """None: it is Apache's."""
    if not entry.startswith(MAGIC):
        return None
    try:
        _, version, kind, _ = _HEAD.unpack_from(entry)
        if version == VERSION:
            return EntryKind(kind)
    except (struct.error, ValueError) as error:
        raise BrokenMetadata(f"{name}: an entry of its cursor ledger is neither segment nor marker: {error}") from error
    raise ManagedLedgerError(f"{name}: its cursor ledger is of format {version}, which a later release wrote; use that one")


def encode_segment(kind: EntryKind, span: Span, holes: Mapping[int, BitMap]) -> bytes:
    """Acknowledged entries by ledger, all inside the span; the bitmaps may be optimized in place."""
    parts = [_SPAN.pack(*span.start, *span.end, len(holes))]
    for ledger_id, entry_ids in holes.items():
        entry_ids.run_optimize()
        data = entry_ids.serialize()
        parts += (_LEDGER.pack(ledger_id, len(data)), data)
    return _entry(kind, b"".join(parts))


def decode_segment(name: str, kind: EntryKind, start: Position, entry: bytes) -> dict[int, BitMap]:
    """ManagedLedgerError when it is not the entry of that kind of the segment that begins there."""
    if kind_of(name, entry) is not kind:
        raise BrokenMetadata(f"{name}: the marker names an entry that is no {kind.name.lower()}")
    try:
        return _read_segment(name, start, _body(entry))
    except (struct.error, zlib.error, ValueError) as error:
        raise BrokenMetadata(f"{name}: the segment at {start} cannot be read: {error}") from error


def _read_segment(name: str, start: Position, body: bytes) -> dict[int, BitMap]:
    ledger_id, entry_id, _, _, count = _SPAN.unpack_from(body)
    if (ledger_id, entry_id) != start:
        raise BrokenMetadata(f"{name}: the marker takes the segment at {ledger_id}:{entry_id} for the one at {start}")
    at = _SPAN.size
    holes: dict[int, BitMap] = {}
    for _ in range(count):
        ledger_id, size = _LEDGER.unpack_from(body, at)
        at += _LEDGER.size
        if at + size > len(body):
            raise ValueError("it ends too early")
        holes[ledger_id] = BitMap.deserialize(body[at : at + size])
        at += size
    return holes


def encode_marker(name: str, state: CursorState, rows: MarkerRows) -> bytes:
    """`state` without its holes, which the segments have."""
    place, _ = encode_position(CursorState(state.mark_delete, {}, state.batches, state.properties), as_long_array=True)
    body = b"".join([_COUNT.pack(len(place)), place, _COUNT.pack(len(rows)), rows.packed])
    entry = _entry(EntryKind.MARKER, body, is_small=len(body) < _SMALL_BYTES)
    if len(entry) > ENTRY_BYTES_MAX:
        raise ManagedLedgerError(
            f"{name}: a marker of {len(rows)} segments and {len(state.batches)} batches does not fit an entry;"
            " let a consumer acknowledge the oldest messages"
        )
    return entry


def decode_marker(name: str, entry: bytes, entry_id: int) -> CursorState:
    """Content of a marker; the segments that it lists must be before it, at `entry_id`."""
    try:
        body = _body(entry)
        size = _COUNT.unpack_from(body)[0]
        at = _COUNT.size + size
        count = _COUNT.unpack_from(body, at)[0]
        rows = list(ROW.iter_unpack(body[at + _COUNT.size :]))
        if len(rows) != count:
            raise ValueError(f"it lists {len(rows)} segments and says {count}")
    except (struct.error, zlib.error, ValueError) as error:
        raise BrokenMetadata(f"{name}: the marker at entry {entry_id} cannot be read: {error}") from error
    state = decode_position(name, body[_COUNT.size : at])
    segments = tuple(StoredSegment(Position(ledger, first), *rest) for ledger, first, *rest in rows)
    for each in segments:
        if not (0 <= each.entry_id < entry_id and each.addition_id < entry_id):
            raise BrokenMetadata(f"{name}: the marker at entry {entry_id} names a segment that is not before it")
    return CursorState(state.mark_delete, {}, state.batches, state.properties, segments=segments)


def _entry(kind: EntryKind, body: bytes, *, is_small: bool = False) -> bytes:
    small = body if is_small else zlib.compress(body, 1)
    if len(small) < len(body):
        return _HEAD.pack(MAGIC, VERSION, kind, _DEFLATED) + small
    return _HEAD.pack(MAGIC, VERSION, kind, 0) + body


def _body(entry: bytes) -> bytes:
    flags = _HEAD.unpack_from(entry)[3]
    body = entry[_HEAD.size :]
    if not flags & _DEFLATED:
        return body
    inflate = zlib.decompressobj()
    body = inflate.decompress(body, _INFLATED_BYTES_MAX)
    if not inflate.eof:
        raise ValueError("it ends too early or is too long")
    return body
