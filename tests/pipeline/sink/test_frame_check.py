"""Frames whose types no message can be made of, found without a row of them; and that those of a sound type pass."""

from typing import Any

import pyarrow
import pytest

from pipeline.pyspark_pulsar.sink.errors import WrongFrame
from pipeline.pyspark_pulsar.sink.frame_check import check_types
from pipeline.pyspark_pulsar.sink.options import parse_sink_options

BASE = {"service.url": "pulsar://127.0.0.1:6650", "admin.url": "http://127.0.0.1:8080", "topic": "t"}
STRUCT = pyarrow.struct(
    [
        ("n", pyarrow.int64()),
        ("words", pyarrow.list_(pyarrow.string())),
        ("inner", pyarrow.struct([("at", pyarrow.timestamp("us", tz="UTC")), ("price", pyarrow.decimal128(20, 4))])),
        ("counts", pyarrow.map_(pyarrow.string(), pyarrow.float64())),
    ]
)
PLAIN = pyarrow.struct([("n", pyarrow.int64()), ("words", pyarrow.list_(pyarrow.string()))])
TEXTS = pyarrow.map_(pyarrow.string(), pyarrow.string())


def check(columns: dict[str, Any], **more: str) -> None:
    given = {name: value for name, value in (BASE | more).items() if value}
    check_types(parse_sink_options(given), pyarrow.schema(columns.items()))


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ({"value": pyarrow.string()}, {}),
        ({"value": pyarrow.large_binary(), "key": pyarrow.large_string()}, {}),
        ({"value": pyarrow.binary(), "key": pyarrow.null(), "properties": TEXTS}, {}),
        (
            {"value": pyarrow.binary(), "event_time": pyarrow.timestamp("us", tz="UTC"), "topic": pyarrow.string()},
            {"topic": ""},
        ),
        ({"value": STRUCT}, {"valueSchema": "avro"}),
        ({"value": STRUCT}, {"valueSchema": "json"}),
        ({"value": STRUCT}, {"valueSchema": "auto"}),
        ({"value": PLAIN}, {"valueSchema": "protobuf_native"}),
        *(
            ({"value": kind}, {"valueSchema": "auto"})
            for kind in (
                *(pyarrow.bool_(), pyarrow.int8(), pyarrow.int16(), pyarrow.int32(), pyarrow.int64(), pyarrow.float32()),
                *(pyarrow.float64(), pyarrow.date32(), pyarrow.timestamp("us"), pyarrow.timestamp("us", tz="UTC")),
                *(pyarrow.string(), pyarrow.binary()),
            )
        ),
        ({"value": STRUCT, "key": pyarrow.int64()}, {"valueSchema": "json", "keySchema": "int64"}),
        ({"value": PLAIN, "key": PLAIN}, {"valueSchema": "avro", "keySchema": "avro", "keyValueEncoding": "separated"}),
    ],
)
def test_a_frame_of_a_sound_type_passes(columns: dict[str, Any], more: dict[str, str]) -> None:
    check(columns, **more)


@pytest.mark.parametrize(
    ("columns", "more", "said"),
    [
        ({"value": STRUCT}, {}, "column value is struct.*use valueSchema=avro or valueSchema=json"),
        ({"value": pyarrow.int64()}, {}, "column value is int64: expected string or binary"),
        ({"value": pyarrow.int64()}, {"valueSchema": "avro"}, "valueSchema=avro is for a struct"),
        ({"value": pyarrow.int64(), "key": pyarrow.int64()}, {"valueSchema": "int64"}, "column key is int64: expected string"),
        ({"value": pyarrow.binary(), "properties": pyarrow.string()}, {}, "column properties is string: expected map<string"),
        ({"value": pyarrow.binary(), "event_time": pyarrow.int64()}, {}, "column event_time is int64: expected timestamp"),
        ({"value": pyarrow.binary(), "topic": pyarrow.int64()}, {"topic": ""}, "column topic is int64: expected string"),
        ({"value": pyarrow.binary(), "key": STRUCT}, {"keySchema": "int32"}, "schema int32 is of int32"),
    ],
)
def test_a_type_that_cannot_be_written_is_named(columns: dict[str, Any], more: dict[str, str], said: str) -> None:
    with pytest.raises(WrongFrame, match=said):
        check(columns, **more)
