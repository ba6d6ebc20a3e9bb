"""Values with a schema as the sink writes them: what Apache's clients write for the same, and what the source reads again."""

import base64
import datetime
import io
import json
import struct
from decimal import Decimal
from typing import Any

import avro.io
import avro.schema
import numpy
import pyarrow
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.decode.octets import padded
from pipeline.pyspark_pulsar.decode.protobuf_columns import Spans
from pipeline.pyspark_pulsar.decode.values import protobuf_messages, protobuf_schema
from pipeline.pyspark_pulsar.sink.errors import WrongFrame
from pipeline.pyspark_pulsar.sink.frame_rows import check_columns, outgoing
from pipeline.pyspark_pulsar.sink.values.protobuf_values import native_definition, protobuf_values
from pipeline.pyspark_pulsar.sink.values.value_column import pair_encoder, value_encoder

UTC = datetime.UTC
LATE = datetime.datetime(2026, 11, 22, 8, 1, 2, 345_678, UTC)
EARLY = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
ZONED, LOCAL = pyarrow.timestamp("us", tz="UTC"), pyarrow.timestamp("us")


def micros(time: datetime.datetime) -> int:
    return (time - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("kind", "type", "value", "expected"),
    [
        ("BOOLEAN", pyarrow.bool_(), True, b"\x01"),
        ("INT8", pyarrow.int8(), -2, b"\xfe"),
        ("INT16", pyarrow.int16(), -2, struct.pack(">h", -2)),
        ("INT32", pyarrow.int32(), -(2**31), struct.pack(">i", -(2**31))),
        ("INT64", pyarrow.int64(), -(2**63), struct.pack(">q", -(2**63))),
        ("INT16", pyarrow.int64(), 300, struct.pack(">h", 300)),
        ("FLOAT", pyarrow.float32(), 1.5, struct.pack(">f", 1.5)),
        ("DOUBLE", pyarrow.float64(), -0.1, struct.pack(">d", -0.1)),
        ("TIME", pyarrow.int64(), 86_399_999, struct.pack(">q", 86_399_999)),
        ("LOCAL_TIME", pyarrow.int64(), 7, struct.pack(">q", 7)),
        ("DATE", ZONED, LATE, struct.pack(">q", micros(LATE) // 1000)),
        ("TIMESTAMP", ZONED, EARLY, struct.pack(">q", -1)),
        ("INSTANT", ZONED, EARLY, struct.pack(">qi", -1, 999_999_000)),
        ("LOCAL_DATE", pyarrow.date32(), datetime.date(1969, 12, 31), struct.pack(">q", -1)),
        ("LOCAL_DATE_TIME", LOCAL, EARLY.replace(tzinfo=None), struct.pack(">qq", -1, 86_399_999_999_000)),
        ("STRING", pyarrow.string(), "grün", "grün".encode()),
        ("BYTES", pyarrow.binary(), b"\x00", b"\x00"),
    ],
)
def test_primitives_are_as_apaches_client_writes_them(kind: str, type: Any, value: Any, expected: bytes) -> None:  # noqa: A002
    found = value_encoder(kind, type).encoded(pyarrow.array([value, None, value], type))
    assert found.to_pylist() == [expected, None, expected]


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        (pyarrow.string(), "STRING"),
        (pyarrow.int8(), "INT8"),
        (ZONED, "INSTANT"),
        (LOCAL, "LOCAL_DATE_TIME"),
        (pyarrow.date32(), "LOCAL_DATE"),
        (pyarrow.struct([("a", pyarrow.int64())]), "AVRO"),
        (pyarrow.binary(), "BYTES"),
    ],
)
def test_a_frames_own_type_says_its_schema(type: Any, kind: str) -> None:  # noqa: A002
    assert value_encoder("AUTO", type).kind == kind


