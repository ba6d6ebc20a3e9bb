"""A block of entries as rows, one for each message: where in the block's bytes each column's value is.

Nothing is copied but what was compressed. Entries that cannot be read are one row each, with the reason; markers of the broker,
and messages that compaction took out of their batch, are no rows.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy

from . import sections as fields
from .compression import Undecodable, uncompressed
from .octets import PADDING_BYTES, Flags, Octets, Places, Words, words_at
from .plain import PlainBatches, plain_batches
from .protobuf_columns import Columns, Repeated, Spans
from .sections import Block, Sections, split
from .singles import Singles, singles_of

_Column = TypeVar("_Column", Places, Words, Flags)
_COUNTED_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class _Origins:
    """Origins of rows: entries that are rows themselves (`whole`), and the messages of batches that are `kept`.

    `entries[singles.messages.batches]` are the entries of messages. `order` puts both in the order of their entries. Nearly
    always all rows come from batches, and all messages of those are rows (`is_all`): then what was found is what is wanted.
    """

    sections: Sections
    singles: Singles
    entries: Places
    whole: Places
    kept: Places
    order: Places
    is_all: bool

    @property
    def own(self) -> Columns:
        return self.sections.metadata

    def column(self, of_entries: _Column, of_messages: _Column) -> _Column:
        if self.is_all:
            return of_messages
        return numpy.concatenate((of_entries[self.whole], of_messages[self.kept]))[self.order]

    def flags(self, of_entries: Words, of_messages: Flags) -> Flags:
        return of_messages if self.is_all else self.column(of_entries != 0, of_messages)

    def spans(self, of_entries: Spans, of_messages: Spans) -> Spans:
        return Spans(self.column(of_entries.starts, of_messages.starts), self.column(of_entries.ends, of_messages.ends))


@dataclass(frozen=True, slots=True)
class _Laid:
    """See `Rows`."""

    data: Octets
    entries: Places
    batch_indexes: Places
    values: Spans
    errors: list[str]
    origins: _Origins


@dataclass(frozen=True)
class Rows:
    """Spans are places in `data`; `producers` and `schema_versions` are of entries, as `entries` says which entry a row is of.

    `errors[entry]` is "" for an entry that could be read. `batch_indexes` is -1 for a message outside a batch. Times are in
    milliseconds; an event time of 0 is none, as in Apache's clients. Columns that few queries want are made on first use.

    Where `batches` is there, all entries are plain ones (see `plain`), of which columns can be had without the places of each
    message: the first use of these finds them.
    """

    block: Block
    batches: PlainBatches | None
    _lay: Callable[[], _Laid]

    @functools.cached_property
    def _laid(self) -> _Laid:
        return self._lay()

    @property
    def data(self) -> Octets:
        return self._laid.data

    @property
    def entries(self) -> Places:
        return self._laid.entries

    @property
    def batch_indexes(self) -> Places:
        return self._laid.batch_indexes

    @property
    def values(self) -> Spans:
        return self._laid.values

    @property
    def errors(self) -> list[str]:
        return self._laid.errors

    @property
    def origins(self) -> _Origins:
        return self._laid.origins

    @property
    def count(self) -> int:
        return len(self.entries)

    @property
    def has_errors(self) -> bool:
        return any(self.errors)

    @functools.cached_property
    def is_null(self) -> Flags:
        return self.origins.flags(self._own(fields.NULL_VALUE), self.origins.singles.is_null)

    @functools.cached_property
    def keys(self) -> Spans:
        return self.origins.spans(self.origins.own.spans[fields.PARTITION_KEY], self.origins.singles.keys)

    @functools.cached_property
    def is_base64(self) -> Flags:
        return self.origins.flags(self._own(fields.KEY_IS_BASE64), self.origins.singles.is_base64)

    @functools.cached_property
    def event_times(self) -> Words:
        return self.origins.column(self._own(fields.EVENT_TIME), self.origins.singles.event_times)

    @property
    def entry_publish_times(self) -> Words:
        """Publish times of entries: all messages of a batch have the batch's."""
        return self._own(fields.PUBLISH_TIME)

    @functools.cached_property
    def publish_times(self) -> Words:
        return self.entry_publish_times[self.entries]

    @functools.cached_property
    def sequence_ids(self) -> Words:
        """A message of a batch that has no sequence id of its own has the batch's, plus its place in it."""
        origins, singles = self.origins, self.origins.singles
        of_entries = self._own(fields.SEQUENCE_ID)[self.entries] + numpy.maximum(self.batch_indexes, 0).astype(numpy.uint64)
        nothing = numpy.zeros(self.block.count, numpy.uint64)
        has_own = origins.flags(nothing, singles.has_sequence_id)
        return numpy.where(has_own, origins.column(nothing, singles.sequence_ids), of_entries)

    @functools.cached_property
    def indexes(self) -> Places:
        """The broker stores the index of an entry's last message (BrokerEntryMetadata.index); -1 where it stores none."""
        last = self.origins.sections.last_indexes[self.entries]
        counts = self._own(fields.BATCH_COUNT)[self.entries].astype(numpy.int64)
        return numpy.where((last >= 0) & (self.batch_indexes >= 0), last - counts + 1 + self.batch_indexes, last)

    @functools.cached_property
    def properties(self) -> Repeated:
        """Properties by row; properties of a batch's own metadata belong to no row, as in Apache's clients."""
        return _properties(self.origins, self.data)

    @property
    def producers(self) -> Spans:
        return self.origins.own.spans[fields.PRODUCER_NAME]

    @property
    def schema_versions(self) -> Spans:
        return self.origins.own.spans[fields.SCHEMA_VERSION]

    @property
    def message_count(self) -> int:
        """Number of messages as brokers count them: all of a batch, markers too. A consumer's permits are spent on these.

        An entry without a readable count is one message, for brokers too.
        """
        if self.batches is not None:
            return int(numpy.minimum(self.batches.counts, _COUNTED_MAX).sum())
        counts = self.origins.own.numbers[fields.BATCH_COUNT]
        return int(numpy.where(counts.present, numpy.minimum(counts.values, numpy.uint64(_COUNTED_MAX)), 1).sum())

    @property
    def has_transactions(self) -> bool:
        """Whether messages of transactions are among them."""
        return self.batches is None and bool(self.origins.own.numbers[fields.TXN_ID].present.any())

    @property
    def chunk_counts(self) -> Words:
        """Number of chunks of the message that each entry is a part of; 0 and 1 for a whole message. See `chunks`."""
        return self._own(fields.CHUNK_COUNT)

    @property
    def has_chunks(self) -> bool:
        return self.batches is None and bool((self.chunk_counts > 1).any())

    def schema_version_numbers(self) -> Places:
        """Schema versions of entries: the registry's numbers from 0, eight bytes (LongSchemaVersion); -1 for others."""
        spans = self.schema_versions
        numbers = words_at(self.block.data, numpy.maximum(spans.starts, 0)).byteswap().view(numpy.int64)
        return numpy.where(spans.ends - spans.starts == 8, numbers, -1)

    def _own(self, field: int) -> Words:
        """A number that entries' own metadata have."""
        return self.origins.own.numbers[field].values


