"""A block of entries as rows, one for each message: where in the block's bytes each column's value is.

Nothing is copied but what was compressed. Entries that cannot be read are one row each, with the reason; markers of the broker,
and messages that compaction took out of their batch, are no rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy

from . import sections as fields
from .batches import Messages, messages_of
from .compression import Undecodable, uncompressed
from .octets import PADDING_BYTES, Flags, Octets, Places, Words, words_at
from .protobuf_columns import Columns, Fields, Repeated, Spans, scan
from .sections import Block, Sections, split

_PROPERTIES, _KEY, _COMPACTED_OUT, _EVENT_TIME, _KEY_IS_BASE64, _SEQUENCE_ID, _NULL_VALUE = 1, 2, 4, 5, 6, 8, 9
_SINGLE = Fields((_COMPACTED_OUT, _EVENT_TIME, _KEY_IS_BASE64, _SEQUENCE_ID, _NULL_VALUE), (_KEY,), (_PROPERTIES,))


@dataclass(frozen=True, slots=True)
class Rows:
    """Spans are places in `data`; `producers` and `schema_versions` are of entries, as `entries` says which entry a row is of.

    `errors[entry]` is "" for an entry that could be read. `batch_indexes` is -1 for a message outside a batch. Times are in
    milliseconds; an event time of 0 is none, as in Apache's clients.
    """

    block: Block
    data: Octets
    entries: Places
    batch_indexes: Places
    values: Spans
    is_null: Flags
    keys: Spans
    is_base64: Flags
    properties: Repeated
    event_times: Words
    publish_times: Words
    sequence_ids: Words
    indexes: Places
    producers: Spans
    schema_versions: Spans
    errors: list[str]
    message_count: int
    """As brokers count: all of a batch, markers too. What a consumer's permits are spent on."""
    has_transactions: bool
    """Whether messages of transactions are among them."""
    chunk_counts: Words
    """Of entries: in how many the message is of which it is a part; 0 and 1 for one that is whole. See `chunks`."""

    @property
    def count(self) -> int:
        return len(self.entries)

    @property
    def has_chunks(self) -> bool:
        return bool((self.chunk_counts > 1).any())

    def schema_version_numbers(self) -> Places:
        """Of entries. The registry numbers from 0, in eight bytes (LongSchemaVersion); -1 for any other form, or none."""
        spans = self.schema_versions
        numbers = words_at(self.block.data, numpy.maximum(spans.starts, 0)).byteswap().view(numpy.int64)
        return numpy.where(spans.ends - spans.starts == 8, numbers, -1)


A_CHUNK = "it is a chunk of a longer message"
"""What is wrong with one that nobody put together with the others."""


def rows_of(block: Block, verifies_checksums: bool = True, reasons: Mapping[int, str] | None = None) -> Rows:
    """Of all entries. What is wrong with one stands in `errors`; nothing that is in an entry makes this fail.

    `reasons`: what is known of an entry that is a chunk, beside that it is one.
    """
    return _rows(block, split(block, verifies_checksums), reasons or {})


PART_BYTES_MAX = 32 << 20
_MESSAGE_BYTES = 200
"""Of memory for a message, whatever is in it: its places."""


def rows_in_parts(block: Block, verifies_checksums: bool = True) -> Iterator[Rows]:
    """The same in several parts, where messages are many or become long when they are decompressed.

    About PART_BYTES_MAX of a part, or one entry: what bounds a task's memory, as producers may compress a thousand to one.
    """
    sections = split(block, verifies_checksums)
    numbers = sections.metadata.numbers
    sizes = numbers[fields.UNCOMPRESSED_SIZE].values + numbers[fields.BATCH_COUNT].values * numpy.uint64(_MESSAGE_BYTES)
    parts = numpy.cumsum(numpy.minimum(sizes, numpy.uint64(PART_BYTES_MAX))) // numpy.uint64(PART_BYTES_MAX)
    if not block.count or parts[0] == parts[-1]:
        yield _rows(block, sections, {})
        return
    for part in numpy.unique(parts).tolist():
        yield rows_of(block.chosen(numpy.flatnonzero(parts == part)), verifies_checksums)


