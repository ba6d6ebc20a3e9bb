"""One kind of protobuf message, encoded at many places of a buffer, read into columns: all of them a field at a time.

Messages of one producer mostly have few shapes (`message_shapes`): those that have the first one's are taken at once, a few
times over. Step i reads the i-th field of every other message: as many steps as the longest one has fields, however many
messages there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy

from .message_shapes import EIGHT_BYTES, FOUR_BYTES, SPAN, VARINT, Place, shape_of
from .octets import PADDING_BYTES, Flags, Octets, Places, Words, varints_at
from .protobuf_groups import GROUP, group_end

_ALIKE_MIN = 32
"""Fewest messages for which a look for shapes saves more than it costs."""
_SHAPES_MAX = 8
_NUMBER_MAX = (1 << 29) - 1
_SIZE_BYTES_MAX = 5
"""Bytes of a tag or a length: as many as 32 bits need."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Places in the buffer, of each message; -1 and -1 where it has no such field."""

    starts: Places
    ends: Places

    @property
    def present(self) -> Flags:
        return self.starts >= 0


@dataclass(frozen=True, slots=True)
class Numbers:
    """A varint field of each message; 0 where it is not present."""

    values: Words
    present: Flags


@dataclass(frozen=True, slots=True)
class Repeated:
    """All occurrences of a field, in order of their message, and in each in order of appearance."""

    rows: Places
    starts: Places
    ends: Places


@dataclass(frozen=True, slots=True)
class Fields:
    """The field numbers that are wanted, by what becomes of them; all others are skipped.

    `kinds`: wire types of fields that must have one of them; a field written with another wire type is an unknown field.
    """

    numbers: tuple[int, ...] = ()
    spans: tuple[int, ...] = ()
    repeated: tuple[int, ...] = ()
    kinds: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def number_of(self, number: int, kind: int) -> int:
        """The field's number, or 0, which no field has, if its wire type is not to be taken."""
        return number if kind in self.kinds.get(number, (kind,)) else 0


@dataclass(slots=True)
class Columns:
    """Result of `scan`. `is_broken`: messages that are no protobuf; fields before their damage are kept."""

    is_broken: Flags
    numbers: dict[int, Numbers] = field(default_factory=dict)
    spans: dict[int, Spans] = field(default_factory=dict)
    repeated: dict[int, Repeated] = field(default_factory=dict)


def scan(data: Octets, starts: Places, ends: Places, wanted: Fields) -> Columns:
    """The wanted fields of the messages `data[start:end]`; of a field that comes twice the last one, as protobuf has it."""
    return _Scan(data, starts, ends, wanted).done()