@pytest.mark.parametrize(
    ("kind", "type", "said"),
    [
        ("INT32", pyarrow.string(), "schema int32 is of int32; cast it"),
        ("TIMESTAMP", LOCAL, "schema timestamp is of timestamp"),
        ("STRING", pyarrow.int64(), "schema string is of string"),
        ("AVRO", pyarrow.int64(), "valueSchema=avro is for a struct"),
        ("PROTOBUF_NATIVE", pyarrow.struct([("when", ZONED)]), "field when is timestamp.* which protobuf does not have"),
        ("AUTO", pyarrow.decimal128(10, 2), "expected string or binary"),
        ("AVRO", pyarrow.struct([("m", pyarrow.map_(pyarrow.int64(), ZONED))]), "field m is map<int64.* cannot be encoded"),
        ("AVRO", pyarrow.struct([("a b", pyarrow.int64())]), "field 'a b': names have letters of ASCII"),
        ("JSON", pyarrow.struct([("a", pyarrow.struct([("grün", ZONED)]))]), "field 'grün': names have"),
        ("PROTOBUF_NATIVE", pyarrow.struct([("1", pyarrow.int64())]), "field '1': names have"),
    ],
)
def test_a_column_that_does_not_fit_the_value_schema_is_refused(kind: str, type: Any, said: str) -> None:  # noqa: A002
    with pytest.raises(WrongFrame, match=said):
        value_encoder(kind, type)


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(WrongFrame, match="no int8"):
        value_encoder("INT8", pyarrow.int64()).encoded(pyarrow.array([200]))


WITH_MAPS = pyarrow.struct(
    [
        ("price", pyarrow.decimal128(38, 4)),
        ("counts", pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        ("lists", pyarrow.map_(pyarrow.string(), pyarrow.list_(pyarrow.decimal128(9, 2)))),
    ]
)
_prices = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**6), max_value=10**6)
_WITH_MAPS = st.fixed_dictionaries(
    {
        "price": st.none() | st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(f"{number}E-4")),
        "counts": st.none() | st.dictionaries(st.text(max_size=4), st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
        "lists": st.dictionaries(st.text(max_size=4), st.lists(st.none() | _prices, max_size=2), max_size=2),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_WITH_MAPS, min_size=1, max_size=5), st.integers(0, 2))
def test_maps_and_decimals_are_what_apaches_avro_and_any_json_reader_read(given_rows: list[Any], first: int) -> None:
    column = pyarrow.array([*given_rows, None], WITH_MAPS)[min(first, len(given_rows)) :]
    rows = given_rows[min(first, len(given_rows)) :]
    encoder = value_encoder("AVRO", column.type)
    reader = avro.io.DatumReader(avro.schema.parse(encoder.definition().decode()))
    *found, last = encoder.encoded(column).to_pylist()
    assert last is None
    assert [reader.read(avro.io.BinaryDecoder(io.BytesIO(each))) for each in found] == rows
    texts = value_encoder("JSON", column.type).encoded(column).to_pylist()[:-1]
    without_nulls = [{name: value for name, value in each.items() if value is not None} for each in rows]
    assert [json.loads(each, parse_float=Decimal) for each in texts] == without_nulls


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_refused_by_name(value: float) -> None:
    column = pyarrow.array([{"a": [value]}], pyarrow.struct([("a", pyarrow.list_(pyarrow.float64()))]))
    with pytest.raises(WrongFrame, match="NaN or an infinite number, which JSON does not have"):
        value_encoder("JSON", column.type).encoded(column)


# ---- Protobuf

STRUCT = pyarrow.struct(
    [
        ("number", pyarrow.int64()),
        ("small", pyarrow.int32()),
        ("flag", pyarrow.bool_()),
        ("half", pyarrow.float32()),
        ("double", pyarrow.float64()),
        ("name", pyarrow.string()),
        ("bytes", pyarrow.binary()),
        ("inner", pyarrow.struct([("a", pyarrow.int64()), ("list", pyarrow.list_(pyarrow.string()))])),
        ("numbers", pyarrow.list_(pyarrow.int32())),
        ("inners", pyarrow.list_(pyarrow.struct([("b", pyarrow.bool_())]))),
    ]
)


def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


_STRUCTS = st.fixed_dictionaries(
    {
        "number": optional(st.integers(-(2**63), 2**63 - 1)),
        "small": optional(st.integers(-(2**31), 2**31 - 1)),
        "flag": optional(st.booleans()),
        "half": optional(st.floats(width=32, allow_nan=False)),
        "double": optional(st.floats(allow_nan=False)),
        "name": optional(st.text(max_size=5)),
        "bytes": optional(st.binary(max_size=5)),
        "inner": optional(
            st.fixed_dictionaries({"a": optional(st.integers(0, 9)), "list": st.lists(st.text(max_size=3), max_size=3)})
        ),
        "numbers": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4),
        "inners": st.lists(st.fixed_dictionaries({"b": optional(st.booleans())}), max_size=3),
    }
)