A_CHUNK = "it is a chunk of a longer message"
"""Error of a chunk that was not put together with the others."""


def rows_of(block: Block, verifies_checksums: bool = True, reasons: Mapping[int, str] | None = None) -> Rows:
    """Rows of all entries. `errors` says what is wrong with one; no content of an entry makes this fail.

    `reasons`: what is known of an entry that is a chunk, beside that it is one.
    """
    laid = _laid_out(block, split(block, verifies_checksums), reasons or {})
    return Rows(block, None, lambda: laid)


PART_BYTES_MAX = 32 << 20
_MESSAGE_BYTES = 200
"""Memory for a message's places, whatever its content."""


def rows_in_parts(block: Block, verifies_checksums: bool = True) -> Iterator[Rows]:
    """The same in several parts, where messages are many or become long when they are decompressed.

    About PART_BYTES_MAX of a part, or one entry: what bounds a task's memory, as producers may compress a thousand to one.
    """
    batches = plain_batches(block, verifies_checksums)
    if batches is not None and batches.message_count * _MESSAGE_BYTES <= PART_BYTES_MAX:
        # their checksums were looked at
        yield Rows(block, batches, lambda: _laid_out(block, split(block, False), {}))
        return
    sections = split(block, verifies_checksums)
    numbers = sections.metadata.numbers
    sizes = numbers[fields.UNCOMPRESSED_SIZE].values + numbers[fields.BATCH_COUNT].values * numpy.uint64(_MESSAGE_BYTES)
    parts = numpy.cumsum(numpy.minimum(sizes, numpy.uint64(PART_BYTES_MAX))) // numpy.uint64(PART_BYTES_MAX)
    if not block.count or parts[0] == parts[-1]:
        laid = _laid_out(block, sections, {})
        yield Rows(block, None, lambda: laid)
        return
    for part in numpy.unique(parts).tolist():
        yield rows_of(block.chosen(numpy.flatnonzero(parts == part)), verifies_checksums)


