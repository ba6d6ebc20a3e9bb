"""Random definitions of protobuf and random bytes of them, read by us and by Google's own library: the differences.

The writer's definition is like the reader's, and not the same: fields are new, of other types, packed or not, any number
instead of an enumeration's; messages stand behind each other, are cut off or changed. `python -m
tests.pipeline.decode.random_protobuf 1000 7`: a thousand definitions from seed 7 on.
"""

import base64
import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from pipeline.pyspark_pulsar.decode.message_shapes import VARINT, shape_of
from pipeline.pyspark_pulsar.decode.octets import padded
from pipeline.pyspark_pulsar.decode.protobuf_columns import Spans
from pipeline.pyspark_pulsar.decode.values.typed import Schema, column, type_of

_F = FieldDescriptorProto
_SCALARS = (
    *(_F.TYPE_DOUBLE, _F.TYPE_FLOAT, _F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_INT32, _F.TYPE_FIXED64, _F.TYPE_FIXED32),
    *(_F.TYPE_BOOL, _F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_UINT32, _F.TYPE_SFIXED32, _F.TYPE_SFIXED64, _F.TYPE_SINT32),
    *(_F.TYPE_SINT64, _F.TYPE_ENUM),
)
_KEYS = tuple(each for each in _SCALARS if each not in (_F.TYPE_DOUBLE, _F.TYPE_FLOAT, _F.TYPE_BYTES, _F.TYPE_ENUM))
_UNPACKABLE = (_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE)
_NUMBERS = (*range(1, 20), 100, 2047, 2048, 18_999, 20_000, (1 << 29) - 1)
_DEPTH_MAX = 3
_INTEGERS = (
    0,
    1,
    -1,
    127,
    128,
    1 << 31,
    -(1 << 31),
    (1 << 31) - 1,
    (1 << 32) - 1,
    1 << 32,
    (1 << 63) - 1,
    -(1 << 63),
    (1 << 64) - 1,
)
_TEXTS = ("", "a", "grüße", "\0", "\U0001f600", "x" * 200)
_FLOATS = (0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308)


# ---- Definitions


def definition(chance: random.Random) -> FileDescriptorProto:
    """A file with a message `p.M` and those in it."""
    file = FileDescriptorProto(name="m.proto", package="p", syntax=chance.choice(["proto2", "proto3"]))
    enum = file.enum_type.add(name="E")
    enum.options.allow_alias = True
    for number, name in ((0, "ZERO"), (1, "ONE"), (1, "UNO"), (-5, "LOW"), (70_000, "HIGH")):
        enum.value.add(name=name, number=number)
    file.message_type.append(_message(chance, "M", ".p.M", file.syntax == "proto3", 0))
    return file


def _message(chance: random.Random, name: str, path: str, is_proto3: bool, depth: int) -> DescriptorProto:
    found = DescriptorProto(name=name)
    for at, number in enumerate(chance.sample(_NUMBERS, chance.randint(1, 7))):
        _field(chance, found, f"f{at}", number, path, is_proto3, depth)
    _choices(chance, found)
    if is_proto3:
        _optional(chance, found)
    return found


def _field(
    chance: random.Random, owner: DescriptorProto, name: str, number: int, path: str, is_proto3: bool, depth: int
) -> None:
    made = owner.field.add(name=name, number=number, label=chance.choice([_F.LABEL_OPTIONAL, _F.LABEL_REPEATED]))
    made.type = chance.choice([*_SCALARS, *[_F.TYPE_MESSAGE] * (6 if depth < _DEPTH_MAX else 0)])
    if made.type == _F.TYPE_ENUM:
        made.type_name = ".p.E"
    if made.type == _F.TYPE_MESSAGE:
        inner = f"{name.upper()}Entry" if made.label == _F.LABEL_REPEATED and chance.random() < 0.5 else f"N{name}"
        made.type_name = f"{path}.{inner}"
        if inner.endswith("Entry"):
            owner.nested_type.append(_entry(chance, inner, made.type_name, is_proto3, depth))
            made.name, owner.nested_type[-1].name = name, f"{name.capitalize()}Entry"
            made.type_name = f"{path}.{owner.nested_type[-1].name}"
        else:
            owner.nested_type.append(_message(chance, inner, made.type_name, is_proto3, depth + 1))
    if made.label == _F.LABEL_REPEATED and made.type not in _UNPACKABLE and chance.random() < 0.5:
        made.options.packed = chance.random() < 0.5


def _entry(chance: random.Random, name: str, path: str, is_proto3: bool, depth: int) -> DescriptorProto:
    """Entry of a map; its values may be messages, which the entry alone may contain."""
    found = DescriptorProto(name=name)
    found.options.map_entry = True
    found.field.add(name="key", number=1, label=_F.LABEL_OPTIONAL, type=chance.choice(_KEYS))
    value = found.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL, type=chance.choice(_SCALARS))
    if value.type == _F.TYPE_ENUM:
        value.type_name = ".p.E"
    return found


