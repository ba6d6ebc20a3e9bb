"""Output of the sink, read again by the pipeline's own decoder, by Avro's library and by json; routing by known hashes."""

import base64
import io
import json
from datetime import UTC, datetime
from typing import Any

import avro.io
import avro.schema
import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.decode.rows import rows_of
from pipeline.pyspark_pulsar.sink.entries import COMPRESSIONS, Entry, Limits, Stamp, TxnId, entries_of
from pipeline.pyspark_pulsar.sink.errors import WrongFrame
from pipeline.pyspark_pulsar.sink.frame_check import usual
from pipeline.pyspark_pulsar.sink.frame_rows import check_columns, outgoing
from pipeline.pyspark_pulsar.sink.messages import encoded, encoded_messages, wire_keys
from pipeline.pyspark_pulsar.sink.routing import java_string_hash, murmur3, partitions_of
from pipeline.pyspark_pulsar.sink.values.pieces import sizes_of
from pipeline.pyspark_pulsar.sink.values.value_column import value_encoder
from tests.pipeline.sections import block
from wire.payloads import message_metadata, split_section, verify

TIME = pyarrow.timestamp("us", tz="UTC")
FRAME = pyarrow.schema(
    [
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("properties", pyarrow.map_(pyarrow.string(), pyarrow.string())),
        ("event_time", TIME),
    ]
)
MANY = Limits(1 << 20, 1000)


def stamped(compression: str = "NONE", schema_version: bytes | None = None, txn_id: TxnId | None = None) -> Stamp:
    return Stamp("p", COMPRESSIONS[compression], schema_version, txn_id)


def entries(frame: Any, limits: Limits = MANY, stamp: Stamp | None = None, first: int = 0) -> list[Entry]:
    ids = numpy.arange(first, first + len(frame)).astype(numpy.uint64)
    rows = outgoing(frame, value_encoder("NONE", frame.schema.field("value").type), ids)
    return list(entries_of(rows, limits, stamp or stamped(), 1_700_000_000_000))


def read(found: list[Entry]) -> list[dict[str, Any]]:
    columns = ("key", "value", "properties", "event_time", "sequence_id", "error")
    rows: list[dict[str, Any]] = batch_of(rows_of(block(*(bytes(each.section) for each in found))), "t", columns).to_pylist()
    return rows