def parser() -> Any:
    """Google's, of the definition that the registry gets."""
    told = json.loads(native_definition(STRUCT))
    pool = descriptor_pool.DescriptorPool()
    for file in FileDescriptorSet.FromString(base64.b64decode(told["fileDescriptorSet"])).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(told["rootMessageTypeName"]))


PARSER = parser()


def as_plain(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            found[field.name] = [as_plain(each) if field.message_type else each for each in value]
        elif not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = as_plain(value) if field.message_type else value
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(optional(_STRUCTS), min_size=1, max_size=6))
def test_protobuf_is_what_its_own_library_reads_and_what_the_source_reads(given_rows: list[Any]) -> None:
    found = protobuf_values(pyarrow.array(given_rows, STRUCT)).to_pylist()
    assert [None if each is None else as_plain(PARSER.FromString(each)) for each in found] == given_rows
    present = [each for each in found if each is not None]
    ends = numpy.cumsum([len(each) for each in present], dtype=numpy.int64)
    spans = Spans(ends - numpy.array([len(each) for each in present], numpy.int64), ends)
    definition = protobuf_schema.parse_native(native_definition(STRUCT))
    column, broken = protobuf_messages.decode(padded(b"".join(present)), spans, definition)
    assert not broken.any()
    assert column.to_pylist() == [each for each in given_rows if each is not None]


def test_a_null_in_a_list_is_refused() -> None:
    with pytest.raises(WrongFrame, match="a null in a list"):
        protobuf_values(pyarrow.array([{"l": [1, None]}], pyarrow.struct([("l", pyarrow.list_(pyarrow.int32()))])))


# ---- Pairs

PAIRS = pyarrow.RecordBatch.from_pylist(
    [{"key": 5, "value": "a"}, {"key": None, "value": "b"}, {"key": 7, "value": None}],
    pyarrow.schema([("key", pyarrow.int32()), ("value", pyarrow.string())]),
)


def test_a_separated_pair_has_its_key_as_the_messages_and_an_inline_one_in_its_payload() -> None:
    ids = numpy.arange(3, dtype=numpy.uint64)
    types = (pyarrow.int32(), pyarrow.string())
    separated = outgoing(PAIRS, pair_encoder(("AUTO", "AUTO"), types, True), ids)
    assert separated.values.to_pylist() == [b"a", b"b", None]
    assert separated.keys is not None
    assert separated.keys.text.to_pylist() == [base64.b64encode(b"\0\0\0\x05"), None, base64.b64encode(b"\0\0\0\x07")]
    assert separated.keys.is_base64.tolist() == [True, False, True]
    inline = outgoing(PAIRS, pair_encoder(("INT32", "STRING"), types, False), ids)
    assert inline.keys is None
    four, none = (4).to_bytes(4), b"\xff\xff\xff\xff"
    assert inline.values.to_pylist() == [
        four + b"\0\0\0\x05" + (1).to_bytes(4) + b"a",
        none + (1).to_bytes(4) + b"b",
        four + b"\0\0\0\x07" + none,
    ]


def test_the_registry_is_told_both_schemas_of_a_pair() -> None:
    schema = pair_encoder(("STRING", "AUTO"), (pyarrow.string(), pyarrow.struct([("a", pyarrow.int64())])), True).schema()
    assert schema is not None
    properties: Any = schema.properties
    told = {each.key: each.value for each in properties}
    assert (told["key.schema.type"], told["value.schema.type"], told["kv.encoding.type"]) == ("STRING", "AVRO", "SEPARATED")
    assert schema.schema_data[:4] == bytes(4)
    assert json.loads(schema.schema_data[8:])["fields"][0]["name"] == "a"


def test_an_option_for_keys_without_a_column_for_them_is_refused() -> None:
    with pytest.raises(WrongFrame, match="option keySchema, and no column key"):
        check_columns(["value"], "t", has_typed_keys=True)
