"""Random definitions, read by us and by the libraries that made them what they are; and what such runs found, by itself.

Long runs: `python -m tests.pipeline.decode.random_protobuf`, `python -m tests.pipeline.decode.random_json`.
"""

import base64
import json
import random
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from pipeline.pyspark_pulsar.decode.rows import rows_of
from pipeline.pyspark_pulsar.decode.values.typed import Schema
from pipeline.pyspark_pulsar.options import Between
from pipeline.pyspark_pulsar.rows_wanted import Wanted, wanted_batch
from tests.pipeline.decode import random_json, random_protobuf
from tests.pipeline.decode.random_protobuf import class_of, compared, differences, native
from tests.pipeline.decode.test_typed_columns import typed
from tests.pipeline.sections import block, metadata
from wire.payloads import payload_section

_F = FieldDescriptorProto


@pytest.mark.parametrize("seed", range(12))
def test_random_messages_of_random_definitions_are_what_googles_library_says(seed: int) -> None:
    assert list(differences(seed, 40)) == []


def definition(syntax: str) -> FileDescriptorProto:
    """Enumerations of proto2 are closed, and its texts anything."""
    file = FileDescriptorProto(name="m.proto", package="p", syntax=syntax)
    enum = file.enum_type.add(name="E")
    enum.options.allow_alias = True
    for number, name in ((0, "ZERO"), (1, "ONE"), (1, "UNO")):
        enum.value.add(name=name, number=number)
    root = file.message_type.add(name="M")
    inner = root.nested_type.add(name="N")
    inner.field.add(name="a", number=1, type=_F.TYPE_INT32, label=_F.LABEL_OPTIONAL)
    inner.field.add(name="b", number=2, type=_F.TYPE_INT32, label=_F.LABEL_REPEATED)
    for name, value in (("XEntry", {"type": _F.TYPE_MESSAGE, "type_name": ".p.M.N"}), ("YEntry", enum_field())):
        entry = root.nested_type.add(name=name)
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=_F.TYPE_STRING, label=_F.LABEL_OPTIONAL)
        entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL, **value)
    root.oneof_decl.add(name="choice")
    message = {"type": _F.TYPE_MESSAGE, "type_name": ".p.M.N"}
    once, many = _F.LABEL_OPTIONAL, _F.LABEL_REPEATED
    root.field.add(name="n", number=1, label=once, **message)
    root.field.add(name="s", number=2, label=once, type=_F.TYPE_STRING)
    root.field.add(name="e", number=3, label=once, **enum_field())
    root.field.add(name="es", number=4, label=many, **enum_field())
    root.field.add(name="i", number=5, label=once, type=_F.TYPE_INT32, oneof_index=0)
    root.field.add(name="m", number=6, label=once, oneof_index=0, **message)
    root.field.add(name="t", number=7, label=once, type=_F.TYPE_STRING, oneof_index=0)
    root.field.add(name="x", number=8, label=many, type=_F.TYPE_MESSAGE, type_name=".p.M.XEntry")
    root.field.add(name="y", number=9, label=many, type=_F.TYPE_MESSAGE, type_name=".p.M.YEntry")
    root.field.add(name="z", number=10, label=once, type=_F.TYPE_SINT32)
    return file


def enum_field() -> dict[str, object]:
    return {"type": _F.TYPE_ENUM, "type_name": ".p.E"}


