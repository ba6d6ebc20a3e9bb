"""Protobuf messages of a definition as an Arrow column of structs, all of them a field at a time (`protobuf_columns.scan`)."""

from collections.abc import Sequence
from typing import Any

import numpy
import pyarrow

from .arrow_columns import binary_of, text_of
from .octets import Flags, Octets, Places, Words, varints_at, words_at
from .protobuf_columns import Columns, Fields, Repeated, Spans, scan
from .protobuf_schema import VARINTS, Field, Message, arrow_type, single_type

_EIGHT = ("FIXED64", "SFIXED64", "DOUBLE")
_FOUR = ("FIXED32", "SFIXED32", "FLOAT")


def decode(data: Octets, spans: Spans, message: Message) -> tuple[Any, Flags]:
    """A column of the type `arrow_type(message)`, and which are no such messages. Spans have to be present."""
    single = [each for each in message.fields if not each.is_repeated]
    wanted = Fields(
        tuple(each.number for each in single if each.kind in VARINTS),
        tuple(each.number for each in single if each.kind not in VARINTS),
        tuple(each.number for each in message.fields if each.is_repeated),
    )
    found = scan(data, spans.starts, spans.ends, wanted)
    columns = [_field(data, found, each, len(spans.starts)) for each in message.fields]
    return pyarrow.StructArray.from_arrays(columns, fields=list(arrow_type(message))), found.is_broken


def _field(data: Octets, found: Columns, field: Field, count: int) -> Any:
    if field.is_repeated:
        return _repeated(data, found, field, count)
    if field.kind in VARINTS:
        numbers = found.numbers[field.number]
        column = _of_varints(numbers.values, field)
        return column if not field.has_presence else _where(column, numbers.present)
    spans = found.spans[field.number]
    present = numpy.flatnonzero(spans.present)
    column, broken = _of_spans(data, Spans(spans.starts[present], spans.ends[present]), field)
    found.is_broken[present[broken]] = True
    return _spread(column, present, count, field)


def _where(column: Any, present: Flags) -> Any:
    return column if bool(present.all()) else column.take(pyarrow.array(numpy.arange(len(present)), mask=~present))


def _spread(column: Any, rows: Places, count: int, field: Field) -> Any:
    """At these rows; elsewhere null, or what protobuf takes for granted."""
    if len(rows) == count:
        return column
    at = numpy.full(count, len(column), numpy.int64)
    at[rows] = numpy.arange(len(rows))
    absent = None if field.has_presence else _ABSENT.get(field.kind, 0)
    kind = single_type(field)
    return pyarrow.concat_arrays([column, pyarrow.array([absent], kind)]).take(pyarrow.array(at))


_ABSENT = {"STRING": "", "BYTES": b"", "DOUBLE": 0.0, "FLOAT": 0.0}


def _of_varints(values: Words, field: Field) -> Any:
    signed = values.view(numpy.int64)
    match field.kind:
        case "BOOL":
            return pyarrow.array(values != 0)
        case "ENUM":
            return _symbols(signed, field.symbols)
        case "SINT32" | "SINT64":
            signed = ((values >> numpy.uint64(1)) ^ (numpy.uint64(0) - (values & numpy.uint64(1)))).view(numpy.int64)
        case "UINT32":
            signed = signed & 0xFFFFFFFF
    return pyarrow.array(signed.astype(numpy.int32) if field.kind in ("INT32", "SINT32") else signed)


def _symbols(numbers: Places, symbols: Sequence[tuple[int, str]]) -> Any:
    """Names; the number itself, as text, for one that the definition does not have."""
    names = dict(symbols)
    distinct, at = numpy.unique(numbers.astype(numpy.int32), return_inverse=True)
    texts = pyarrow.array([names.get(each, str(each)) for each in distinct.tolist()], pyarrow.string())
    return texts.take(pyarrow.array(at))


def _of_spans(data: Octets, spans: Spans, field: Field) -> tuple[Any, Flags]:
    """Messages, text, bytes, and numbers of four or eight bytes."""
    sound = numpy.zeros(len(spans.starts), numpy.bool_)
    if field.message is not None:
        return decode(data, spans, field.message)
    if field.kind in (*_EIGHT, *_FOUR):
        size = 8 if field.kind in _EIGHT else 4
        broken = spans.ends - spans.starts != size
        return _of_words(words_at(data, numpy.where(broken, 0, spans.starts)), field), broken
    found = binary_of(data, spans)
    return (text_of(found) if field.kind == "STRING" else found), sound


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
    if field.kind in VARINTS or field.kind in (*_EIGHT, *_FOUR):
        these = _unpacked(data, these, field, found.is_broken)
    spans = Spans(these.starts, these.ends)
    if field.kind in VARINTS:
        column, broken = _of_varints(varints_at(data, spans.starts)[0], field), numpy.zeros(len(these.rows), numpy.bool_)
    else:
        column, broken = _of_spans(data, spans, field)
    found.is_broken[these.rows[broken]] = True
    offsets = numpy.zeros(count + 1, numpy.int32)
    numpy.cumsum(numpy.bincount(these.rows, minlength=count), out=offsets[1:])
    if field.message is not None and field.message.is_map_entry:
        return pyarrow.MapArray.from_arrays(pyarrow.array(offsets), column.field(0).fill_null(_no_key(column)), column.field(1))
    kind = pyarrow.list_(pyarrow.field("element", column.type))
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), column, type=kind)


def _no_key(column: Any) -> Any:
    """An entry of a map without a key has the key that protobuf takes for granted; an entry of Arrow's cannot have none."""
    kind = column.field(0).type
    return pyarrow.scalar(
        "" if kind == pyarrow.string() else 0, pyarrow.string() if kind == pyarrow.string() else pyarrow.int64()
    ).cast(kind)


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
        kept, after = active[~is_bad], after[~is_bad]
        parts.append((order[kept], at[kept], after))
        at[kept] = after
        active = kept[after < found.ends[kept]]
    if not parts:
        return Repeated(found.rows[:0], found.starts[:0], found.ends[:0])
    spans, starts, ends = (numpy.concatenate(each) for each in zip(*parts, strict=True))
    by_span = numpy.argsort(spans, kind="stable")
    return Repeated(found.rows[spans[by_span]], starts[by_span], ends[by_span])
