"""Avro's rules: whether a definition is valid, and whether one schema can read data of another. Pure.

Definitions are read by Apache Avro's own library, which is imported with the first schema that needs it: most brokers start
without one. The rules are those of the specification ("Schema Resolution") as Java's ResolvingGrammarGenerator has them, by
which Apache's brokers decide: names of records choose the branch of a union and are not compared otherwise, and symbols of an
enumeration are a matter of each value.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .avro_aliases import Aliases, aliases_of
from .values import SchemaRefused

CanRead: TypeAlias = Callable[[bytes, bytes], str | None]
"""Check of a reader's definition against a writer's: None when it can read the data, otherwise the reason."""
_IGNORED = ("doc", "aliases")
"""Members that Avro's Schema.equals ignores."""
_STEPS_MIN, _BYTES_PER_STEP = 1000, 4
"""Pairs that are compared at most: a fixed number, and one for so many bytes of both definitions. A pair that needs no choice
among records takes more bytes than that; unions of records in which each has to be tried with each are refused beyond it."""
FIELDS_MAX = 4096
"""Fields of one record. Avro's library looks for the name of each among all before it: here that takes a tenth of a second."""
_NAMED = ("record", "enum", "fixed")
_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""Types that a writer's type may be read as."""


def check_avro(data: bytes) -> str:
    """The kind of schema ("record", "union", "string"...). SchemaRefused when it is none, or has a default of another type."""
    schema = _parsed(data)
    _check_defaults(schema, {})
    kind: str = schema.type
    return kind


