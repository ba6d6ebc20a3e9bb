"""Choice among values of a field that stands in a message more than once, or of a `oneof`, by protobuf's rules. Pure.

The last number or text counts; messages are merged, as if the bytes of one stood behind those of the other; of a
`oneof` what comes last takes away what came before; a number that a closed enumeration does not have is not there.
"""

from collections.abc import Sequence
from typing import Any

import numpy
import pyarrow

from ..message_shapes import VARINT
from ..octets import Flags, Octets, Places, padded, varints_at
from ..protobuf_columns import Columns, Fields, Repeated, Spans, scan
from .protobuf_schema import Field, Message


def kept(found: Repeated, which: Flags) -> Repeated:
    return found if bool(which.all()) else Repeated(found.rows[which], found.starts[which], found.ends[which])


def last_of(found: Repeated, count: int) -> Spans:
    """Last value of each of `count` messages."""
    spans = Spans(numpy.full(count, -1, numpy.int64), numpy.full(count, -1, numpy.int64))
    if len(found.rows):
        is_last = numpy.append(found.rows[1:] != found.rows[:-1], True)
        spans.starts[found.rows[is_last]] = found.starts[is_last]
        spans.ends[found.rows[is_last]] = found.ends[is_last]
    return spans


def of_known(data: Octets, found: Repeated, field: Field) -> Repeated:
    """Without the numbers that its enumeration does not have."""
    numbers = varints_at(data, found.starts)[0].view(numpy.int64).astype(numpy.int32)
    return kept(found, numpy.isin(numbers, [number for number, _ in field.symbols]))


def settle(found: Columns, message: Message, count: int) -> list[tuple[Field, Repeated]]:
    """Leaves of each `oneof` what came last, and tells the messages and texts that it took away.

    Its members are in `spans` or `repeated`.
    """
    choices: dict[int, list[Field]] = {}
    for each in message.fields:
        if each.choice >= 0:
            choices.setdefault(each.choice, []).append(each)
    return [each for members in choices.values() for each in _settle(found, members, count)]


def _settle(found: Columns, members: Sequence[Field], count: int) -> list[tuple[Field, Repeated]]:
    last = {each.number: _lasts(found, each, count) for each in members}
    if not bool((numpy.sum([each >= 0 for each in last.values()], axis=0) > 1).any()):
        return []
    gone = []
    for each in members:
        others = numpy.maximum.reduce([places for number, places in last.items() if number != each.number])
        if each.number in found.repeated:
            these = found.repeated[each.number]
            counts = these.starts > others[these.rows]
            found.repeated[each.number] = kept(these, counts)
            if (each.message is not None or each.is_checked) and not bool(counts.all()):
                gone.append((each, kept(these, ~counts)))
        else:
            spans, is_over = found.spans[each.number], others > last[each.number]
            spans.starts[is_over] = spans.ends[is_over] = -1
    return gone


def _lasts(found: Columns, field: Field, count: int) -> Places:
    if field.number in found.repeated:
        return last_of(found.repeated[field.number], count).starts
    return found.spans[field.number].starts.copy()


def joined(data: Octets, found: Repeated, count: int) -> tuple[Octets, Spans]:
    """The messages of a field that is not repeated, each in one piece."""
    rows = found.rows
    is_last = numpy.append(rows[1:] != rows[:-1], True) if len(rows) else numpy.zeros(0, numpy.bool_)
    if bool(is_last.all()):
        return data, last_of(found, count)
    pieces = [data[start:end].tobytes() for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True)]
    bounds = numpy.concatenate([[0], numpy.cumsum([len(each) for each in pieces])]).astype(numpy.int64)
    spans = Spans(numpy.full(count, -1, numpy.int64), numpy.full(count, -1, numpy.int64))
    lasts = numpy.flatnonzero(is_last)
    firsts = numpy.concatenate([[0], lasts[:-1] + 1])
    spans.starts[rows[lasts]], spans.ends[rows[lasts]] = bounds[firsts], bounds[lasts + 1]
    return padded(b"".join(pieces)), spans


def pairs(data: Octets, found: Repeated, column: Any, field: Field) -> tuple[Repeated, Any]:
    """Without those of a value that a closed enumeration does not have, and of a key in a message the last one."""
    assert field.message is not None
    _, value = field.message.fields
    counts = numpy.ones(len(column), numpy.bool_)
    if value.is_closed:
        wanted = Fields(repeated=(value.number,), kinds={value.number: (VARINT,)})
        written = scan(data, found.starts, found.ends, wanted).repeated[value.number]
        known = last_of(of_known(data, written, value), len(column)).present
        counts &= known | ~last_of(written, len(column)).present
    keys = column.field(0).dictionary_encode()
    both = found.rows * max(1, len(keys.dictionary)) + numpy.asarray(keys.indices)
    both[~counts] = -1
    _, last = numpy.unique(both[::-1], return_index=True)
    if len(last) < len(both) or not bool(counts.all()):
        is_last = numpy.zeros(len(both), numpy.bool_)
        is_last[len(both) - 1 - last] = True
        counts &= is_last
        return kept(found, counts), column.filter(pyarrow.array(counts))
    return found, column
