"""Payloads of every kind of schema as columns: what a naive reader makes of each is what stands there, and damage is told."""

import base64
import json
import struct
from decimal import Decimal
from typing import Any

import numpy
import pyarrow
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.decode.octets import padded
from pipeline.pyspark_pulsar.decode.protobuf_columns import Spans
from pipeline.pyspark_pulsar.decode.rows import rows_of
from pipeline.pyspark_pulsar.decode.values.typed import Schema, column, type_of
from pipeline.pyspark_pulsar.errors import Undecodable
from pipeline.pyspark_pulsar.options import Between
from pipeline.pyspark_pulsar.rows_wanted import Wanted, wanted_batch
from tests.pipeline.decode.test_avro_columns import encoded
from tests.pipeline.sections import batch, block, metadata, single
from wire.payloads import payload_section


def typed(schema: Schema, payloads: list[bytes]) -> tuple[list[Any], list[bool]]:
    ends = numpy.cumsum([len(each) for each in payloads], dtype=numpy.int64)
    starts = ends - numpy.array([len(each) for each in payloads], numpy.int64)
    found, broken = column(padded(b"".join(payloads)), Spans(starts, ends), schema, schema)
    assert found.type == type_of(schema)
    found.validate(full=True)
    return found.to_pylist(), broken.tolist()


# ---- JSON

PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [
        {"name": "name", "type": ["null", "string"]},
        {"name": "age", "type": "int"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "home", "type": ["null", {"type": "record", "name": "Home", "fields": [{"name": "lat", "type": "double"}]}]},
    ],
}
PEOPLE = st.fixed_dictionaries(
    {
        "name": st.none() | st.text(max_size=8),
        "age": st.integers(-(2**31), 2**31 - 1),
        "tags": st.lists(st.text(max_size=4), max_size=3),
        "home": st.none() | st.fixed_dictionaries({"lat": st.floats(allow_nan=False, allow_infinity=False)}),
    }
)
JSON = Schema("JSON", json.dumps(PERSON).encode())


@given(st.lists(PEOPLE, max_size=6), st.sampled_from([None, 2]), st.booleans())
def test_json_is_read_as_it_was_written(people: list[dict[str, Any]], indent: int | None, is_ascii: bool) -> None:
    texts = [json.dumps({**each, "more": 1}, indent=indent, ensure_ascii=is_ascii).encode() for each in people]
    assert typed(JSON, texts) == (people, [False] * len(people))


@pytest.mark.parametrize("damage", [b"", b"5", b"[]", b'{"age": "old"}', b'{"age": 1', b'{"age": 1} {"age": 2}', b"\xff"])
def test_json_that_does_not_match_the_schema_breaks_its_own_row_alone(damage: bytes) -> None:
    sound = b'{"age": 7}'
    found, broken = typed(JSON, [sound, damage, sound, sound])
    assert broken == [False, True, False, False]
    assert [each["age"] for each in found if each] == [7, 7, 7]


def test_json_of_maps_bytes_and_times_is_read_an_object_at_a_time() -> None:
    fields = [
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    schema = Schema("JSON", json.dumps({"type": "record", "name": "T", "fields": fields}).encode())
    good = json.dumps({"counts": {"a": 1}, "raw": base64.b64encode(b"\xff").decode(), "at": 1000}).encode()
    found, broken = typed(schema, [good, b'{"at": "noon"}', b'{"raw": "?"}', b"3"])
    assert broken == [False, True, True, True]
    assert (found[0]["counts"], found[0]["raw"], found[0]["at"].timestamp()) == ([("a", 1)], b"\xff", 1.0)


def test_decimals_in_json_have_all_their_digits_and_floats_beside_them_are_floats() -> None:
    fields = [
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4}},
        {"name": "half", "type": ["null", "float"]},
        {"name": "mixed", "type": ["null", "double", "string"]},
    ]
    schema = Schema("JSON", json.dumps({"type": "record", "name": "T", "fields": fields}).encode())
    texts = [
        b'{"price": 12345678901234567890123456.1234, "half": 0.5, "mixed": 1.5}',
        b'{"price": 7, "half": 1}',
        b'{"price": "x"}',
    ]
    found, broken = typed(schema, texts)
    assert broken == [False, False, True]
    price = Decimal("12345678901234567890123456.1234")
    assert found[0] == {"price": price, "half": 0.5, "mixed": {"member0": 1.5, "member1": None}}
    assert found[1] == {"price": Decimal(7), "half": 1.0, "mixed": None}