def _rows(block: Block, sections: Sections, reasons: Mapping[int, str]) -> Rows:
    _refuse(sections, reasons)
    data, starts, ends = _payloads(block, sections)
    return _laid_out(block, sections, data, starts, ends)


def _refuse(sections: Sections, reasons: Mapping[int, str]) -> None:
    columns, errors = sections.metadata, sections.errors
    for row in numpy.flatnonzero(columns.numbers[fields.CHUNK_COUNT].values > 1).tolist():
        errors[row] = errors[row] or reasons.get(row, A_CHUNK)
    for row in numpy.flatnonzero(columns.spans[fields.ENCRYPTION_KEYS].present).tolist():
        errors[row] = errors[row] or "it is encrypted, and there are no keys here"


def _payloads(block: Block, sections: Sections) -> tuple[Octets, Places, Places]:
    """Where each payload is; decompressed ones lie behind the block's own bytes."""
    numbers = sections.metadata.numbers
    kinds = numbers[fields.COMPRESSION].values
    starts, ends = sections.payload_starts.copy(), block.ends.copy()
    if not bool(kinds.any()):
        return block.data, starts, ends
    parts, at = [block.data[:-PADDING_BYTES]], len(block.data) - PADDING_BYTES
    for row in numpy.flatnonzero(kinds).tolist():
        if sections.errors[row]:
            continue
        try:
            size = int(numbers[fields.UNCOMPRESSED_SIZE].values[row])
            found = uncompressed(block.data[starts[row] : ends[row]].tobytes(), int(kinds[row]), size)
        except Undecodable as error:
            sections.errors[row] = str(error)
            continue
        parts.append(numpy.frombuffer(found, numpy.uint8))
        starts[row], ends[row] = at, at + len(found)
        at += len(found)
    return numpy.concatenate([*parts, numpy.zeros(PADDING_BYTES, numpy.uint8)]), starts, ends


def _laid_out(block: Block, sections: Sections, data: Octets, starts: Places, ends: Places) -> Rows:
    """Rows in the order of their entries. Batches are split; a row of another kind is the entry itself."""
    numbers = sections.metadata.numbers
    is_sound = numpy.array([not error for error in sections.errors], numpy.bool_)
    is_marker = numbers[fields.MARKER_TYPE].present & is_sound
    batched = numpy.flatnonzero(numbers[fields.BATCH_COUNT].present & is_sound & ~is_marker)
    counts = numbers[fields.BATCH_COUNT].values[batched].astype(numpy.int64)
    messages = messages_of(data, starts[batched], ends[batched], counts)
    for row in batched[messages.is_broken].tolist():
        sections.errors[row] = "a message of the batch is not where it should be"
    whole = ~is_marker
    whole[batched[~messages.is_broken]] = False
    singles = scan(data, messages.metadata_starts, messages.metadata_ends, _SINGLE)
    kept = numpy.flatnonzero(~messages.is_broken[messages.batches] & (singles.numbers[_COMPACTED_OUT].values == 0))
    return _merged(block, sections, data, (starts, ends), numpy.flatnonzero(whole), _Batched(batched, messages, singles, kept))


@dataclass(frozen=True, slots=True)
class _Batched:
    """`entries[messages.batches[kept]]` are the entries of the rows that come from batches."""

    entries: Places
    messages: Messages
    singles: Columns
    kept: Places