def _laid_out(block: Block, sections: Sections, reasons: Mapping[int, str]) -> _Laid:
    _refuse(sections, reasons)
    data, starts, ends = _payloads(block, sections)
    return _in_order(block, sections, data, starts, ends)


def _refuse(sections: Sections, reasons: Mapping[int, str]) -> None:
    columns, errors = sections.metadata, sections.errors
    for row in numpy.flatnonzero(columns.numbers[fields.CHUNK_COUNT].values > 1).tolist():
        errors[row] = errors[row] or reasons.get(row, A_CHUNK)
    for row in numpy.flatnonzero(columns.spans[fields.ENCRYPTION_KEYS].present).tolist():
        errors[row] = errors[row] or "it is encrypted, and there are no keys here"


def _payloads(block: Block, sections: Sections) -> tuple[Octets, Places, Places]:
    """Position of each payload; decompressed ones lie behind the block's own bytes."""
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


def _in_order(block: Block, sections: Sections, data: Octets, starts: Places, ends: Places) -> _Laid:
    """Rows in the order of their entries. Batches are split; a row of another kind is the entry itself."""
    numbers = sections.metadata.numbers
    is_sound = numpy.array([not error for error in sections.errors], numpy.bool_)
    is_marker = numbers[fields.MARKER_TYPE].present & is_sound
    batched = numpy.flatnonzero(numbers[fields.BATCH_COUNT].present & is_sound & ~is_marker)
    counts = numbers[fields.BATCH_COUNT].values[batched].astype(numpy.int64)
    singles = singles_of(data, starts[batched], ends[batched], counts)
    is_broken = singles.messages.is_broken
    for row in batched[is_broken].tolist():
        sections.errors[row] = "a message of the batch is not where it should be"
    whole = ~is_marker
    whole[batched[~is_broken]] = False
    return _merged(block, data, (starts, ends), _origins(sections, singles, batched, numpy.flatnonzero(whole)))


def _origins(sections: Sections, singles: Singles, batched: Places, whole: Places) -> _Origins:
    messages = singles.messages
    is_out = singles.is_compacted_out
    if not len(whole) and not bool(is_out.any()) and not bool(messages.is_broken.any()):
        nothing = numpy.zeros(0, numpy.int64)
        return _Origins(sections, singles, batched, whole, nothing, nothing, is_all=True)
    kept = numpy.flatnonzero(~(messages.is_broken[messages.batches] | is_out))
    entries = numpy.concatenate((whole, batched[messages.batches[kept]]))
    indexes = numpy.concatenate((numpy.full(len(whole), -1, numpy.int64), messages.indexes[kept]))
    order = numpy.lexsort((indexes, entries)) if len(whole) and len(kept) else numpy.arange(len(entries))
    return _Origins(sections, singles, batched, whole, kept, order, is_all=False)


def _merged(block: Block, data: Octets, payloads: tuple[Places, Places], origins: _Origins) -> _Laid:
    """The entries that are rows themselves, and the messages of batches."""
    messages = origins.singles.messages
    every = numpy.arange(block.count)
    return _Laid(
        data=data,
        entries=origins.column(every, _entries_of(origins.entries, messages.batches)),
        batch_indexes=origins.column(numpy.full(block.count, -1, numpy.int64), messages.indexes),
        values=origins.spans(Spans(*payloads), Spans(messages.metadata_ends, messages.payload_ends)),
        errors=origins.sections.errors,
        origins=origins,
    )


def _entries_of(batched: Places, batches: Places) -> Places:
    """Nearly always every entry is a batch."""
    return batches if len(batched) and batched[-1] == len(batched) - 1 else batched[batches]


def _properties(origins: _Origins, data: Octets) -> Repeated:
    of_messages = origins.singles.properties(data)
    if origins.is_all:
        return of_messages
    row_of = numpy.empty(len(origins.order), numpy.int64)
    row_of[origins.order] = numpy.arange(len(origins.order))
    of_entries = origins.own.repeated[fields.PROPERTIES]
    parts = []
    for found, chosen, first in ((of_entries, origins.whole, 0), (of_messages, origins.kept, len(origins.whole))):
        place = numpy.full(int(found.rows.max()) + 1 if len(found.rows) else 0, -1, numpy.int64)
        known = chosen[chosen < len(place)]
        place[known] = row_of[first : first + len(known)]
        rows = place[found.rows]
        is_ours = rows >= 0
        parts.append((rows[is_ours], found.starts[is_ours], found.ends[is_ours]))
    rows, starts, ends = (numpy.concatenate(each) for each in zip(*parts, strict=True))
    by_row = numpy.argsort(rows, kind="stable")
    return Repeated(rows[by_row], starts[by_row], ends[by_row])