# ---- Protobuf

_F = FieldDescriptorProto


def field(name: str, number: int, kind: int, label: int = _F.LABEL_OPTIONAL, of: str = "", **more: Any) -> FieldDescriptorProto:
    return FieldDescriptorProto(name=name, number=number, type=kind, label=label, type_name=of or None, **more)  # type: ignore[arg-type]


def definition() -> FileDescriptorSet:
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    colour = file.enum_type.add(name="Colour")
    for number, name in enumerate(("RED", "GREEN")):
        colour.value.add(name=name, number=number)
    line = DescriptorProto(
        name="Line", field=[field("sku", 1, _F.TYPE_STRING), field("sizes", 2, _F.TYPE_SINT32, _F.LABEL_REPEATED)]
    )
    entry = DescriptorProto(name="CountsEntry", field=[field("key", 1, _F.TYPE_STRING), field("value", 2, _F.TYPE_INT64)])
    entry.options.map_entry = True
    order = file.message_type.add(name="Order", nested_type=[line, entry])
    order.field.extend(
        [
            field("id", 1, _F.TYPE_INT64),
            field("price", 2, _F.TYPE_DOUBLE),
            field("name", 3, _F.TYPE_STRING),
            field("is_paid", 4, _F.TYPE_BOOL),
            field("colour", 5, _F.TYPE_ENUM, of=".shop.Colour"),
            field("first", 6, _F.TYPE_MESSAGE, of=".shop.Order.Line"),
            field("lines", 7, _F.TYPE_MESSAGE, _F.LABEL_REPEATED, ".shop.Order.Line"),
            field("counts", 8, _F.TYPE_MESSAGE, _F.LABEL_REPEATED, ".shop.Order.CountsEntry"),
            field("weights", 9, _F.TYPE_FLOAT, _F.LABEL_REPEATED),
            field("code", 10, _F.TYPE_FIXED32),
            field("tags", 11, _F.TYPE_STRING, _F.LABEL_REPEATED),
        ]
    )
    return FileDescriptorSet(file=[file])


POOL = DescriptorPool()
for _file in definition().file:
    POOL.Add(_file)
ORDER = GetMessageClass(POOL.FindMessageTypeByName("shop.Order"))
NATIVE = Schema(
    "PROTOBUF_NATIVE",
    json.dumps(
        {
            "fileDescriptorSet": base64.b64encode(definition().SerializeToString()).decode(),
            "rootMessageTypeName": "shop.Order",
            "rootFileDescriptorName": "order.proto",
        }
    ).encode(),
)
_text, _longs = st.text(max_size=6), st.integers(-(2**63), 2**63 - 1)
LINES = st.fixed_dictionaries({"sku": _text, "sizes": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3)})
ORDERS = st.fixed_dictionaries(
    {
        "id": _longs,
        "price": st.floats(allow_nan=False),
        "name": _text,
        "is_paid": st.booleans(),
        "colour": st.sampled_from(["RED", "GREEN"]),
        "first": st.none() | LINES,
        "lines": st.lists(LINES, max_size=3),
        "counts": st.dictionaries(_text, _longs, max_size=1),
        "weights": st.lists(st.floats(allow_nan=False, width=32), max_size=3),
        "code": st.integers(0, 2**32 - 1),
        "tags": st.lists(_text, max_size=3),
    }
)


def message(order: dict[str, Any]) -> bytes:
    return bytes(ORDER(**order).SerializeToString())


