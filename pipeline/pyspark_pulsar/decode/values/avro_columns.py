"""Avro's binary form of many records, read into Arrow columns: all of them a field at a time, and never a record by itself.

The writer's schema and the reader's may differ; the rules between them are those of Avro's
specification (schema resolution): fields by name or alias, defaults for those that were not written, numbers that become
wider, text and bytes for each other. A step is a few numpy operations on all records that have got there, so that an array
costs as many steps as the longest one has items.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy
import pyarrow

from ..arrow_columns import binary_of, text_of
from ..octets import Flags, Octets, Places, varints_at, words_at
from ..protobuf_columns import Spans
from .avro_schema import Node, Part, UnusableSchema, arrow_type, is_decimal

_DECIMAL_BYTES = 16


@dataclass(slots=True)
class Cursor:
    """Position of the reader in each record. A broken one stays at its end, where nothing can be read."""

    data: Octets
    at: Places
    ends: Places
    broken: Flags

    @property
    def count(self) -> int:
        return len(self.at)

    def part(self, rows: Places) -> "Cursor":
        return Cursor(self.data, self.at[rows], self.ends[rows], self.broken[rows])

    def take_back(self, rows: Places, part: "Cursor") -> None:
        self.at[rows], self.broken[rows] = part.at, part.broken

    def go_to(self, after: Places, is_bad: Flags) -> None:
        is_bad = is_bad | (after > self.ends)
        self.broken |= is_bad
        self.at = numpy.where(is_bad, self.ends, after)

    def long(self) -> Places:
        """A zigzag varint."""
        values, sizes = varints_at(self.data, self.at)
        self.go_to(self.at + sizes, sizes == 0)
        return ((values >> numpy.uint64(1)) ^ (numpy.uint64(0) - (values & numpy.uint64(1)))).view(numpy.int64)

    def span(self, lengths: Places) -> Spans:
        starts = self.at
        self.go_to(starts + lengths, (lengths < 0) | (lengths > len(self.data)))
        return Spans(numpy.where(self.broken, self.ends, starts), self.at)


def decode(data: Octets, spans: Spans, written: Node, wanted: Node) -> tuple[Any, Flags]:
    """A column of the type `arrow_type(wanted)`, and which records are no such thing: their values mean nothing.

    Spans have to be present. UnusableSchema where `wanted` cannot be read from `written`.
    """
    cursor = Cursor(data, spans.starts.copy(), spans.ends, numpy.zeros(len(spans.starts), numpy.bool_))
    return _value(cursor, written, wanted), cursor.broken


def _value(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    """None where nothing is wanted: then it is passed over."""
    if written.kind == "union":
        return _union(cursor, written, wanted)
    if wanted is not None and wanted.kind == "union":
        return _into_union(cursor, written, wanted)
    if wanted is not None and not _fits(written, wanted):
        raise UnusableSchema(f"{wanted.kind} {wanted.name} cannot be read from {written.kind} {written.name}")
    return _READERS[written.kind](cursor, written, wanted)


def _fits(written: Node, wanted: Node) -> bool:
    if written.kind == wanted.kind:
        return written.size == wanted.size
    return wanted.kind in _PROMOTIONS.get(written.kind, ())


_PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


# ---- Values of one piece


def _null(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    return None if wanted is None else pyarrow.nulls(cursor.count, arrow_type(wanted))


def _boolean(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    found = cursor.data[cursor.at]
    cursor.go_to(cursor.at + 1, found > 1)
    return None if wanted is None else pyarrow.array(found == 1)


def _long(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    found = cursor.long()
    return None if wanted is None else number_column(found, wanted)


def number_column(found: Places, wanted: Node) -> Any:
    """Whole numbers as the type that is wanted of them."""
    kind = arrow_type(wanted)
    if wanted.kind == "int":
        return pyarrow.array(found.astype(numpy.int32)).view(kind)
    if wanted.kind == "long":
        return pyarrow.array(found * 1000 if wanted.logical.endswith("timestamp-millis") else found).view(kind)
    return pyarrow.array(found.astype(numpy.float32 if wanted.kind == "float" else numpy.float64))


def _float(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    found = words_at(cursor.data, cursor.at).astype(numpy.uint32).view(numpy.float32)
    cursor.go_to(cursor.at + 4, numpy.zeros(cursor.count, numpy.bool_))
    return None if wanted is None else pyarrow.array(found).cast(arrow_type(wanted))


def _double(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    found = words_at(cursor.data, cursor.at).view(numpy.float64)
    cursor.go_to(cursor.at + 8, numpy.zeros(cursor.count, numpy.bool_))
    return None if wanted is None else pyarrow.array(found)


def _bytes(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    lengths = cursor.long() if written.kind != "fixed" else numpy.full(cursor.count, written.size, numpy.int64)
    spans = cursor.span(lengths)
    if wanted is None:
        return None
    if is_decimal(wanted):
        return _decimal(cursor, spans, wanted)
    found = binary_of(cursor.data, spans)
    return text_of(found) if wanted.kind == "string" else found


def _decimal(cursor: Cursor, spans: Spans, wanted: Node) -> Any:
    """Two's complement, its highest byte first, of any length; Arrow has sixteen bytes, the lowest first."""
    lengths = spans.ends - spans.starts
    is_bad = (lengths > _DECIMAL_BYTES) | (lengths == 0)
    cursor.broken |= is_bad
    lengths = numpy.where(is_bad, 0, lengths)
    steps = numpy.arange(_DECIMAL_BYTES)
    octets = cursor.data[numpy.maximum(spans.ends[:, None] - 1 - steps, 0)]
    is_negative = (lengths > 0) & (cursor.data[numpy.where(is_bad, 0, spans.starts)] > 127)
    filling = numpy.where(is_negative, 255, 0).astype(numpy.uint8)[:, None]
    room = numpy.where(steps < lengths[:, None], octets, filling).astype(numpy.uint8)
    return pyarrow.Array.from_buffers(arrow_type(wanted), cursor.count, [None, pyarrow.py_buffer(room)])


