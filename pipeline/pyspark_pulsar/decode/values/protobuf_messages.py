"""Protobuf messages of a definition as an Arrow column of structs, all of them a field at a time (`protobuf_columns.scan`).

It reads what Google's libraries read: a field that is written as another type is an unknown field.
"""

from collections.abc import Sequence
from typing import Any

import numpy
import pyarrow

from ..arrow_columns import binary_of, text_of
from ..message_shapes import EIGHT_BYTES, FOUR_BYTES, SPAN, VARINT
from ..octets import Flags, Octets, Places, Words, varints_at, words_at
from ..protobuf_columns import Columns, Fields, Repeated, Spans, scan
from .protobuf_schema import VARINTS, Field, Message, arrow_type, single_type
from .protobuf_settled import joined, last_of, of_known, pairs, settle

_EIGHT = ("FIXED64", "SFIXED64", "DOUBLE")
_FOUR = ("FIXED32", "SFIXED32", "FLOAT")
_KINDS = {**dict.fromkeys(VARINTS, VARINT), **dict.fromkeys(_EIGHT, EIGHT_BYTES), **dict.fromkeys(_FOUR, FOUR_BYTES)}


def decode(data: Octets, spans: Spans, message: Message) -> tuple[Any, Flags]:
    """A column of the type `arrow_type(message)`, and which are no such messages. Spans have to be present."""
    count = len(spans.starts)
    found = scan(data, spans.starts, spans.ends, _wanted(message))
    for each in message.fields:
        if each.is_closed:
            these = _unpacked(data, found.repeated[each.number], each, found.is_broken)
            found.repeated[each.number] = of_known(data, these, each)
    for field, these in settle(found, message, count):
        _check(data, found, field, these)
    columns = [_field(data, found, each, count) for each in message.fields]
    return pyarrow.StructArray.from_arrays(columns, fields=list(arrow_type(message))), found.is_broken


def _wanted(message: Message) -> Fields:
    """All occurrences of what is repeated or merged, or may not count; the place in the message of what excludes others."""
    every, numbers, spans, kinds = [], [], [], {}
    for each in message.fields:
        kind = _KINDS.get(each.kind, SPAN)
        kinds[each.number] = (kind, SPAN) if each.is_repeated else (kind,)
        if each.is_repeated or each.message is not None or each.is_closed or each.is_checked:
            every.append(each.number)  # checked text includes values that do not count
        elif kind == VARINT and each.choice < 0:
            numbers.append(each.number)
        else:
            spans.append(each.number)
    return Fields(tuple(numbers), tuple(spans), tuple(every), kinds)


def _field(data: Octets, found: Columns, field: Field, count: int) -> Any:
    if field.is_repeated:
        return _repeated(data, found, field, count)
    if field.number in found.numbers:
        numbers = found.numbers[field.number]
        column = _of_varints(numbers.values, field)
        return column if not field.has_presence else _where(column, numbers.present)
    if field.message is not None:
        return _message(data, found, field, count)
    if field.number in found.spans:
        spans = found.spans[field.number]
    else:
        these = found.repeated[field.number]
        spans = last_of(these, count)
        if field.is_checked and len(these.rows) > int(spans.present.sum()):
            _check(data, found, field, these)
    present = numpy.flatnonzero(spans.present)
    column, broken = _of_spans(data, Spans(spans.starts[present], spans.ends[present]), field)
    found.is_broken[present[broken]] = True
    return _spread(column, present, count, field)


def _message(data: Octets, found: Columns, field: Field, count: int) -> Any:
    """One of each, put together where there are several. As a map's value one that is not there is empty."""
    assert field.message is not None
    these = found.repeated[field.number]
    whole, spans = joined(data, these, count)
    if whole is not data:  # each by itself has to be one, too
        _check(data, found, field, these)
    if not field.has_presence:
        spans = Spans(numpy.maximum(spans.starts, 0), numpy.maximum(spans.ends, 0))
    present = numpy.flatnonzero(spans.present)
    column, broken = decode(whole, Spans(spans.starts[present], spans.ends[present]), field.message)
    found.is_broken[present[broken]] = True
    return _spread(column, present, count, field)


def _check(data: Octets, found: Columns, field: Field, these: Repeated) -> None:
    """Marks messages as broken by values that do not count: these have to be sound as well."""
    found.is_broken[these.rows[_of_spans(data, Spans(these.starts, these.ends), field)[1]]] = True


def _where(column: Any, present: Flags) -> Any:
    return column if bool(present.all()) else column.take(pyarrow.array(numpy.arange(len(present)), mask=~present))


def _spread(column: Any, rows: Places, count: int, field: Field) -> Any:
    """Column with values at these rows; elsewhere null, or protobuf's default."""
    if len(rows) == count:
        return column
    at = numpy.full(count, len(column), numpy.int64)
    at[rows] = numpy.arange(len(rows))
    absent = None if field.has_presence else _ABSENT.get(field.kind, 0)
    if absent is not None and field.kind == "ENUM":
        absent = field.symbols[0][1] if field.is_closed else dict(field.symbols).get(0, "0")
    kind = single_type(field)
    return pyarrow.concat_arrays([column, pyarrow.array([absent], kind)]).take(pyarrow.array(at))