@given(st.lists(ORDERS, max_size=5))
def test_protobuf_is_read_as_it_was_written(orders: list[dict[str, Any]]) -> None:
    expected = [{**each, "counts": list(each["counts"].items())} for each in orders]
    assert typed(NATIVE, [message(each) for each in orders]) == (expected, [False] * len(orders))


@example([b"J\x10"])  # a list of floats that is said to reach over all that lies behind the last message
@given(st.lists(st.binary(max_size=40), max_size=6))
def test_no_bytes_make_protobuf_fail(payloads: list[bytes]) -> None:
    typed(NATIVE, payloads)


def test_protobuf_with_numbers_alone_has_its_outermost_fields() -> None:
    numbers = [{"number": each.number, "name": each.name, "type": kind} for each, kind in
               zip(definition().file[0].message_type[0].field[:3], ("INT64", "DOUBLE", "STRING"), strict=True)]  # fmt: skip
    schema = Schema("PROTOBUF", b"{}", (("__PARSING_INFO__", json.dumps(numbers)),))
    found, _ = typed(schema, [message({"id": 5, "name": "x", "lines": [{"sku": "y"}]})])
    assert found == [{"id": 5, "price": None, "name": "x"}]
    defaults = {
        "fields": [{"name": "id", "default": 0}, {"name": "price", "default": 0.0}, {"name": "name", "default": "none"}]
    }
    schema = Schema("PROTOBUF", json.dumps(defaults).encode(), schema.properties)
    found, _ = typed(schema, [message({"lines": [{"sku": "y"}]})])
    assert found == [{"id": 0, "price": 0.0, "name": None}]  # as Java's getters, but for a default that is not empty


# ---- Primitives

VALUES: list[tuple[str, bytes, Any]] = [
    ("STRING", "grüße".encode(), "grüße"),
    ("BOOLEAN", b"\1", True),
    ("INT8", b"\xff", -1),
    ("INT16", struct.pack(">h", -300), -300),
    ("INT32", struct.pack(">i", -70000), -70000),
    ("INT64", struct.pack(">q", -(2**62)), -(2**62)),
    ("FLOAT", struct.pack(">f", 1.5), 1.5),
    ("DOUBLE", struct.pack(">d", -2.25), -2.25),
    ("LOCAL_TIME", struct.pack(">q", 5), 5),
]


@pytest.mark.parametrize(("kind", "payload", "value"), VALUES)
def test_primitives_are_javas(kind: str, payload: bytes, value: Any) -> None:
    found, broken = typed(Schema(kind), [payload, payload])
    assert (found, broken) == ([value, value], [False, False])


@pytest.mark.parametrize("kind", [kind for kind, _, _ in VALUES if kind != "STRING"])
def test_a_primitive_of_another_length_is_damage(kind: str) -> None:
    assert typed(Schema(kind), [b"\0" * 9, b""])[1] == [True, True]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("TIMESTAMP", struct.pack(">q", 86_400_001)),
        ("INSTANT", struct.pack(">qi", 86_400, 1_000_000)),
        ("LOCAL_DATE_TIME", struct.pack(">qq", 1, 1_000_000)),
    ],
)
def test_times_are_times(kind: str, payload: bytes) -> None:
    found, _ = typed(Schema(kind), [payload])
    assert found[0].isoformat().startswith("1970-01-02T00:00:00.001")


# ---- Rows of several versions, and of pairs

EARLY = {"type": "record", "name": "T", "fields": [{"name": "a", "type": "int"}]}
LATE = {
    "type": "record",
    "name": "T",
    "fields": [{"name": "b", "type": "string", "default": "-"}, {"name": "a", "type": "long"}],
}
VERSIONS = {0: Schema("AVRO", json.dumps(EARLY).encode()), 1: Schema("AVRO", json.dumps(LATE).encode())}


def version(number: int) -> bytes:
    return number.to_bytes(8)


def rows_in(wanted: Wanted, *sections: bytes) -> list[dict[str, Any]]:
    found = wanted_batch(rows_of(block(*sections)), "t", wanted)
    return found.to_pylist()  # type: ignore[no-any-return]