def _enum(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    found = cursor.long()
    is_bad = (found < 0) | (found >= len(written.symbols))
    cursor.broken |= is_bad
    if wanted is None:
        return None
    at = numpy.where(is_bad, 0, found)
    symbols = [each if each in wanted.symbols else wanted.default for each in written.symbols]
    cursor.broken |= numpy.array([not each for each in symbols])[at]
    return pyarrow.array(symbols, pyarrow.string()).take(pyarrow.array(at))


# ---- Values of several


def _record(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    found = {}
    for part in written.parts:
        target = None if wanted is None else _field_for(part, wanted)
        column = _value(cursor, part.node, None if target is None else target.node)
        if target is not None:
            found[target.name] = column
    if wanted is None:
        return None
    columns = [found[part.name] if part.name in found else default(part, cursor.count) for part in wanted.parts]
    return pyarrow.StructArray.from_arrays(columns, fields=list(arrow_type(wanted)))


def _field_for(part: Part, wanted: Node) -> Part | None:
    named = [each for each in wanted.parts if each.name == part.name]
    aliased = [each for each in wanted.parts if part.name in each.aliases]
    return next(iter(named or aliased), None)


def default(part: Part, count: int) -> Any:
    """UnusableSchema where the field has none."""
    if not part.has_default:
        raise UnusableSchema(f"field {part.name} was not written, and has no default")
    return pyarrow.array([_plain(part.default, part.node)], arrow_type(part.node)).take(
        pyarrow.array(numpy.zeros(count, numpy.int64))
    )


def _plain(value: Any, node: Node) -> Any:
    """A default as JSON has it: bytes are text of one character each, and that of a union is its first branch's."""
    if node.kind == "union":
        if value is None:
            return None
        found = _plain(value, node.branches[0])
        return found if len(node.branches) == 1 else {"member0": found}
    if node.kind in ("bytes", "fixed") and isinstance(value, str):
        octets = value.encode("latin-1")
        return Decimal(f"{int.from_bytes(octets, signed=True)}E-{node.scale}") if is_decimal(node) else octets
    if node.kind == "long" and node.logical.endswith("timestamp-millis"):
        return value * 1000
    if node.kind == "record":
        return {part.name: _plain(value.get(part.name, part.default), part.node) for part in node.parts}
    if node.kind == "array":
        return [_plain(each, node.parts[0].node) for each in value]
    if node.kind == "map":
        return [(key, _plain(each, node.parts[0].node)) for key, each in value.items()]
    return value


def _array(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    target = None if wanted is None else wanted.parts[0].node
    rows, found = _items(cursor, lambda part: (_value(part, written.parts[0].node, target),))
    if wanted is None:
        return None
    offsets = _offsets(rows, cursor.count)
    values = found[0] if found else pyarrow.nulls(0, arrow_type(wanted).value_type)
    return pyarrow.ListArray.from_arrays(offsets, values, type=arrow_type(wanted))


def _map(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    target = None if wanted is None else wanted.parts[0].node
    rows, found = _items(cursor, lambda part: (_bytes(part, _TEXT, _TEXT), _value(part, written.parts[0].node, target)))
    if wanted is None:
        return None
    kind = arrow_type(wanted)
    keys, values = found or (pyarrow.nulls(0, kind.key_type), pyarrow.nulls(0, kind.item_type))
    return pyarrow.MapArray.from_arrays(_offsets(rows, cursor.count), keys, values, type=kind)


_TEXT = Node("string")


def _offsets(rows: Places, count: int) -> Any:
    offsets = numpy.zeros(count + 1, numpy.int32)
    numpy.cumsum(numpy.bincount(rows, minlength=count), out=offsets[1:])
    return pyarrow.array(offsets)


def _items(cursor: Cursor, one: Callable[[Cursor], tuple[Any, ...]]) -> tuple[Places, list[Any]]:
    """The items of all, in order of their records, with the record of each. Blocks of a negative count say their size too."""
    left = numpy.zeros(cursor.count, numpy.int64)
    active = numpy.arange(cursor.count)
    rows, found = [], []
    while len(active):
        active = _next_blocks(cursor, active, left)
        if not len(active):
            break
        part = cursor.part(active)
        found.append(one(part))
        cursor.take_back(active, part)
        rows.append(active)
        left[active] -= 1
    if not rows:
        return numpy.zeros(0, numpy.int64), []
    every = numpy.concatenate(rows)
    order = numpy.argsort(every, kind="stable")
    columns = zip(*found, strict=True)
    return every[order], [
        None if each[0] is None else pyarrow.concat_arrays(each).take(pyarrow.array(order)) for each in columns
    ]


def _next_blocks(cursor: Cursor, active: Places, left: Places) -> Places:
    """Indexes of the records that have another item."""
    begins = active[left[active] == 0]
    if len(begins):
        part = cursor.part(begins)
        counts = part.long()
        sized = numpy.flatnonzero(counts < 0)
        sizes = part.part(sized)
        sizes.long()
        part.take_back(sized, sizes)
        counts = numpy.abs(counts)
        # an item has a byte at least: a count that says more is damage, and not to be believed
        part.broken |= (counts > part.ends - part.at) | (counts < 0)
        cursor.take_back(begins, part)
        left[begins] = numpy.where(part.broken, 0, counts)
    return active[(left[active] > 0) & ~cursor.broken[active]]


# ---- Unions


def _union(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    """Each branch by itself, of the records that have it; then all in their order again.

    A null where none is wanted is told of the records that have it: others of the same definition can be read.
    """
    chosen = cursor.long()
    is_bad = (chosen < 0) | (chosen >= len(written.parts))
    cursor.go_to(cursor.at, is_bad)
    chosen = numpy.where(cursor.broken, 0, chosen)
    present = numpy.unique(chosen).tolist()
    if len(present) == 1:
        return _branch(cursor, written.parts[present[0]].node, wanted)
    rows, columns = [], []
    for branch in present:
        these = numpy.flatnonzero(chosen == branch)
        part = cursor.part(these)
        columns.append(_branch(part, written.parts[branch].node, wanted))
        cursor.take_back(these, part)
        rows.append(these)
    if wanted is None:
        return None
    if not present:
        return pyarrow.nulls(0, arrow_type(wanted))
    return pyarrow.concat_arrays(columns).take(pyarrow.array(numpy.argsort(numpy.concatenate(rows), kind="stable")))


def _branch(cursor: Cursor, written: Node, wanted: Node | None) -> Any:
    if written.kind == "null" and wanted is not None and wanted.kind not in ("null", "union"):
        cursor.go_to(cursor.at, numpy.ones(cursor.count, numpy.bool_))
        return pyarrow.nulls(cursor.count, arrow_type(wanted))
    return _value(cursor, written, wanted)


def _into_union(cursor: Cursor, written: Node, wanted: Node) -> Any:
    kind = arrow_type(wanted)
    if written.kind == "null":
        return pyarrow.nulls(cursor.count, kind)
    same = [index for index, each in enumerate(wanted.branches) if (each.kind, each.name) == (written.kind, written.name)]
    same += [index for index, each in enumerate(wanted.branches) if _is_called_alike(each, written)]
    wider = [index for index, each in enumerate(wanted.branches) if _fits(written, each)]
    if not wider:
        raise UnusableSchema(f"{written.kind} {written.name} is none of a union of {[each.kind for each in wanted.branches]}")
    index = (same or wider)[0]
    column = _value(cursor, written, wanted.branches[index])
    if len(wanted.branches) == 1:
        return column
    members = [column if at == index else pyarrow.nulls(cursor.count, each.type) for at, each in enumerate(kind)]
    return pyarrow.StructArray.from_arrays(members, fields=list(kind))


def _is_called_alike(one: Node, other: Node) -> bool:
    """But for their namespaces."""
    return one.kind == other.kind and one.name.rpartition(".")[2] == other.name.rpartition(".")[2]


_READERS: dict[str, Callable[[Cursor, Node, Node | None], Any]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _bytes,
    "fixed": _bytes,
    "enum": _enum,
    "record": _record,
    "array": _array,
    "map": _map,
}