class _Scan:
    def __init__(self, data: Octets, starts: Places, ends: Places, wanted: Fields) -> None:
        self._data, self._wanted = data, wanted
        count = len(starts)
        self._columns = Columns(numpy.zeros(count, numpy.bool_))
        for number in wanted.numbers:
            self._columns.numbers[number] = Numbers(numpy.zeros(count, numpy.uint64), numpy.zeros(count, numpy.bool_))
        for number in wanted.spans:
            absent = numpy.full(count, -1, numpy.int64)
            self._columns.spans[number] = Spans(absent, absent.copy())
        self._found: dict[int, list[tuple[Places, Places, Places]]] = {number: [] for number in wanted.repeated}
        self._rows = numpy.flatnonzero(starts < ends)
        self._at, self._ends = starts[self._rows], ends[self._rows]

    def done(self) -> Columns:
        self._take_alike()
        while len(self._rows):
            self._step()
        for number, found in self._found.items():
            self._columns.repeated[number] = _in_order(found)
        return self._columns

    def _take_alike(self) -> None:
        """Messages by their shapes, as long as those that come next have few."""
        for _ in range(_SHAPES_MAX):
            if len(self._rows) < _ALIKE_MIN:
                return
            shape = shape_of(self._data[self._at[0] : self._ends[0]].tobytes())
            if shape is None:
                return
            alike = shape.rows_like_it(self._data, self._at, self._ends)
            rows, starts = self._rows[alike], self._at[alike]
            for each in shape.fields:
                self._take_field(each, rows, starts)
            others = numpy.ones(len(self._rows), numpy.bool_)
            others[alike] = False
            is_rare = len(alike) * _SHAPES_MAX < len(self._rows)
            self._rows, self._at, self._ends = self._rows[others], self._at[others], self._ends[others]
            if is_rare:
                return

    def _take_field(self, place: Place, rows: Places, starts: Places) -> None:
        number = self._wanted.number_of(place.number, place.kind)
        if number in self._columns.numbers and place.kind == VARINT:
            numbers = self._columns.numbers[number]
            numbers.values[rows], numbers.present[rows] = varints_at(self._data, starts + place.start)[0], True
        if number in self._columns.spans:
            spans = self._columns.spans[number]
            spans.starts[rows], spans.ends[rows] = starts + place.start, starts + place.end
        elif number in self._found:
            self._found[number].append((rows, starts + place.start, starts + place.end))

    def _step(self) -> None:
        """The next field of every message that has one; afterwards `_rows` are those that have another."""
        tags, sizes = varints_at(self._data, self._at)
        after = self._at + sizes
        self._drop((sizes == 0) | (sizes > _SIZE_BYTES_MAX), after, tags)
        tags, after = self._kept
        next_at = numpy.empty_like(after)
        for tag in _distinct(tags):
            chosen = slice(None) if tag == tags[0] and bool((tags == tag).all()) else numpy.flatnonzero(tags == tag)
            if tag & numpy.uint64(7) == GROUP:
                places = zip(after[chosen].tolist(), self._ends[chosen].tolist(), strict=True)
                next_at[chosen] = [group_end(self._data, int(tag) >> 3, *each) for each in places]
                continue
            next_at[chosen] = self._field(int(tag), self._rows[chosen], after[chosen])
        is_bad = (next_at < 0) | (next_at > self._ends)
        self._columns.is_broken[self._rows[is_bad]] = True
        goes_on = ~is_bad & (next_at < self._ends)
        self._rows, self._at, self._ends = self._rows[goes_on], next_at[goes_on], self._ends[goes_on]

    def _drop(self, is_bad: Flags, after: Places, tags: Words) -> None:
        if bool(is_bad.any()):
            self._columns.is_broken[self._rows[is_bad]] = True
            kept = ~is_bad
            self._rows, self._ends = self._rows[kept], self._ends[kept]
            tags, after = tags[kept], after[kept]
        # a message's damage may point anywhere: a place beyond its end is never loaded from
        self._kept = tags, numpy.minimum(after, self._ends)

    def _field(self, tag: int, rows: Places, at: Places) -> Places:
        """Takes one field, whose value is at `at`, of these rows; the places after it, -1 where there can be none."""
        kind = tag & 7
        if not 0 < tag >> 3 <= _NUMBER_MAX:
            return numpy.full(len(rows), -1, numpy.int64)
        number = self._wanted.number_of(tag >> 3, kind)
        if kind == VARINT:
            values, sizes = varints_at(self._data, at)
            if number in self._columns.numbers:
                column = self._columns.numbers[number]
                column.values[rows], column.present[rows] = values, True
            return self._fixed(number, rows, at, numpy.where(sizes > 0, at + sizes, -1))
        if kind == SPAN:
            return self._span(number, rows, at)
        if kind in (EIGHT_BYTES, FOUR_BYTES):
            return self._fixed(number, rows, at, at + (8 if kind == EIGHT_BYTES else 4))
        return numpy.full(len(rows), -1, numpy.int64)

    def _fixed(self, number: int, rows: Places, at: Places, after: Places) -> Places:
        """A number that is wanted as the bytes that it has: of four or eight bytes, or one of several."""
        sound = (after >= 0) & (after <= len(self._data))
        if number in self._columns.spans:
            column = self._columns.spans[number]
            column.starts[rows], column.ends[rows] = numpy.where(sound, at, -1), numpy.where(sound, after, -1)
        elif number in self._found:
            self._found[number].append((rows[sound], at[sound], after[sound]))
        return after

    def _span(self, number: int, rows: Places, at: Places) -> Places:
        lengths, sizes = varints_at(self._data, at)
        starts = at + sizes
        fits = (sizes > 0) & (sizes <= _SIZE_BYTES_MAX) & (lengths <= numpy.uint64(len(self._data)))
        ends = numpy.where(fits, starts + lengths.astype(numpy.int64), -1)
        # a row whose span does not fit becomes broken in `_step`; its span is not to be used, nor the padding
        sound = fits & (ends <= len(self._data) - PADDING_BYTES)
        if number in self._columns.spans:
            column = self._columns.spans[number]
            column.starts[rows], column.ends[rows] = numpy.where(sound, starts, -1), numpy.where(sound, ends, -1)
        elif number in self._found:
            self._found[number].append((rows[sound], starts[sound], ends[sound]))
        return ends


def _distinct(tags: Words) -> Words:
    """The common case first: all messages have the same field here."""
    if len(tags) and bool((tags == tags[0]).all()):
        return tags[:1]
    return numpy.unique(tags)


def _in_order(found: list[tuple[Places, Places, Places]]) -> Repeated:
    if not found:
        nothing = numpy.zeros(0, numpy.int64)
        return Repeated(nothing, nothing, nothing)
    rows, starts, ends = (numpy.concatenate(each) for each in zip(*found, strict=True))
    if bool((rows[1:] >= rows[:-1]).all()):
        return Repeated(rows, starts, ends)
    order = numpy.argsort(rows, kind="stable")
    return Repeated(rows[order], starts[order], ends[order])