FOUND = {
    "a message in two pieces": "0a020801" "0a021003",
    "a message in two pieces, one of them damaged": "0a020801" "0a0210",
    "of a choice the last": "280132020801" "2802",
    "of a choice the last, begun anew": "32020801" "2801" "32021003",
    "of a choice a message that is damaged and does not count": "320108" "2801",
    "of a choice a text that is none and does not count": "3a01ff" "2801",
    "a text that is none": "1201ff",
    "a text that is none, and another": "1201ff" "120161",
    "a text that is written as a number": "1005",
    "a number that is written as a text": "2a0161",
    "numbers of an enumeration that has them not": "1805" "20052001" "2202050a",
    "a number of an enumeration with two names": "1801",
    "a number of an enumeration, and one that it has not": "1801" "1805",
    "a map with a key twice": "42070a0161" "12020801" "42070a0161" "12020802",
    "a map without keys and values": "4200" "4a00",
    "a map whose value an enumeration has not": "4a050a01611005" "4a050a01621001",
    "a group that nobody knows": "a301" "0805a3010805a401" "a401" "2801",
    "a group without its end": "a3010805",
    "a group that another number ends": "a3010805ac01",
    "the end of a group": "a401",
    "a field of number 0": "0001",
    "a number of 64 bits where 33 count": "5081808080808080808001",
    "a tag of six bytes": "888080808000" "01",
}  # fmt: skip


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize("found", FOUND)
def test_messages_that_were_once_read_differently_are_read_alike(syntax: str, found: str) -> None:
    file = definition(syntax)
    assert list(compared(file, class_of(file), [bytes.fromhex(FOUND[found])])) == []


def test_a_message_of_another_shape_among_many_alike_is_read_as_if_alone() -> None:
    """Messages of one shape are decoded together."""
    file = definition("proto3")
    texts = [bytes.fromhex("280132020801") for _ in range(100)] + [bytes.fromhex(each) for each in FOUND.values()]
    assert list(compared(file, class_of(file), texts * 2)) == []


# ---- JSON


@pytest.mark.parametrize("seed", range(12))
def test_random_texts_of_random_definitions_are_what_pythons_json_says(seed: int) -> None:
    assert list(random_json.differences(seed, 60)) == []


PLAIN: dict[str, Any] = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "d", "type": "double"},
        {"name": "f", "type": "float"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "a", "type": ["null", {"type": "array", "items": "string"}]},
    ],
}
WITH_MORE = {
    **PLAIN,
    "fields": [
        *PLAIN["fields"],
        {"name": "m", "type": {"type": "map", "values": "int"}},
        {"name": "p", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}]},
        {"name": "u", "type": ["null", "int", "long", "bytes", "string"]},
    ],
}
TEXTS = {
    "null by itself, which ended the process": b"null",
    "a member twice": b'{"i": 1, "i": 2, "more": 1, "more": 2}',
    "NaN as Java has it": b'{"d": "NaN", "f": "-Infinity"}',
    "NaN as Python has it": b'{"d": NaN, "f": -Infinity}',
    "a number that no double holds": b'{"d": 1e400, "f": -1e400}',
    "an integer that no double holds": b'{"d": 1' + b"0" * 400 + b"}",
    "an integer between two doubles": b'{"d": 9007199254740993, "f": 16777217}',
    "an exponent that no decimal holds": b'{"d": 1e99999999999999999999}',
    "a line break amid a text": b'{"s": "a\nb"}',
    "a text that is none": b'{"s": "\xff"}',
    "another member's text that is none": b'{"i": 1, "more": "\xff"}',
    "a text for a list": b'{"a": "ab"}',
    "an object for a list": b'{"a": {"x": 1}}',
    "a decimal that is not 0": b'{"p": 5e-324}',
    "a long where an int comes first": b'{"u": 4294967296}',
    "a text where bytes come first": b'{"u": "no base 64"}',
}


@pytest.mark.parametrize("kind", [PLAIN, WITH_MORE], ids=["plain", "with more"])
@pytest.mark.parametrize("text", TEXTS)
def test_json_texts_that_were_once_read_differently_are_read_alike(kind: dict[str, Any], text: str) -> None:
    assert list(random_json.compared(kind, [TEXTS[text]])) == []


def test_a_text_is_read_as_by_itself_whatever_its_neighbours_are() -> None:
    sound = b'{"i": 1, "d": 2.5}'
    parts = [b'{"i": 1, "more":', b'{"i": 2}} {"i": 3}', b'{"i": 4} {"i": 5}', b"", b" ", b'{"more": {}', b'{"i":6}}']
    texts = [sound] * 100 + [each for found in (*TEXTS.values(), *parts) for each in (found, sound)]
    assert list(random_json.compared(PLAIN, texts)) == []