def _merged(
    block: Block, sections: Sections, data: Octets, payloads: tuple[Places, Places], whole: Places, batched: _Batched
) -> Rows:
    """The entries that are rows themselves, and the messages of batches, in the order of their entries."""
    own, kept, singles = sections.metadata, batched.kept, batched.singles
    entries = numpy.concatenate((whole, batched.entries[batched.messages.batches[kept]]))
    batch_indexes = numpy.concatenate((numpy.full(len(whole), -1, numpy.int64), batched.messages.indexes[kept]))
    order = numpy.lexsort((batch_indexes, entries)) if len(whole) and len(kept) else numpy.arange(len(entries))

    # nearly always all rows come from batches, and all messages of those are rows: then what was found is what is wanted
    is_all = not len(whole) and len(kept) == len(batched.messages.batches)

    def both(of_whole: Places, of_batched: Places) -> Places:
        return of_batched if is_all else numpy.concatenate((of_whole[whole], of_batched[kept]))[order]

    def spans(field: int, single: int) -> Spans:
        one, other = own.spans[field], singles.spans[single]
        return Spans(both(one.starts, other.starts), both(one.ends, other.ends))

    def numbers(field: int, single: int) -> Words:
        one, other = own.numbers[field].values, singles.numbers[single].values
        return other if is_all else numpy.concatenate((one[whole], other[kept]))[order]

    entries, batch_indexes = entries[order], batch_indexes[order]
    values = Spans(both(payloads[0], batched.messages.metadata_ends), both(payloads[1], batched.messages.payload_ends))
    return Rows(
        block=block,
        data=data,
        entries=entries,
        batch_indexes=batch_indexes,
        values=values,
        is_null=numbers(fields.NULL_VALUE, _NULL_VALUE) != 0,
        keys=spans(fields.PARTITION_KEY, _KEY),
        is_base64=numbers(fields.KEY_IS_BASE64, _KEY_IS_BASE64) != 0,
        properties=_properties(own, singles, whole, kept, order),
        event_times=numbers(fields.EVENT_TIME, _EVENT_TIME),
        publish_times=own.numbers[fields.PUBLISH_TIME].values[entries],
        sequence_ids=_sequence_ids(own, batched, entries, batch_indexes, order),
        indexes=_indexes(sections, entries, batch_indexes),
        producers=own.spans[fields.PRODUCER_NAME],
        schema_versions=own.spans[fields.SCHEMA_VERSION],
        errors=sections.errors,
        message_count=_message_count(own),
        has_transactions=bool(own.numbers[fields.TXN_ID].present.any()),
        chunk_counts=own.numbers[fields.CHUNK_COUNT].values,
    )


def _message_count(own: Columns) -> int:
    """What an entry says that cannot be is one message, for brokers too."""
    counts = own.numbers[fields.BATCH_COUNT]
    return int(numpy.where(counts.present, numpy.minimum(counts.values, numpy.uint64(1 << 20)), 1).sum())


def _sequence_ids(own: Columns, batched: _Batched, entries: Places, batch_indexes: Places, order: Places) -> Words:
    """A message of a batch that has no sequence id of its own has the batch's, plus its place in it."""
    of_entries = own.numbers[fields.SEQUENCE_ID].values[entries] + numpy.maximum(batch_indexes, 0).astype(numpy.uint64)
    single = batched.singles.numbers[_SEQUENCE_ID]
    whole_count = len(order) - len(batched.kept)
    has_own = numpy.concatenate((numpy.zeros(whole_count, numpy.bool_), single.present[batched.kept]))[order]
    of_messages = numpy.concatenate((numpy.zeros(whole_count, numpy.uint64), single.values[batched.kept]))[order]
    return numpy.where(has_own, of_messages, of_entries)


def _indexes(sections: Sections, entries: Places, batch_indexes: Places) -> Places:
    """The broker stores the index of an entry's last message (BrokerEntryMetadata.index); -1 where it stores none."""
    last = sections.last_indexes[entries]
    counts = sections.metadata.numbers[fields.BATCH_COUNT].values[entries].astype(numpy.int64)
    return numpy.where((last >= 0) & (batch_indexes >= 0), last - counts + 1 + batch_indexes, last)


def _properties(own: Columns, singles: Columns, whole: Places, kept: Places, order: Places) -> Repeated:
    """Properties by row; those of a batch's own metadata are nobody's, as in Apache's clients."""
    one, other = own.repeated[fields.PROPERTIES], singles.repeated[_PROPERTIES]
    row_of = numpy.empty(len(order), numpy.int64)
    row_of[order] = numpy.arange(len(order))
    parts = []
    for found, chosen, first in ((one, whole, 0), (other, kept, len(whole))):
        place = numpy.full(int(found.rows.max()) + 1 if len(found.rows) else 0, -1, numpy.int64)
        known = chosen[chosen < len(place)]
        place[known] = row_of[first : first + len(known)]
        rows = place[found.rows]
        is_ours = rows >= 0
        parts.append((rows[is_ours], found.starts[is_ours], found.ends[is_ours]))
    rows, starts, ends = (numpy.concatenate(each) for each in zip(*parts, strict=True))
    by_row = numpy.argsort(rows, kind="stable")
    return Repeated(rows[by_row], starts[by_row], ends[by_row])
