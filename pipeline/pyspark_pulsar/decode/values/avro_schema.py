"""Definitions of Avro, as nodes and as Arrow types. Pure.

A record that contains itself has no Arrow type and is refused. A union with null is what may be null; one of several others is
a struct of `member0`, `member1`, ..., of which one is there, as Spark's own reader of Avro has it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
TIME = pyarrow.timestamp("us", tz="UTC")
LOCAL_TIME = pyarrow.timestamp("us")
_DECIMAL_DIGITS_MAX = 38
_DEPTH_MAX = 64


class UnusableSchema(Exception):
    """No definition, or one that cannot become columns; the text says why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A type. `parts`: fields of a record, branches of a union, the items of an array, the values of a map.

    `name` has the namespace; `default` is the symbol that stands for those which an enumeration does not have, "" for none.
    """

    kind: str
    name: str = ""
    parts: tuple["Part", ...] = ()
    symbols: tuple[str, ...] = ()
    default: str = ""
    size: int = 0
    logical: str = ""
    precision: int = 0
    scale: int = 0

    @property
    def branches(self) -> tuple["Node", ...]:
        """Branches of a union, without null."""
        return tuple(part.node for part in self.parts if part.node.kind != "null")


@dataclass(frozen=True, slots=True)
class Part:
    """A field, with the names that it had before; `default` is JSON's, and counts where `has_default`."""

    name: str
    node: Node
    aliases: tuple[str, ...] = ()
    default: Any = None
    has_default: bool = False


def parse(definition: bytes | str) -> Node:
    """UnusableSchema."""
    try:
        found = json.loads(definition)
    except ValueError as error:
        raise UnusableSchema(f"the definition is no JSON: {error}") from None
    try:
        return _node(found, _Names({}, ""), 0)
    except (KeyError, TypeError, AttributeError) as error:
        raise UnusableSchema(f"the definition is none of Avro: {error!r}") from None


@dataclass(frozen=True, slots=True)
class _Names:
    """Types by their whole names (None while they are being defined), and the namespace of names that have none."""

    defined: dict[str, Node | None]
    namespace: str

    def whole(self, name: str) -> str:
        return f"{self.namespace}.{name}" if self.namespace and "." not in name else name

    def of(self, found: Mapping[str, Any]) -> tuple[str, "_Names"]:
        """The name of a definition, and the names within it."""
        given = str(found["name"])
        namespace, _, short = given.rpartition(".")
        namespace = namespace or str(found.get("namespace") or self.namespace)
        return (f"{namespace}.{short}" if namespace else short), _Names(self.defined, namespace)


def _node(found: Any, named: _Names, depth: int) -> Node:
    if depth > _DEPTH_MAX:
        raise UnusableSchema(f"its types are nested more than {_DEPTH_MAX} deep")
    if isinstance(found, str):
        if found in PRIMITIVES:
            return Node(found)
        return _known(found, named)
    if isinstance(found, list):
        return Node("union", parts=tuple(Part("", _node(each, named, depth + 1)) for each in found))
    kind = found["type"]
    if not isinstance(kind, str):
        return _node(kind, named, depth + 1)
    return _complex(kind, found, named, depth)


def _known(name: str, named: _Names) -> Node:
    """A name without a namespace may be one that has none, too."""
    whole = next((each for each in (named.whole(name), name) if each in named.defined), None)
    if whole is None:
        raise UnusableSchema(f"type {name} is not defined")
    node = named.defined[whole]
    if node is None:
        raise UnusableSchema(f"type {name} contains itself, which no column can")
    return node


def _complex(kind: str, found: Mapping[str, Any], named: _Names, depth: int) -> Node:
    match kind:
        case "array":
            return Node("array", parts=(Part("element", _node(found["items"], named, depth + 1)),))
        case "map":
            return Node("map", parts=(Part("value", _node(found["values"], named, depth + 1)),))
        case "record" | "error" | "enum" | "fixed":
            name, within = named.of(found)
            named.defined[name] = None
            node = named.defined[name] = _named(kind, name, found, within, depth)
            return node
        case _ if kind in PRIMITIVES:
            return Node(kind, **_logical(found))
    return _known(kind, named)


def _named(kind: str, name: str, found: Mapping[str, Any], within: _Names, depth: int) -> Node:
    match kind:
        case "enum":
            return Node("enum", name, symbols=tuple(found["symbols"]), default=str(found.get("default") or ""))
        case "fixed":
            return Node("fixed", name, size=int(found["size"]), **_logical(found))
    return Node("record", name, tuple(_field(each, within, depth) for each in found["fields"]))


def _logical(found: Mapping[str, Any]) -> dict[str, Any]:
    logical = str(found.get("logicalType", ""))
    return {"logical": logical, "precision": int(found.get("precision", 0)), "scale": int(found.get("scale", 0))}


def _field(found: Mapping[str, Any], named: _Names, depth: int) -> Part:
    node = _node(found["type"], named, depth + 1)
    return Part(found["name"], node, tuple(found.get("aliases", ())), found.get("default"), "default" in found)


_TYPES = {
    "null": pyarrow.null(),
    "boolean": pyarrow.bool_(),
    "int": pyarrow.int32(),
    "long": pyarrow.int64(),
    "float": pyarrow.float32(),
    "double": pyarrow.float64(),
    "bytes": pyarrow.binary(),
    "string": pyarrow.string(),
    "enum": pyarrow.string(),
    "fixed": pyarrow.binary(),
}
_LOGICAL_TYPES = {
    ("int", "date"): pyarrow.date32(),
    ("long", "timestamp-millis"): TIME,
    ("long", "timestamp-micros"): TIME,
    ("long", "local-timestamp-millis"): LOCAL_TIME,
    ("long", "local-timestamp-micros"): LOCAL_TIME,
}


def is_decimal(node: Node) -> bool:
    """One that Arrow's and Spark's decimals hold."""
    return node.kind in ("bytes", "fixed") and node.logical == "decimal" and 0 < node.precision <= _DECIMAL_DIGITS_MAX


def arrow_type(node: Node) -> Any:
    """The type of a column of such values, in the form in which Spark writes types for Arrow."""
    match node.kind:
        case "record":
            if not node.parts:
                raise UnusableSchema(f"record {node.name} has no fields, and a column of nothing cannot be")
            return pyarrow.struct([(part.name, arrow_type(part.node)) for part in node.parts])
        case "array":
            return pyarrow.list_(pyarrow.field("element", arrow_type(node.parts[0].node)))
        case "map":
            return pyarrow.map_(pyarrow.string(), arrow_type(node.parts[0].node))
        case "union":
            types = [arrow_type(each) for each in node.branches]
            return types[0] if len(types) == 1 else _members(types)
        case _ if is_decimal(node):
            return pyarrow.decimal128(node.precision, node.scale)
        case _:
            return _LOGICAL_TYPES.get((node.kind, node.logical), _TYPES[node.kind])


def _members(types: list[Any]) -> Any:
    if not types:
        return pyarrow.null()
    return pyarrow.struct([(f"member{index}", each) for index, each in enumerate(types)])
