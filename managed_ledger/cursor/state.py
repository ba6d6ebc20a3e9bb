"""Stored state of a cursor: PositionInfo (an entry of its cursor ledger) and ManagedCursorInfo (its node), Apache's. Pure.

Holes are written as Apache 4 does, as words of a bit set per ledger (individual_deleted_message_ranges), unless the older form,
ranges, is smaller: a bit set over a long span with few holes does not fit an entry. Either is read.
Beyond what that form can hold the holes are written as segments (`segments_v1`); nothing is dropped for the number of holes.
`dropped` says how many acknowledgements an entry would not hold: then it must not be written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer as Repeated
from pyroaring import BitMap

from managed_ledger.parsing import parse_into
from wire.generated.managed_ledger_pb2 import (
    BatchedEntryDeletionIndexInfo,
    LongProperty,
    ManagedCursorInfo,
    MessageRange,
    PositionInfo,
)
from wire.int64 import signed
from wire.position import Position

from .batch_indexes import Words
from .holes.bitmaps import WORD_MASK, from_words, range_count, ranges, to_words

NO_LEDGER = -1
HOLES_BYTES_MAX = 4 << 20
"""Size of the holes in one entry at most; an entry may have 5 MB."""
_RANGE_BYTES = 24
"""About one MessageRange, encoded."""
RANGES_IN_ENTRY_MAX = HOLES_BYTES_MAX // _RANGE_BYTES
"""Number of ranges that always fits an entry."""


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A marker's row: the holes from `start` to the next row's are in the entry `entry_id` of the same cursor ledger.

    `addition_id`: the entry with what was acknowledged in it later, -1 for none. `weight`: bytes in memory, about.
    """

    start: Position
    entry_id: int
    addition_id: int
    count: int
    ranges: int
    weight: int


@dataclass(frozen=True, slots=True)
class CursorState:
    """A cursor at one moment. `version` is the machine's. The holes are in `holes`, or in `segments` if there are any."""

    mark_delete: Position
    holes: Mapping[int, BitMap] = field(default_factory=dict)
    batches: Sequence[tuple[Position, Words]] = ()
    properties: Mapping[str, int] = field(default_factory=dict)
    version: int = 0
    segments: Sequence[StoredSegment] = ()


@dataclass(frozen=True, slots=True)
class CursorNode:
    """A cursor's node. `state`: beside a cursor ledger, which has the newer one, only what there was before it, or None."""

    cursors_ledger_id: int
    state: CursorState | None
    cursor_properties: Mapping[str, str]


def encode_position(state: CursorState, *, as_long_array: bool) -> tuple[bytes, int]:
    """PositionInfo, and how many acknowledged entries it could not hold."""
    info = PositionInfo(ledger_id=state.mark_delete.ledger_id, entry_id=state.mark_delete.entry_id)
    if not state.holes and not state.batches and not state.properties:
        return info.SerializeToString(), 0
    room = HOLES_BYTES_MAX
    dropped = 0
    is_array = as_long_array and _array_bytes(state.holes) <= _ranges_bytes(state.holes)
    for ledger_id in sorted(state.holes):
        entry_ids = state.holes[ledger_id]
        room -= _ledger_array_bytes(entry_ids) if is_array else _ledger_ranges_bytes(entry_ids)
        if room < 0:
            dropped += len(entry_ids)
        elif is_array:
            words = [signed(word) for word in to_words(entry_ids)]
            info.individual_deleted_message_ranges.add(key=ledger_id, values=words)
        else:
            _add_ranges(info.individual_deleted_messages, ledger_id, entry_ids)
    _add_batches(info.batched_entry_deletion_index_info, state.batches)
    _add_properties(info.properties, state.properties)
    return info.SerializeToString(), dropped


def decode_position(name: str, value: bytes) -> CursorState:
    info = PositionInfo()
    parse_into(info, value, name)
    holes = _read_ranges(info.individual_deleted_messages)
    if not holes:
        holes = {each.key: from_words(each.values) for each in info.individual_deleted_message_ranges}
    return CursorState(
        Position(info.ledger_id, info.entry_id),
        holes,
        _read_batches(info.batched_entry_deletion_index_info),
        {each.name: each.value for each in info.properties},
    )