_ABSENT = {"STRING": "", "BYTES": b"", "DOUBLE": 0.0, "FLOAT": 0.0, "BOOL": False}


def _of_varints(values: Words, field: Field) -> Any:
    signed = values.view(numpy.int64)
    match field.kind:
        case "BOOL":
            return pyarrow.array(values != 0)
        case "ENUM":
            return _symbols(signed, field.symbols)
        case "SINT32":
            return pyarrow.array(_unzigzag(values & numpy.uint64(0xFFFFFFFF)).astype(numpy.int32))
        case "SINT64":
            signed = _unzigzag(values)
        case "UINT32":
            signed = signed & 0xFFFFFFFF
    return pyarrow.array(signed.astype(numpy.int32) if field.kind == "INT32" else signed)


def _unzigzag(values: Words) -> Places:
    return ((values >> numpy.uint64(1)) ^ (numpy.uint64(0) - (values & numpy.uint64(1)))).view(numpy.int64)


def _symbols(numbers: Places, symbols: Sequence[tuple[int, str]]) -> Any:
    """Names; the number itself, as text, for one that the definition does not have."""
    names = dict(symbols)
    distinct, at = numpy.unique(numbers.astype(numpy.int32), return_inverse=True)
    texts = pyarrow.array([names.get(each, str(each)) for each in distinct.tolist()], pyarrow.string())
    return texts.take(pyarrow.array(at))


def _of_spans(data: Octets, spans: Spans, field: Field) -> tuple[Any, Flags]:
    """Messages, text, bytes, and numbers where they stand."""
    if field.message is not None:
        return decode(data, spans, field.message)
    if field.kind in VARINTS:
        values, sizes = varints_at(data, spans.starts)
        return _of_varints(values, field), sizes == 0
    if field.kind in (*_EIGHT, *_FOUR):
        size = 8 if field.kind in _EIGHT else 4
        broken = spans.ends - spans.starts != size
        return _of_words(words_at(data, numpy.where(broken, 0, spans.starts)), field), broken
    found = binary_of(data, spans)
    if field.kind != "STRING":
        return found, numpy.zeros(len(spans.starts), numpy.bool_)
    return text_of(found), _is_no_text(found) if field.is_checked else numpy.zeros(len(spans.starts), numpy.bool_)


def _is_no_text(values: Any) -> Flags:
    try:
        values.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return numpy.array([not _is_text(each) for each in values.to_pylist()], numpy.bool_)
    return numpy.zeros(len(values), numpy.bool_)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _of_words(words: Words, field: Field) -> Any:
    match field.kind:
        case "DOUBLE":
            return pyarrow.array(words.view(numpy.float64))
        case "FLOAT":
            return pyarrow.array(words.astype(numpy.uint32).view(numpy.float32))
        case "SFIXED32":
            return pyarrow.array(words.astype(numpy.uint32).view(numpy.int32))
        case "FIXED32":
            return pyarrow.array((words & numpy.uint64(0xFFFFFFFF)).view(numpy.int64))
    return pyarrow.array(words.view(numpy.int64))


def _repeated(data: Octets, found: Columns, field: Field, count: int) -> Any:
    these = found.repeated[field.number]
    if field.kind in _KINDS and not field.is_closed:
        these = _unpacked(data, these, field, found.is_broken)
    column, broken = _of_spans(data, Spans(these.starts, these.ends), field)
    found.is_broken[these.rows[broken]] = True
    if field.is_map:
        these, column = pairs(data, these, column, field)
    offsets = numpy.zeros(count + 1, numpy.int32)
    numpy.cumsum(numpy.bincount(these.rows, minlength=count), out=offsets[1:])
    if field.is_map:
        return pyarrow.MapArray.from_arrays(pyarrow.array(offsets), column.field(0), column.field(1))
    kind = pyarrow.list_(pyarrow.field("element", column.type))
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), column, type=kind)


def _unpacked(data: Octets, found: Repeated, field: Field, broken: Flags) -> Repeated:
    """Numbers stand one by one or many in a span: either way the span is read to its end."""
    at, order = found.starts.copy(), numpy.arange(len(found.rows))
    active = numpy.flatnonzero(at < found.ends)
    parts = []
    while len(active):
        sizes = (
            varints_at(data, at[active])[1]
            if field.kind in VARINTS
            else numpy.full(len(active), 8 if field.kind in _EIGHT else 4)
        )
        after = at[active] + sizes
        is_bad = (sizes == 0) | (after > found.ends[active])
        broken[found.rows[active[is_bad]]] = True
        sound, after = active[~is_bad], after[~is_bad]
        parts.append((order[sound], at[sound], after))
        at[sound] = after
        active = sound[after < found.ends[sound]]
    if not parts:
        return Repeated(found.rows[:0], found.starts[:0], found.ends[:0])
    spans, starts, ends = (numpy.concatenate(each) for each in zip(*parts, strict=True))
    by_span = numpy.argsort(spans, kind="stable")
    return Repeated(found.rows[spans[by_span]], starts[by_span], ends[by_span])