def _choices(chance: random.Random, found: DescriptorProto) -> None:
    """Neighbours that are not repeated become a `oneof`."""
    able = [each for each in found.field if each.label == _F.LABEL_OPTIONAL]
    if len(able) >= 2 and chance.random() < 0.6:
        found.oneof_decl.add(name="choice")
        for each in able[: chance.randint(2, len(able))]:
            each.oneof_index = 0


def _optional(chance: random.Random, found: DescriptorProto) -> None:
    for each in found.field:
        if each.label == _F.LABEL_OPTIONAL and not each.HasField("oneof_index") and chance.random() < 0.3:
            each.proto3_optional = True
            each.oneof_index = len(found.oneof_decl)
            found.oneof_decl.add(name=f"_{each.name}")


def written(chance: random.Random, wanted: FileDescriptorProto) -> FileDescriptorProto:
    """The writer's definition of the same messages, randomly changed."""
    found = FileDescriptorProto()
    found.CopyFrom(wanted)
    _changed(chance, found.message_type[0])
    return found


def _changed(chance: random.Random, found: DescriptorProto) -> None:
    for inner in found.nested_type:
        if not inner.options.map_entry:
            _changed(chance, inner)
    for each in found.field:
        if each.type == _F.TYPE_ENUM and chance.random() < 0.5:  # any number
            each.type = _F.TYPE_INT32
            each.ClearField("type_name")
        elif each.type not in (_F.TYPE_MESSAGE, _F.TYPE_ENUM) and chance.random() < 0.07:
            each.type = chance.choice([kind for kind in _SCALARS if kind != _F.TYPE_ENUM])
            each.ClearField("options")
        is_map = any(inner.options.map_entry and each.type_name.endswith(f".{inner.name}") for inner in found.nested_type)
        if each.label == _F.LABEL_REPEATED and each.type not in _UNPACKABLE:
            each.options.packed = chance.random() < 0.5
        if each.label == _F.LABEL_OPTIONAL and not each.HasField("oneof_index") and chance.random() < 0.1 and not is_map:
            each.label = _F.LABEL_REPEATED
    free = [number for number in _NUMBERS if number not in {each.number for each in found.field}]
    found.field.add(name="unknown", number=chance.choice(free), label=_F.LABEL_OPTIONAL, type=_F.TYPE_STRING)


# ---- Messages


def filled(chance: random.Random, message: Any) -> Any:
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.25:
            continue
        if _is_map(field):
            keys, values = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            for _ in range(chance.randint(0, 3)):
                getattr(message, field.name)[_value(chance, keys)] = _value(chance, values)
        elif field.message_type is not None:
            inner = getattr(message, field.name)
            for each in [inner.add() for _ in range(chance.randint(0, 3))] if field.is_repeated else [inner]:
                filled(chance, each).SetInParent()
        elif field.is_repeated:
            getattr(message, field.name).extend(_value(chance, field) for _ in range(chance.randint(0, 4)))
        else:
            setattr(message, field.name, _value(chance, field))
    return message


def _value(chance: random.Random, field: FieldDescriptor) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.CPPTYPE_STRING:
            text = chance.choice([*_TEXTS, chance.randbytes(5).hex()])
            return text if field.type == _F.TYPE_STRING else text.encode() + b"\xff" * chance.randint(0, 1)
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return chance.choice([*_FLOATS, chance.uniform(-1e9, 1e9)])
        case FieldDescriptor.CPPTYPE_FLOAT:
            return float(numpy.float32(chance.choice([*_FLOATS[:7], chance.uniform(-1e9, 1e9)])))
        case FieldDescriptor.CPPTYPE_ENUM:
            return chance.choice(_there(field.enum_type).values).number
    is_wide = field.cpp_type in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)
    bits = 64 if is_wide else 32
    number = chance.choice([*_INTEGERS, chance.getrandbits(64), chance.getrandbits(7)]) & ((1 << bits) - 1)
    is_signed = field.cpp_type in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_INT32)
    return number - (1 << bits) if is_signed and number >> bits - 1 else number


def payloads(chance: random.Random, kinds: tuple[Any, Any], count: int) -> list[bytes]:
    """Most of them whole."""
    found = []
    for _ in range(count):
        parts = [
            filled(chance, chance.choice(kinds)()).SerializePartialToString() for _ in range(chance.choice([1, 1, 1, 2, 3]))
        ]
        text = bytearray(b"".join(parts))
        if chance.random() < 0.1:
            text += _group(chance)
        if text and chance.random() < 0.1:
            text[chance.randrange(len(text))] = chance.getrandbits(8)
        if chance.random() < 0.05:
            del text[chance.randint(0, len(text)) :]
        found.append(bytes(text))
    return found