def test_members_as_deep_as_nobody_writes_them_are_damage_at_most() -> None:
    text = b'{"i": 1, "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    sound = b'{"i": 1, "m": {}}'
    assert typed(Schema("JSON", json.dumps(WITH_MORE).encode()), [sound, text, sound])[1] == [False, True, False]
    assert typed(Schema("JSON", json.dumps(PLAIN).encode()), [sound, text, sound])[1] == [False] * 3


# ---- Pairs


def of_kind(seed: int) -> tuple[Schema, list[bytes]]:
    """A schema, and payloads of it, damaged ones among them."""
    chance = random.Random(seed)
    match chance.choice(["JSON", "PROTOBUF_NATIVE", "STRING", "INT32"]):
        case "JSON":
            kind = random_json.definition(chance)
            return Schema("JSON", json.dumps(kind).encode()), random_json.payloads(chance, kind, 20)
        case "PROTOBUF_NATIVE":
            wanted = random_protobuf.definition(chance)
            kinds = class_of(wanted), class_of(random_protobuf.written(chance, wanted))
            return native(wanted), random_protobuf.payloads(chance, kinds, 20)
        case "STRING":
            return Schema("STRING"), [chance.randbytes(5).hex().encode() for _ in range(20)]
    return Schema("INT32"), [chance.randbytes(chance.choice([4, 4, 4, 3])) for _ in range(20)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
def test_keys_and_values_of_random_pairs_are_what_each_is_by_itself(encoding: str, seed: int) -> None:
    """A damaged key or value leaves the other one of its pair readable, and the error says which is damaged."""
    (key, keys), (value, values) = of_kind(2 * seed), of_kind(2 * seed + 1)
    chance = random.Random(seed)
    keys_there = [None if chance.random() < 0.1 else each for each in keys]
    values_there = [None if chance.random() < 0.1 else each for each in values]
    properties = {"kv.encoding.type": encoding}
    for name, part in (("key", key), ("value", value)):
        properties |= {f"{name}.schema.type": part.kind, f"{name}.schema.properties": json.dumps(dict(part.properties))}
    both = b"".join(len(each.data).to_bytes(4) + each.data for each in (key, value))
    schema = Schema("KEY_VALUE", both, tuple(properties.items()))
    pairs = list(zip(keys_there, values_there, strict=True))
    sections = [section(encoding, *pair) for pair in pairs]
    wanted = Wanted(("key", "value", "error"), Between(), "PERMISSIVE", schema, {0: schema}.get)
    found = wanted_batch(rows_of(block(*sections)), "t", wanted).to_pylist()
    for row, (one, other) in zip(found, pairs, strict=True):
        parts = {"key": alone(key, one), "value": alone(value, other)}
        for name, found_alone in parts.items():
            assert repr(row[name]) == repr(None if found_alone is None else found_alone[0])
        damaged = next((name for name in parts if parts[name] is None), None)
        assert row["error"] is None if damaged is None else f": {damaged}: " in row["error"]


def section(encoding: str, key: bytes | None, value: bytes | None) -> bytes:
    if encoding == "SEPARATED":
        text: dict[str, Any] = (
            {} if key is None else {"partition_key": base64.b64encode(key).decode(), "partition_key_b64_encoded": True}
        )
        return payload_section(metadata(**text, null_value=value is None), value or b"")
    parts = [b"\xff" * 4 if each is None else len(each).to_bytes(4) + each for each in (key, value)]
    return payload_section(metadata(), b"".join(parts))


def alone(schema: Schema, payload: bytes | None) -> tuple[Any] | None:
    """None where it is damaged."""
    if payload is None:
        return (None,)
    [found], [is_broken] = typed(schema, [payload])
    return None if is_broken else (found,)