def can_read(reader: bytes, writer: bytes) -> str | None:
    """None when data of `writer` can be read with `reader`; otherwise the reason. SchemaRefused for an invalid Avro schema."""
    read = _parsed(reader)
    comparison = _Comparison(aliases_of(read), _STEPS_MIN + (len(reader) + len(writer)) // _BYTES_PER_STEP)
    return next(comparison.faults(read, _parsed(writer), ""), None)


def is_same(one: bytes, other: bytes) -> bool:
    """Whether two schemas are equal as in Avro's Schema.equals: documentation, aliases, white space and the order of members
    make no difference."""
    if one == other:
        return True
    try:
        return bool(_plain(json.loads(one)) == _plain(json.loads(other)))
    except ValueError:
        return False


def _parsed(data: bytes) -> Any:
    """Names as Java has them, with $ for inner classes."""
    from avro.errors import AvroException
    from avro.schema import parse

    text = data.decode(errors="replace")
    if text.count('"type"') > FIELDS_MAX:
        _check_fields(text)
    try:
        return parse(data.decode(), validate_names=False, validate_enum_symbols=False)
    except (AvroException, ValueError, RecursionError, TypeError, AttributeError) as error:
        raise SchemaRefused(f"not an Avro schema: {error}") from error


def _check_fields(text: str) -> None:
    """Checks large definitions only; invalid JSON is left to Avro's library, which names the fault."""
    try:
        nodes = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes.extend(node)
        elif isinstance(node, dict):
            fields = node.get("fields")
            if isinstance(fields, list) and len(fields) > FIELDS_MAX:
                raise SchemaRefused(f"record {str(node.get('name'))[:200]} has {len(fields)} fields; it may have {FIELDS_MAX}")
            nodes.extend(node.values())


class _Branches:
    """The branches of a reader's union, by the type of the writer."""

    def __init__(self, union: Any) -> None:
        self.records = [branch for branch in union.schemas if branch.type == "record"]
        self.named = {(branch.type, branch.fullname): branch for branch in reversed(union.schemas) if branch.type in _NAMED}
        self.unnamed = [branch for branch in union.schemas if branch.type not in _NAMED]
        """Unnamed branches: one of each type, by Avro's rules."""


@dataclass(slots=True)
class _Comparison:
    """Comparison of a reader's schema, whose aliases these are, with a writer's. Each pair is compared once."""

    aliases: Aliases
    steps_left: int
    seen: dict[tuple[int, int], None] = field(default_factory=dict)
    """A pair that is being compared already, as in a list that refers to itself, is taken to fit."""
    fits: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Records that were tried as branches of a union."""
    unions: dict[int, _Branches] = field(default_factory=dict)

    def faults(self, reader: Any, writer: Any, where: str) -> Iterator[str]:
        pair = (id(reader), id(writer))
        if pair in self.seen or self.fits.get(pair):
            return
        self._step()
        self.seen[pair] = None
        if writer.type == "union":
            for branch in writer.schemas:
                yield from self.faults(reader, branch, where)
        elif reader.type == "union":
            branch = self._branch(reader, writer, where)
            if branch is None:
                yield f"{where or 'it'} was written as {writer.type}, which is no type of the reader's union"
            else:
                yield from self.faults(branch, writer, where)
        elif reader.type == writer.type:
            yield from self._within(reader, writer, where)
        elif reader.type not in _PROMOTED.get(writer.type, ()):
            yield f"{where or 'it'} was written as {writer.type}, and is read as {reader.type}"

    def _step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise SchemaRefused("the schemas are too intricate to be compared: their unions have too many records to try")

    def _branch(self, reader: Any, writer: Any, where: str) -> Any | None:
        """Returns the branch that ReaderUnion.firstMatchingBranch finds: of the same type and name; a record that fits; a type
        that can be read."""
        branches = self.unions.get(id(reader))
        if branches is None:
            branches = self.unions[id(reader)] = _Branches(reader)
        if writer.type in _NAMED:
            named = branches.named.get((writer.type, self.aliases.name_of(writer)))
            if named is not None or writer.type != "record":
                return named
            return next((branch for branch in branches.records if self._fits(branch, writer, where)), None)
        same = (branch for branch in branches.unnamed if branch.type == writer.type)
        promoted = (branch for branch in branches.unnamed if branch.type in _PROMOTED.get(writer.type, ()))
        return next(same, None) or next(promoted, None)

    def _fits(self, reader: Any, writer: Any, where: str) -> bool:
        """Whether a branch fits. Pairs compared meanwhile are forgotten: the branch may not fit, or be asked about
        elsewhere."""
        pair, known = (id(reader), id(writer)), len(self.seen)
        self._step()
        if pair not in self.fits:
            self.fits[pair] = next(self.faults(reader, writer, where), None) is None
            while len(self.seen) > known:
                self.seen.popitem()
        return self.fits[pair]

    def _within(self, reader: Any, writer: Any, where: str) -> Iterator[str]:
        match reader.type:
            case "record":
                yield from self._of_fields(reader, writer, where)
            case "array":
                yield from self.faults(reader.items, writer.items, f"{where}[]")
            case "map":
                yield from self.faults(reader.values, writer.values, f"{where}{{}}")
            case "enum" | "fixed":
                if self.aliases.name_of(writer) != reader.fullname:
                    yield f"{where or 'it'} was written as {writer.fullname}, and is read as {reader.fullname}"
                elif reader.type == "fixed" and reader.size != writer.size:
                    yield f"{where or 'it'} was written with {writer.size} bytes, and is read with {reader.size}"

    def _of_fields(self, reader: Any, writer: Any, where: str) -> Iterator[str]:
        written = self.aliases.fields_of(writer)
        for each in reader.fields:
            found = written.get(each.name)
            if found is not None:
                yield from self.faults(each.type, found.type, f"{where}.{each.name}")
            elif not each.has_default:
                yield f"{where}.{each.name} is read, has no default, and was not written"


def _check_defaults(schema: Any, seen: dict[int, None]) -> None:
    if id(schema) in seen:
        return
    seen[id(schema)] = None
    match schema.type:
        case "record":
            for each in schema.fields:
                if each.has_default and not _is_default(each.type, each.default):
                    raise SchemaRefused(f"the default of field {each.name} is no {each.type.type}: {each.default!r}")
                _check_defaults(each.type, seen)
        case "array":
            _check_defaults(schema.items, seen)
        case "map":
            _check_defaults(schema.values, seen)
        case "union":
            for branch in schema.schemas:
                _check_defaults(branch, seen)


def _is_default(schema: Any, value: Any) -> bool:
    """Whether a value in JSON may be a default; for the first branch of a union. Composed values are checked by their kind
    alone.
    """
    kind = schema.schemas[0].type if schema.type == "union" else schema.type
    if kind in ("int", "long"):
        return isinstance(value, int) and not isinstance(value, bool)
    if kind in ("float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("string", "bytes", "fixed", "enum"):
        return isinstance(value, str)
    return isinstance(value, {"null": type(None), "boolean": bool, "array": list}.get(kind, dict))


def _plain(node: Any) -> Any:
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _plain(value) for name, value in node.items() if name not in _IGNORED}
    return plain["type"] if list(plain) == ["type"] and isinstance(plain["type"], str) else plain