texts = st.text(max_size=20)
rows = st.fixed_dictionaries(
    {
        "key": st.none() | texts.map(str.encode) | st.binary(max_size=20),
        "value": st.none() | st.binary(max_size=300),
        "properties": st.dictionaries(texts, texts, max_size=3).map(lambda found: list(found.items())),
        "event_time": st.none() | st.integers(1, 1 << 41).map(lambda ms: datetime.fromtimestamp(ms // 1000, UTC)),
    }
)


@given(st.lists(rows, min_size=1, max_size=30), st.sampled_from(sorted(COMPRESSIONS)), st.integers(0, 1 << 62))
def test_rows_come_back_as_they_were(written: list[dict[str, Any]], compression: str, first: int) -> None:
    frame = pyarrow.RecordBatch.from_pylist(written, FRAME)
    found = entries(frame, Limits(500, 7), stamped(compression), first)
    assert max(each.count for each in found) <= 7
    for each in found:
        verify(split_section(bytes(each.section)))
    expected = [{**row, "sequence_id": first + index, "error": None} for index, row in enumerate(written)]
    for row in expected:
        if row["event_time"] is not None and row["event_time"].timestamp() == 0:
            row["event_time"] = None  # Pulsar's 0 is none
    assert read(found) == expected


@given(st.lists(rows, min_size=1, max_size=20), st.integers(0, 10), st.integers(0, 1 << 62))
def test_the_kernel_and_numpy_write_the_same_bytes(written: list[dict[str, Any]], start: int, first: int) -> None:
    frame = pyarrow.RecordBatch.from_pylist(written, FRAME).slice(min(start, len(written) - 1))
    ids = numpy.arange(first, first + len(frame)).astype(numpy.uint64)
    rows = outgoing(frame, value_encoder("NONE", pyarrow.binary()), ids)
    found, by_numpy = encoded(rows), encoded_messages(rows)
    assert bytes(found.data) == b"".join(by_numpy.to_pylist())
    assert found.ends.tolist() == numpy.cumsum(sizes_of(by_numpy)).tolist()


@given(st.lists(rows, min_size=2, max_size=20), st.integers(0, 10))
def test_a_slice_of_a_batch_is_its_rows(written: list[dict[str, Any]], start: int) -> None:
    frame = pyarrow.RecordBatch.from_pylist(written, FRAME).slice(min(start, len(written) - 1))
    assert [row["key"] for row in read(entries(frame))] == frame.column("key").to_pylist()
    assert [row["properties"] for row in read(entries(frame))] == frame.column("properties").to_pylist()


def test_texts_and_bytes_with_large_offsets_are_the_usual_ones() -> None:
    """Spark hands over large offsets with spark.sql.execution.arrow.useLargeVarTypes."""

    def fields(text: Any, octets: Any) -> Any:
        inner = pyarrow.struct([("text", text), ("number", pyarrow.int32())])
        pairs = pyarrow.map_(text, pyarrow.struct([("octets", octets)]))
        return pyarrow.schema([("key", octets), ("value", inner), ("list", pyarrow.list_(inner)), ("map", pairs)])

    rows: list[dict[str, Any]] = [
        {
            "key": b"k",
            "value": {"text": "grün", "number": 1},
            "list": [{"text": None, "number": 2}, None],
            "map": [("a", {"octets": b"x"})],
        },
        {"key": None, "value": None, "list": None, "map": None},
        {"key": b"", "value": {"text": "", "number": None}, "list": [], "map": [("b", None)]},
    ]
    large = pyarrow.RecordBatch.from_pylist(rows, fields(pyarrow.large_string(), pyarrow.large_binary()))
    small = pyarrow.RecordBatch.from_pylist(rows, fields(pyarrow.string(), pyarrow.binary()))
    found = usual(large)
    assert found.schema == small.schema
    found.validate(full=True)
    assert found.equals(small)
    assert usual(large.slice(1, 2)).to_pylist() == rows[1:]
    assert usual(small) is small


def test_an_entry_says_its_first_and_last_row_its_transaction_and_the_key_of_its_first_message() -> None:
    frame = pyarrow.RecordBatch.from_pylist([{"key": b"\xff", "value": b"a"}, {"key": b"k", "value": b"b"}], FRAME)
    stamp = stamped(txn_id=TxnId(3, 4), schema_version=b"\x00" * 8)
    entry = entries(frame, stamp=stamp, first=70)[0]
    about = message_metadata(split_section(bytes(entry.section)))
    assert (entry.first, entry.last, entry.count) == (70, 71, 2)
    assert (about.sequence_id, about.highest_sequence_id, about.num_messages_in_batch) == (70, 71, 2)
    assert (about.txnid_most_bits, about.txnid_least_bits, about.schema_version) == (3, 4, bytes(8))
    assert (about.partition_key, about.partition_key_b64_encoded) == (base64.b64encode(b"\xff").decode(), True)


def test_an_entry_ends_where_its_bytes_do_and_a_long_message_is_one_of_its_own() -> None:
    sizes = [10, 10, 2000, 10, 10, 10]
    frame = pyarrow.RecordBatch.from_pylist([{"value": bytes(size)} for size in sizes], FRAME)
    assert [each.count for each in entries(frame, Limits(100, 1000))] == [2, 1, 3]
    assert [each.count for each in entries(frame, Limits(10_000, 4))] == [4, 2]


def test_columns_that_a_message_has_no_place_for_are_refused_by_name() -> None:
    with pytest.raises(WrongFrame, match="column amount: there is no place"):
        check_columns(["value", "amount"], "t")
    with pytest.raises(WrongFrame, match="no column value"):
        check_columns(["key"], "t")
    with pytest.raises(WrongFrame, match="no option topic"):
        check_columns(["value"], "")
    check_columns(["key", "value", "publish_time", "message_id", "producer"], "t")


def test_values_that_are_no_bytes_need_a_schema() -> None:
    with pytest.raises(WrongFrame, match="column value is int64"):
        value_encoder("NONE", pyarrow.int64())
    with pytest.raises(WrongFrame, match="valueSchema=avro"):
        value_encoder("NONE", pyarrow.struct([("a", pyarrow.int64())]))
    with pytest.raises(WrongFrame, match="field when is time64"):
        value_encoder("AVRO", pyarrow.struct([("when", pyarrow.time64("us"))]))


# ---- Routing


def naive_java_hash(text: str) -> int:
    found = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        found = (31 * found + unit) % (1 << 32)
    return found


@given(st.lists(st.none() | texts, min_size=1))
def test_hashes_of_keys_are_those_of_java(keys: list[str | None]) -> None:
    found = java_string_hash(pyarrow.array(keys, pyarrow.string()).cast(pyarrow.binary()))
    assert found.tolist() == [naive_java_hash(key or "") for key in keys]


def test_known_hashes() -> None:
    """`"hello".hashCode()`, and MurmurHash3_x86_32 with seed 0 as its author's and Guava's tests have it."""
    assert java_string_hash(pyarrow.array([b"hello", b"", b"polygenelubricants"])).tolist() == [99162322, 0, 1 << 31]
    known = {
        b"": 0,
        b"test": 0xBA6BD213,
        b"Hello, world!": 0xC0363E43,
        b"The quick brown fox jumps over the lazy dog": 0x2E4FF723,
    }
    assert murmur3(pyarrow.array(list(known))).tolist() == list(known.values())


def test_rows_with_a_key_go_where_apaches_clients_send_it_and_others_in_turns() -> None:
    keys = wire_keys(pyarrow.array(["hello", None, "polygenelubricants"], pyarrow.string()))
    numbers = numpy.array([0, 1000, 2500])
    assert partitions_of(keys, numbers, 1, 4, "JAVASTRINGHASH").tolist() == [99162322 % 4, 2, 0]
    assert partitions_of(None, numbers, 1, 4, "JAVASTRINGHASH").tolist() == [1, 2, 3]


# ---- Structs

STRUCT = pyarrow.struct(
    [
        ("text", pyarrow.string()),
        ("number", pyarrow.int64()),
        ("small", pyarrow.int32()),
        ("yes", pyarrow.bool_()),
        ("real", pyarrow.float64()),
        ("octets", pyarrow.binary()),
        ("when", TIME),
        ("inner", pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.string())])),
        ("items", pyarrow.list_(pyarrow.string())),
    ]
)
structs = st.none() | st.fixed_dictionaries(
    {
        "text": st.none() | texts,
        "number": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
        "small": st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        "yes": st.none() | st.booleans(),
        "real": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "octets": st.none() | st.binary(max_size=9),
        "when": st.none() | st.integers(0, 1 << 31).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
        "inner": st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | texts}),
        "items": st.none() | st.lists(st.none() | texts, max_size=3),
    }
)


def from_avro(definition: bytes, value: bytes) -> Any:
    decoder = avro.io.BinaryDecoder(io.BytesIO(value))
    found = avro.io.DatumReader(avro.schema.parse(definition.decode())).read(decoder)
    assert not decoder.reader.read(), "bytes are left over"
    return found


@given(st.lists(structs, min_size=1, max_size=10))
def test_structs_as_avro_are_what_avros_own_library_reads(values: list[Any]) -> None:
    encoder = value_encoder("AVRO", STRUCT)
    schema = encoder.schema()
    assert schema is not None
    found = encoder.encoded(pyarrow.array(values, STRUCT)).to_pylist()
    assert [each if each is None else from_avro(schema.schema_data, each) for each in found] == values


@given(st.lists(structs, min_size=1, max_size=10))
def test_structs_as_json_are_what_json_reads_with_nulls_left_out(values: list[Any]) -> None:
    def expected(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: expected(each) for name, each in value.items() if each is not None}
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        return round(value.timestamp() * 1_000_000) if isinstance(value, datetime) else value

    found = value_encoder("JSON", STRUCT).encoded(pyarrow.array(values, STRUCT)).to_pylist()
    assert [each if each is None else json.loads(each) for each in found] == [expected(value) for value in values]