def _group(chance: random.Random) -> bytes:
    """Group of an unknown field; at times with another in it, or without its end."""
    inner = b"\xab\x1f\xac\x1f" if chance.random() < 0.3 else b""
    return b"\xa3\x1f" + b"\x08\x05" + inner + (b"\xa4\x1f" if chance.random() < 0.8 else b"")


# ---- What is not alike


def _there(found: Any) -> Any:
    assert found is not None
    return found


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


class _Unsaid(Exception):
    """Google's library for Python does not say what this is: a map with a key that is no text (UnicodeDecodeError is its own),
    or one with an entry that has more than key and value, which it takes for unknown, and Java does not."""


def expected(message: Any) -> dict[str, Any]:
    """Values of a column, by what Google's library says of the message."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            kinds = [field.message_type.fields_by_name[name] for name in ("key", "value")]
            if any(each.field_number == field.number and _has_more(each.data) for each in UnknownFieldSet(message)):  # type: ignore[attr-defined]
                raise _Unsaid
            pairs = [(plain(kinds[0], key), plain(kinds[1], value[key])) for key in value]
            found[field.name] = sorted(pairs, key=lambda each: repr(each[0]))
        elif field.is_repeated:
            found[field.name] = [plain(field, each) for each in value]
        else:
            is_there = not field.has_presence or message.HasField(field.name)
            found[field.name] = plain(field, value) if is_there else None
    return found


def _has_more(entry: Any) -> bool:
    """Whether a map's entry has more than key and value; a number that its enumeration does not have is a value."""
    found = shape_of(entry) if isinstance(entry, bytes) else None
    return found is None or any(
        each.number not in (1, 2) or (each.kind != VARINT and each.number == 2) for each in found.fields
    )


def plain(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return expected(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes) and field.type == _F.TYPE_STRING:  # proto2's, where it is no text
        return value.decode(errors="replace")
    return value - (1 << 64) if type(value) is int and value >= 1 << 63 else value


def seen(value: Any, descriptor: Descriptor) -> dict[str, Any]:
    """Values of a column, in the form of `expected`."""
    found = {}
    for field in descriptor.fields:
        each = value[field.name]
        if _is_map(field):
            kinds = _there(field.message_type).fields_by_name["value"]
            pairs = [(repr(key) if isinstance(key, float) else key, _seen(kinds, item)) for key, item in each]
            each = sorted(pairs, key=lambda pair: repr(pair[0]))
        elif field.is_repeated:
            each = [_seen(field, item) for item in each]
        else:
            each = _seen(field, each)
        found[field.name] = each
    return found


def _seen(field: FieldDescriptor, value: Any) -> Any:
    if value is None:
        return None
    if field.message_type is not None:
        return seen(value, field.message_type)
    return repr(value) if isinstance(value, float) else value


def native(file: FileDescriptorProto) -> Schema:
    text = base64.b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode()
    return Schema("PROTOBUF_NATIVE", json.dumps({"fileDescriptorSet": text, "rootMessageTypeName": "p.M"}).encode())


def class_of(file: FileDescriptorProto) -> Any:
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("p.M"))


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` is said of the message `payload`, read by the definition."""

    file: FileDescriptorProto
    payload: bytes
    what: str


def differences(seed: int, messages: int) -> Iterator[Difference]:
    """Differences for one definition and so many messages."""
    chance = random.Random(seed)
    wanted = definition(chance)
    kind, other = class_of(wanted), class_of(written(chance, wanted))
    yield from compared(wanted, kind, payloads(chance, (kind, other), messages))


def compared(file: FileDescriptorProto, kind: Any, texts: list[bytes]) -> Iterator[Difference]:
    """All in one column."""
    schema = native(file)
    ends = numpy.cumsum([len(each) for each in texts], dtype=numpy.int64)
    starts = ends - numpy.array([len(each) for each in texts], numpy.int64)
    found, broken = column(padded(b"".join(texts)), Spans(starts, ends), schema, schema)
    assert found.type == type_of(schema)
    found.validate(full=True)
    for text, value, is_broken in zip(texts, found.to_pylist(), broken.tolist(), strict=True):
        message = kind()
        try:
            message.ParseFromString(text)
        except DecodeError as error:
            if not is_broken:
                yield Difference(file, text, f"it is none, and is read: {error}")
            continue
        try:
            theirs = expected(message)
        except (UnicodeDecodeError, _Unsaid):
            continue
        if is_broken:
            yield Difference(file, text, "it is one, and is not read")
        elif (ours := seen(value, kind.DESCRIPTOR)) != theirs:
            yield Difference(file, text, f"ours   {ours}\ntheirs {theirs}")


def main(count: int, first: int) -> int:
    bad = 0
    for seed in range(first, first + count):
        found = list(differences(seed, 40))
        bad += len(found)
        for each in found[:1]:
            print(f"seed {seed}: {len(found)} of 40\n{each.file}\n{each.payload.hex()}\n{each.what}")
    print(f"{count} definitions, {40 * count} messages, {bad} not alike")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