def encode_node(cursors_ledger_id: int, state: CursorState, cursor_properties: Mapping[str, str], now_ms: int) -> bytes:
    """ManagedCursorInfo. With NO_LEDGER the state is in it; otherwise its mark-delete position alone, from before what the
    cursor ledger says, as in Apache's: tools tell it."""
    info = ManagedCursorInfo(cursors_ledger_id=cursors_ledger_id, last_active=now_ms)
    info.mark_delete_ledger_id, info.mark_delete_entry_id = state.mark_delete
    if cursors_ledger_id == NO_LEDGER:
        for ledger_id in sorted(state.holes):
            _add_ranges(info.individual_deleted_messages, ledger_id, state.holes[ledger_id])
        _add_batches(info.batched_entry_deletion_index_info, state.batches)
        _add_properties(info.properties, state.properties)
    for name, value in cursor_properties.items():
        info.cursor_properties.add(name=name, value=value)
    return info.SerializeToString()


def decode_node(name: str, value: bytes) -> CursorNode:
    info = ManagedCursorInfo()
    parse_into(info, value, name)
    cursor_properties = {each.name: each.value for each in info.cursor_properties}
    state = None
    if info.HasField("mark_delete_ledger_id"):
        state = CursorState(
            Position(info.mark_delete_ledger_id, info.mark_delete_entry_id),
            _read_ranges(info.individual_deleted_messages),
            _read_batches(info.batched_entry_deletion_index_info),
            {each.name: each.value for each in info.properties},
        )
    return CursorNode(info.cursors_ledger_id, state, cursor_properties)


def hole_ranges(state: CursorState) -> int:
    return sum(map(range_count, state.holes.values()))


def _add_ranges(into: Repeated[MessageRange], ledger_id: int, entry_ids: BitMap) -> None:
    for first, last in ranges(entry_ids):
        added = into.add()
        added.lower_endpoint.ledger_id, added.lower_endpoint.entry_id = ledger_id, first - 1
        added.upper_endpoint.ledger_id, added.upper_endpoint.entry_id = ledger_id, last


def _read_ranges(found: Iterable[MessageRange]) -> dict[int, BitMap]:
    """A range over the end of a ledger counts in its last one only: the rest is delivered again rather than lost."""
    holes: dict[int, BitMap] = {}
    for each in found:
        lower, upper = each.lower_endpoint, each.upper_endpoint
        first = lower.entry_id + 1 if lower.ledger_id == upper.ledger_id else 0
        if upper.entry_id >= first >= 0:
            holes.setdefault(upper.ledger_id, BitMap()).add_range(first, upper.entry_id + 1)
    return holes


def _add_batches(into: Repeated[BatchedEntryDeletionIndexInfo], batches: Iterable[tuple[Position, Words]]) -> None:
    for position, words in batches:
        added = into.add(delete_set=[signed(word) for word in words])
        added.position.ledger_id, added.position.entry_id = position


def _read_batches(found: Iterable[BatchedEntryDeletionIndexInfo]) -> list[tuple[Position, Words]]:
    return [
        (Position(each.position.ledger_id, each.position.entry_id), tuple(word & WORD_MASK for word in each.delete_set))
        for each in found
    ]


def _add_properties(into: Repeated[LongProperty], properties: Mapping[str, int]) -> None:
    for name, value in properties.items():
        into.add(name=name, value=value)


def _ledger_array_bytes(entry_ids: BitMap) -> int:
    return 10 * ((int(entry_ids.max()) >> 6) + 1) + _RANGE_BYTES


def _ledger_ranges_bytes(entry_ids: BitMap) -> int:
    return _RANGE_BYTES * range_count(entry_ids)


def _array_bytes(holes: Mapping[int, BitMap]) -> int:
    return sum(map(_ledger_array_bytes, holes.values()))


def _ranges_bytes(holes: Mapping[int, BitMap]) -> int:
    return sum(map(_ledger_ranges_bytes, holes.values()))