def wants(schema: Schema, mode: str = "PERMISSIVE", columns: tuple[str, ...] = ("value", "error")) -> Wanted:
    return Wanted(columns, Between(), mode, schema, VERSIONS.get)


def test_messages_of_several_versions_are_rows_of_one_type() -> None:
    sections = [
        batch([single(encoded(EARLY, {"a": each})) for each in range(3)], 0, compressed=True, schema_version=version(0)),
        payload_section(metadata(schema_version=version(1)), encoded(LATE, {"a": 7, "b": "x"})),
        payload_section(metadata(null_value=True, schema_version=version(1)), b""),
        payload_section(metadata(schema_version=version(0)), encoded(EARLY, {"a": 8})),
    ]
    found = rows_in(wants(VERSIONS[1]), *sections)
    early = [{"b": "-", "a": each} for each in range(3)]
    assert [each["value"] for each in found] == [*early, {"b": "x", "a": 7}, None, {"b": "-", "a": 8}]
    assert not any(each["error"] for each in found)


def test_a_message_that_its_schema_does_not_fit_is_told_with_its_place() -> None:
    payloads = [encoded(EARLY, {"a": 1}), b"", encoded(EARLY, {"a": 3})]
    section = batch([single(each) for each in payloads], schema_version=version(0))
    unknown = payload_section(metadata(schema_version=version(5)), b"\x02")
    found = rows_in(wants(VERSIONS[0]), section, unknown)
    assert [each["value"] for each in found] == [{"a": 1}, None, {"a": 3}, None]
    assert found[1]["error"] == "t at 7:0, message 1 of its batch: it is no AVRO of schema version 0"
    assert found[3]["error"] == "t at 7:1: its schema version 5 is not in the registry"
    assert [each["value"] for each in rows_in(wants(VERSIONS[0], "DROPMALFORMED"), section, unknown)] == [{"a": 1}, {"a": 3}]
    with pytest.raises(Undecodable, match=r"t at 7:0, message 1 of its batch: it is no AVRO .* mode=PERMISSIVE"):
        rows_in(wants(VERSIONS[0], "FAILFAST"), section)


def pair(encoding: str) -> Schema:
    parts = [b"", VERSIONS[0].data]
    properties = {"key.schema.type": "STRING", "value.schema.type": "AVRO", "kv.encoding.type": encoding}
    return Schema("KEY_VALUE", b"".join(struct.pack(">i", len(each)) + each for each in parts), tuple(properties.items()))


def test_the_two_of_an_inline_pair_are_two_columns() -> None:
    value = encoded(EARLY, {"a": 4})
    whole = struct.pack(">i", 1) + b"k" + struct.pack(">i", len(value)) + value
    no_value = struct.pack(">i", 1) + b"k" + struct.pack(">i", -1)
    sections = [payload_section(metadata(), each) for each in (whole, no_value, whole[:-1], b"")]
    found = rows_in(wants(pair("INLINE"), columns=("key", "value", "error")), *sections)
    assert [(each["key"], each["value"]) for each in found] == [("k", {"a": 4}), ("k", None), (None, None), (None, None)]
    assert [bool(each["error"]) for each in found] == [False, False, True, True]


def test_the_key_of_a_separated_pair_is_the_message_s() -> None:
    key = base64.b64encode(b"k").decode()
    section = batch([single(encoded(EARLY, {"a": 4}), partition_key=key, partition_key_b64_encoded=True), single(b"\x02")])
    found = rows_in(wants(pair("SEPARATED"), columns=("key", "value", "error")), section)
    assert [(each["key"], each["value"], each["error"]) for each in found] == [("k", {"a": 4}, None), (None, {"a": 1}, None)]


def test_types_are_those_that_spark_writes_for_arrow() -> None:
    kind = type_of(JSON)
    assert kind.field("tags").type == pyarrow.list_(pyarrow.field("element", pyarrow.string()))
