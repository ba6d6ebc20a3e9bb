"""Avro by columns against Apache's own reader, record by record: what that makes of bytes is what stands in the column."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import avro.io
import avro.schema
import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.decode.octets import padded
from pipeline.pyspark_pulsar.decode.protobuf_columns import Spans
from pipeline.pyspark_pulsar.decode.values.avro_columns import decode
from pipeline.pyspark_pulsar.decode.values.avro_schema import UnusableSchema, arrow_type, parse

WRITTEN: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "count", "type": "int"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "price", "type": "double"},
        {"name": "weight", "type": "float"},
        {"name": "is_paid", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "mixed", "type": ["string", "null", "long"]},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "next", "type": ["null", "Colour"]}],
                },
            },
        },
    ],
}
_text, _longs, _ints = st.text(max_size=12), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)
_colours = st.sampled_from(["RED", "GREEN", "BLUE"])
RECORDS = st.fixed_dictionaries(
    {
        "id": _longs,
        "count": _ints,
        "name": st.none() | _text,
        "price": st.floats(allow_nan=False),
        "weight": st.floats(allow_nan=False, width=32),
        "is_paid": st.booleans(),
        "raw": st.binary(max_size=20),
        "hash": st.binary(min_size=4, max_size=4),
        "colour": _colours,
        "tags": st.lists(_text, max_size=4),
        "counts": st.dictionaries(_text, _longs, max_size=3),
        "mixed": st.none() | _text | _longs,
        "lines": st.lists(st.fixed_dictionaries({"sku": _text, "next": st.none() | _colours}), max_size=3),
    }
)


def encoded(schema: dict[str, Any], record: Any) -> bytes:
    out = io.BytesIO()
    avro.io.DatumWriter(avro.schema.parse(json.dumps(schema))).write(record, avro.io.BinaryEncoder(out))
    return out.getvalue()


def columns(records: list[bytes], written: dict[str, Any], wanted: dict[str, Any]) -> tuple[list[Any], list[bool]]:
    ends = numpy.cumsum([len(each) for each in records], dtype=numpy.int64)
    starts = ends - numpy.array([len(each) for each in records], numpy.int64)
    reader = parse(json.dumps(wanted))
    found, broken = decode(padded(b"".join(records)), Spans(starts, ends), parse(json.dumps(written)), reader)
    assert found.type == arrow_type(reader)
    found.validate(full=True)
    return found.to_pylist(), broken.tolist()


def as_columns_have_it(record: dict[str, Any]) -> dict[str, Any]:
    mixed = record["mixed"]
    members = {
        "member0": mixed if isinstance(mixed, str) else None,
        "member1": mixed if isinstance(mixed, int) else None,
    }
    return {**record, "counts": list(record["counts"].items()), "mixed": None if mixed is None else members}


@given(st.lists(RECORDS, max_size=6))
def test_columns_are_what_was_written(records: list[dict[str, Any]]) -> None:
    found, broken = columns([encoded(WRITTEN, each) for each in records], WRITTEN, WRITTEN)
    assert found == [as_columns_have_it(each) for each in records]
    assert not any(broken)


EVOLVED: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "called", "type": ["null", "string"], "aliases": ["name"], "default": None},
        {"name": "count", "type": "double"},
        {"name": "id", "type": ["null", "long"]},
        {"name": "raw", "type": "string"},
        {"name": "since", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "bytes"}]},
            },
        },
    ],
}


@given(st.lists(RECORDS.map(lambda each: {**each, "raw": b"text"}), max_size=6))
def test_a_later_definition_reads_what_an_earlier_one_wrote(records: list[dict[str, Any]]) -> None:
    found, broken = columns([encoded(WRITTEN, each) for each in records], WRITTEN, EVOLVED)
    expected = [
        {
            "called": each["name"],
            "count": float(each["count"]),
            "id": each["id"],
            "raw": "text",
            "since": [1, 2],
            "lines": [{"sku": line["sku"].encode()} for line in each["lines"]],
        }
        for each in records
    ]
    assert found == expected
    assert not any(broken)


@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_damage_to_one_record_is_told_of_it_alone(records: list[dict[str, Any]], data: st.DataObject) -> None:
    whole = [encoded(WRITTEN, each) for each in records]
    row = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.integers(0, len(whole[row]) - 1))
    found, broken = columns([each[:cut] if at == row else each for at, each in enumerate(whole)], WRITTEN, WRITTEN)
    assert broken == [at == row for at in range(len(whole))]
    assert [each for at, each in enumerate(found) if at != row] == [
        as_columns_have_it(each) for at, each in enumerate(records) if at != row
    ]


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_no_bytes_make_it_fail(records: list[bytes]) -> None:
    columns(records, WRITTEN, EVOLVED)


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**7), max_value=10**7), max_size=5))
def test_decimals_have_their_scale(values: list[Decimal]) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
    found, broken = columns([encoded(schema, each) for each in values], schema, schema)
    assert found == values
    assert not any(broken)


def test_blocks_of_a_negative_count_say_their_size_and_are_read_the_same() -> None:
    found, broken = columns(
        [bytes([3, 4, 2, 4, 1, 2, 6, 0])], {"type": "array", "items": "long"}, {"type": "array", "items": "long"}
    )
    assert (found, broken) == ([[1, 2, 3]], [False])


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("nonsense", "no JSON"),
        ('{"type": "record"}', "none of Avro"),
        ('"Unknown"', "not defined"),
        ('{"type": "record", "name": "T", "fields": [{"name": "next", "type": ["null", "T"]}]}', "contains itself"),
    ],
)
def test_a_definition_that_cannot_be_columns_is_refused_with_the_reason(definition: str, reason: str) -> None:
    with pytest.raises(UnusableSchema, match=reason):
        arrow_type(parse(definition))


def test_times_and_dates_are_those_of_arrow() -> None:
    kinds = {"date": "int", "timestamp-millis": "long", "timestamp-micros": "long", "local-timestamp-micros": "long"}
    types = [arrow_type(parse(json.dumps({"type": kind, "logicalType": logical}))) for logical, kind in kinds.items()]
    time = pyarrow.timestamp("us", tz="UTC")
    assert types == [pyarrow.date32(), time, time, pyarrow.timestamp("us")]
    found, _ = columns([b"\x02"], {"type": "long"}, {"type": "long", "logicalType": "timestamp-millis"})
    assert found[0].timestamp() == -0.001 or found[0].timestamp() == 0.001


def test_types_of_the_same_name_in_two_namespaces_are_two() -> None:
    def named(namespace: str, field: str, kind: str) -> dict[str, Any]:
        return {"type": "record", "name": "Part", "namespace": namespace, "fields": [{"name": field, "type": kind}]}

    fields = [("a", named("a", "text", "string")), ("b", named("b", "number", "int")), ("c", "a.Part"), ("d", "b.Part")]
    schema = {"type": "record", "name": "Whole", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    record = {"a": {"text": "x"}, "b": {"number": 1}, "c": {"text": "y"}, "d": {"number": 2}}
    assert columns([encoded(schema, record)], schema, schema) == ([record], [False])
    either = {"type": "record", "name": "E", "fields": [{"name": "f", "type": [fields[0][1], fields[1][1]]}]}
    [found], _ = columns([encoded(either, {"f": {"number": 1}})], either, either)
    assert found == {"f": {"member0": None, "member1": {"number": 1}}}
    inner = {"type": "record", "name": "Part", "namespace": "b", "fields": [{"name": "next", "type": ["null", "a.Part"]}]}
    outer = {"type": "record", "name": "Part", "namespace": "a", "fields": [{"name": "inner", "type": inner}]}
    with pytest.raises(UnusableSchema, match=r"a\.Part contains itself"):
        parse(json.dumps(outer))


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, 1500, datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, 1500, datetime(1970, 1, 1, 0, 0, 1, 500_000)),
        ({"type": "int", "logicalType": "date"}, 1, date(1970, 1, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "\u00ff\u0000", Decimal("-2.56")),
        (["string", "int", "null"], "text", {"member0": "text", "member1": None}),
        (["null", "int"], None, None),
        (["int", "null"], 3, 3),
        ("bytes", "\u00ff", b"\xff"),
    ],
)
def test_a_field_that_was_not_written_has_its_default(kind: Any, default: Any, expected: Any) -> None:
    written = {"type": "record", "name": "R", "fields": []}
    wanted = {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind, "default": default}]}
    found, broken = columns([b""], written, wanted)
    assert (found, broken) == ([{"f": expected}], [False])


def test_a_symbol_that_is_not_wanted_is_the_default_one_or_an_error() -> None:
    written = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    records = [encoded(written, each) for each in "AB"]
    assert columns(records, written, {**written, "symbols": ["A", "X"], "default": "X"}) == (["A", "X"], [False, False])
    found, broken = columns(records, written, {**written, "symbols": ["A"]})
    assert (found[0], broken) == ("A", [False, True])


def test_a_null_where_none_is_wanted_is_told_of_the_records_that_have_it_alone() -> None:
    def of(kind: Any) -> dict[str, Any]:
        fields = [{"name": "name", "type": kind}, {"name": "names", "type": {"type": "array", "items": kind}}]
        return {"type": "record", "name": "R", "fields": fields}

    written, wanted = of(["null", "string"]), of("string")
    records = [
        {"name": "a", "names": []},
        {"name": None, "names": []},
        {"name": "b", "names": ["c", None]},
        {"name": "d", "names": ["e"]},
    ]
    found, broken = columns([encoded(written, each) for each in records], written, wanted)
    assert broken == [False, True, True, False]
    assert [found[0], found[3]] == [records[0], records[3]]


def test_a_fixed_of_another_size_is_none() -> None:
    with pytest.raises(UnusableSchema, match="fixed F cannot be read from fixed F"):
        columns([b"ab"], {"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3})
