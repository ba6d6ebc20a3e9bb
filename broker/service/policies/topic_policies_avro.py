"""Avro's binary form, as far as events of topic policies need it: records as dicts, nothing for a null. Pure.

(Avro specification 1.11, "Binary Encoding".) Knows no policy; `topic_policies_schema` has the layout.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from wire.record import record

_LONG_BYTES_MAX = 10
_ITEMS_MAX = 100_000


class BadAvro(Exception):
    """Bytes that do not hold a value of the type, or a value that the type does not have."""


@record(frozen=True, slots=True)
class Record:
    """Fields in the order of the layout."""

    fields: Mapping[str, "AvroType"]


@record(frozen=True, slots=True)
class Enum:
    """Avro enum; a value is one of its symbols, as a str."""

    symbols: tuple[str, ...]


@record(frozen=True, slots=True)
class Array:
    """A list."""

    items: "AvroType"


@record(frozen=True, slots=True)
class Map:
    """A dict whose keys are str."""

    values: "AvroType"


@record(frozen=True, slots=True)
class Nullable:
    """The union of null and the type, null first."""

    type: "AvroType"


AvroType: TypeAlias = "str | Record | Enum | Array | Map | Nullable"
"""A str is "boolean", "int", "long", "double" or "string"."""


def encode(type_: AvroType, value: Any) -> bytes:
    """BadAvro names the field that does not fit."""
    out = bytearray()
    _write(type_, value, out, "the value")
    return bytes(out)


def decode(type_: AvroType, data: bytes | memoryview) -> Any:
    """BadAvro also when bytes are left over: they were written by another layout."""
    reader = _Reader(bytes(data))
    value = _read(type_, reader)
    if reader.at != len(reader.data):
        raise BadAvro(f"{len(reader.data) - reader.at} bytes are left over")
    return value


def _write(type_: AvroType, value: Any, out: bytearray, where: str) -> None:
    match type_:
        case Nullable(inner):
            out += b"\0" if value is None else b"\2"
            if value is not None:
                _write(inner, value, out, where)
        case Record(fields):
            _check(isinstance(value, Mapping), where, "an object")
            for name, field in fields.items():
                _write(field, value.get(name), out, name)
        case Enum(symbols):
            _check(value in symbols, where, f"one of {', '.join(symbols)}")
            _write_long(symbols.index(value), out)
        case Array(items):
            _check(isinstance(value, list | tuple), where, "a list")
            _write_block(value, out, lambda each: _write(items, each, out, where))
        case Map(values):
            _check(isinstance(value, Mapping), where, "an object")
            _write_block(list(value.items()), out, lambda pair: _write_pair(values, pair, out))
        case _:
            _WRITERS[type_](value, out, where)


def _write_block(items: Any, out: bytearray, write: Callable[[Any], None]) -> None:
    if items:
        _write_long(len(items), out)
        for each in items:
            write(each)
    out.append(0)


def _write_pair(values: AvroType, pair: tuple[str, Any], out: bytearray) -> None:
    _write_string(pair[0], out, "a key")
    _write(values, pair[1], out, pair[0])


def _write_long(value: int, out: bytearray) -> None:
    rest = value << 1 ^ value >> 63
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def _whole(bits: int) -> Callable[[Any, bytearray, str], None]:
    def write(value: Any, out: bytearray, where: str) -> None:
        fits = isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1
        _check(fits, where, f"a whole number of {bits} bits")
        _write_long(value, out)

    return write


def _write_boolean(value: Any, out: bytearray, where: str) -> None:
    _check(isinstance(value, bool), where, "true or false")
    out.append(value)


def _write_double(value: Any, out: bytearray, where: str) -> None:
    _check(isinstance(value, int | float) and not isinstance(value, bool), where, "a number")
    out += struct.pack("<d", value)


def _write_string(value: Any, out: bytearray, where: str) -> None:
    _check(isinstance(value, str), where, "a string")
    encoded = value.encode()
    _write_long(len(encoded), out)
    out += encoded


_WRITERS: Mapping[str, Callable[[Any, bytearray, str], None]] = {
    "boolean": _write_boolean,
    "int": _whole(32),
    "long": _whole(64),
    "double": _write_double,
    "string": _write_string,
}


def _check(fits: bool, where: str, expected: str) -> None:
    if not fits:
        raise BadAvro(f"{where}: expected {expected}")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise BadAvro(f"{count} bytes at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def long(self) -> int:
        value = 0
        for shift in range(0, 7 * _LONG_BYTES_MAX, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)
        raise BadAvro(f"a number of more than {_LONG_BYTES_MAX} bytes")


def _read(type_: AvroType, reader: _Reader) -> Any:
    match type_:
        case Nullable(inner):
            return _read(inner, reader) if _index(reader, 2) else None
        case Record(fields):
            found = {name: _read(field, reader) for name, field in fields.items()}
            return {name: value for name, value in found.items() if value is not None}
        case Enum(symbols):
            return symbols[_index(reader, len(symbols))]
        case Array(items):
            return _read_blocks(reader, lambda: _read(items, reader))
        case Map(values):
            return dict(_read_blocks(reader, lambda: (_READERS["string"](reader), _read(values, reader))))
        case _:
            return _READERS[type_](reader)


def _read_blocks(reader: _Reader, read: Callable[[], Any]) -> list[Any]:
    found: list[Any] = []
    while count := reader.long():
        if count < 0:  # then the size of the block comes, too
            count = -count
            reader.long()
        if len(found) + count > _ITEMS_MAX:
            raise BadAvro(f"more than {_ITEMS_MAX} items")
        found += [read() for _ in range(count)]
    return found


def _index(reader: _Reader, count: int) -> int:
    found = reader.long()
    if not 0 <= found < count:
        raise BadAvro(f"choice {found} of {count}")
    return found


def _read_double(reader: _Reader) -> float:
    return float(struct.unpack("<d", reader.take(8))[0])


def _read_string(reader: _Reader) -> str:
    try:
        return reader.take(reader.long()).decode()
    except UnicodeDecodeError as error:
        raise BadAvro(str(error)) from error


_READERS: Mapping[str, Callable[[_Reader], Any]] = {
    "boolean": lambda reader: reader.take(1) != b"\0",
    "int": _Reader.long,
    "long": _Reader.long,
    "double": _read_double,
    "string": _read_string,
}
