"""Entries to Arrow: what protobuf says of each message, whatever the mixture; and no bytes that make it fail or read beyond."""

import random
from collections.abc import Iterator
from typing import Any

import cramjam
import numpy
import pyarrow
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.decode import arrow_columns, singles
from pipeline.pyspark_pulsar.decode.arrow_columns import SCHEMA, batch_of
from pipeline.pyspark_pulsar.decode.batches import messages_of
from pipeline.pyspark_pulsar.decode.octets import padded, varints_at
from pipeline.pyspark_pulsar.decode.protobuf_columns import Fields, scan
from pipeline.pyspark_pulsar.decode.rows import rows_of
from tests.pipeline.sections import batch, block, metadata, single, with_index
from wire.errors import RemoteError
from wire.generated.pulsar_api_pb2 import KeyValue, SingleMessageMetadata
from wire.payloads import batch_messages, message_metadata, payload_section, split_section, stored_broker_entry_metadata

COLUMNS = [name for name in SCHEMA.names if name != "error"]
_texts = st.text(alphabet="abcé", max_size=20)
_values = st.one_of(st.binary(max_size=40), st.just(b"x" * 100), st.just(b"y" * 12), st.just(b"z" * 13))
_properties = st.lists(st.tuples(st.sampled_from(["a", "b", ""]) | _texts, _texts), max_size=4)
"""Names can come again."""
_messages = st.tuples(_values, st.none() | _texts, _properties, st.integers(0, 1 << 42), st.booleans())


@pytest.fixture(scope="module", autouse=True, params=["as it is installed", "by numpy alone"])
def _decoder(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds with the compiled kernel, and without it."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "by numpy alone":
            patch.setattr(singles, "kernel", None)
            patch.setattr(arrow_columns, "kernel", None)
        yield


@st.composite
def _entries(draw: st.DrawFn) -> bytes:
    sequence_id = draw(st.integers(0, 1 << 40))
    version = draw(st.sampled_from([None, (3).to_bytes(8), b"x"]))
    about: dict[str, Any] = {} if version is None else {"schema_version": version}
    if draw(st.booleans()):
        chosen = draw(st.lists(_messages, min_size=1, max_size=12))
        section = batch([single(each[0], **_single(each)) for each in chosen], sequence_id, draw(st.booleans()), **about)
    else:
        message = draw(_messages)
        section = payload_section(metadata(sequence_id, **_single(message), **about), message[0])
    return with_index(section, draw(st.integers(100, 1 << 40))) if draw(st.booleans()) else section


def _single(message: tuple[bytes, str | None, list[tuple[str, str]], int, bool]) -> dict[str, Any]:
    _, key, properties, event_time, null = message
    found: dict[str, Any] = {
        "properties": [KeyValue(key=name, value=value) for name, value in properties],
        "event_time": event_time,
    }
    return found | ({} if key is None else {"partition_key": key}) | ({"null_value": True} if null else {})


def naive(sections: tuple[bytes, ...], topic: str = "t") -> list[dict[str, Any]]:
    rows = []
    for entry_id, section in enumerate(sections):
        split = split_section(section)
        about = message_metadata(split)
        payload = bytes(split.payload)
        if about.compression:
            payload = bytes(cramjam.lz4.decompress_block(payload, output_len=about.uncompressed_size))
        broker = stored_broker_entry_metadata(section)
        count = about.num_messages_in_batch if about.HasField("num_messages_in_batch") else 0
        messages: list[tuple[Any, bytes]] = [(about, payload)]
        if count:
            messages = [(one, bytes(body)) for one, body in batch_messages(payload, count)]
        for place, (one, body) in enumerate(messages):
            sequence_id = about.sequence_id + place
            if one.HasField("sequence_id"):
                sequence_id = one.sequence_id
            rows.append(
                {
                    "key": one.partition_key.encode() if one.HasField("partition_key") else None,
                    "value": None if one.null_value else body,
                    "properties": _last_of_each([(pair.key, pair.value) for pair in one.properties]),
                    "topic": topic,
                    "message_id": {"ledger_id": 7, "entry_id": entry_id, "batch_index": place if count else -1},
                    "index": None if broker is None else broker.index - max(count, 1) + 1 + place,
                    "publish_time": about.publish_time * 1000,
                    "event_time": one.event_time * 1000 or None,
                    "producer": about.producer_name,
                    "sequence_id": sequence_id,
                    "schema_version": int.from_bytes(about.schema_version) if len(about.schema_version) == 8 else None,
                }
            )
    return rows


def _last_of_each(properties: list[tuple[str, str]]) -> list[tuple[str, str]]:
    last = {name: place for place, (name, _) in enumerate(properties)}
    return [each for place, each in enumerate(properties) if last[each[0]] == place]


def decoded(sections: tuple[bytes, ...]) -> list[dict[str, Any]]:
    rows = rows_of(block(*sections))
    assert not any(rows.errors)
    batch = batch_of(rows, "t", COLUMNS)
    batch.validate(full=True)
    for name in ("publish_time", "event_time"):
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, name, batch.column(name).cast(pyarrow.int64()))
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


@given(st.lists(_entries(), max_size=8).map(tuple))
def test_every_mixture_of_entries_reads_as_protobuf_reads_it(sections: tuple[bytes, ...]) -> None:
    assert decoded(sections) == naive(sections)


def test_long_batches_of_one_length_and_of_changing_lengths_read_alike() -> None:
    chance = random.Random(3)
    even = [single(b"v" * 100, sequence_id=index) for index in range(5000)]
    uneven = [single(b"v" * chance.randrange(200), partition_key="k" * chance.randrange(5)) for _ in range(3000)]
    mostly = [single(b"v" * (100 + (index % 700 == 699))) for index in range(4000)]
    sections = (batch(even), batch(uneven, 10), batch(mostly, 20, compressed=True), batch(even[:1], 30))
    assert decoded(sections) == naive(sections)


def test_a_message_that_compaction_took_out_is_no_row_and_a_marker_neither() -> None:
    messages = [single(b"a"), single(b"b", compacted_out=True), single(b"c")]
    rows = rows_of(block(batch(messages), payload_section(metadata(marker_type=10), b"m"), payload_section(metadata(), b"d")))
    found = batch_of(rows, "t", ["value", "message_id"]).to_pylist()
    assert [(each["value"], each["message_id"]["entry_id"], each["message_id"]["batch_index"]) for each in found] == [
        *((b"a", 0, 0), (b"c", 0, 2)),
        (b"d", 2, -1),
    ]


def test_a_time_that_no_calendar_has_is_null() -> None:
    latest = 253_402_300_799_999
    sections = [payload_section(metadata(event_time=each), b"") for each in (latest, latest + 1, (1 << 64) - 1, 0)]
    found = batch_of(rows_of(block(*sections)), "t", ["event_time"]).to_pylist()
    assert [each["event_time"] and each["event_time"].year for each in found] == [9999, None, None, None]


def test_a_publish_time_that_no_calendar_has_is_the_end_of_the_last_year() -> None:
    latest = 253_402_300_799_999
    about = [metadata() for _ in range(4)]
    for each, time in zip(about, (0, latest, latest + 1, (1 << 64) - 1), strict=True):
        each.publish_time = time
    sections = [payload_section(each, b"") for each in about]
    found = batch_of(rows_of(block(*sections)), "t", ["publish_time"]).to_pylist()
    assert [f"{each['publish_time']:%Y-%m-%d %H}" for each in found] == [
        "1970-01-01 00",
        "9999-12-31 23",
        *["9999-12-30 23"] * 2,
    ]


def test_keys_that_are_bytes_are_decoded() -> None:
    section = payload_section(metadata(partition_key="AP8=", partition_key_b64_encoded=True), b"")
    assert batch_of(rows_of(block(section)), "t", ["key"]).to_pylist() == [{"key": b"\x00\xff"}]


def _damaged() -> dict[str, bytes]:
    good = payload_section(metadata(), b"payload")
    short = batch([single(b"a"), single(b"b")])
    lying = message_metadata(split_section(short))
    lying.num_messages_in_batch = 3
    huge = message_metadata(split_section(short))
    huge.num_messages_in_batch = 0x7FFFFFFF
    return {
        "checksum": good[:-1] + b"!",
        "cut off": good[:2] + (0).to_bytes(4) + (5000).to_bytes(4) + good[10:],
        "chunk": payload_section(metadata(uuid="u", num_chunks_from_msg=2, chunk_id=0), b"half"),
        "not where it should be": payload_section(lying, bytes(split_section(short).payload)),
        "should be": payload_section(huge, bytes(split_section(short).payload)),
        "decompressed": payload_section(metadata(compression=1, uncompressed_size=100), b"\xff\xff\xff"),
        "unreadable": payload_section(metadata(), b"")[:6] + (2).to_bytes(4) + b"\xff\xff",
    }


@pytest.mark.parametrize("reason", sorted(_damaged()))
def test_an_entry_that_cannot_be_read_is_one_row_with_the_reason_and_its_neighbours_are_read(reason: str) -> None:
    good = batch([single(b"a"), single(b"b")])
    rows = rows_of(block(good, _damaged()[reason], good), verifies_checksums=reason == "checksum")
    found = batch_of(rows, "topic", ["value", "error", "message_id"]).to_pylist()
    assert [each["value"] for each in found if each["error"] is None] == [b"a", b"b", b"a", b"b"]
    [bad] = [each["error"] for each in found if each["error"] is not None]
    assert bad.startswith("topic at 7:1: ")
    assert reason in bad


@given(st.lists(_entries(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_no_damage_makes_it_fail_or_changes_an_undamaged_neighbour(sections: list[bytes], chance: random.Random) -> None:
    hurt = bytearray(sections[0])
    for _ in range(chance.randrange(1, 6)):
        hurt[chance.randrange(len(hurt))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    good = payload_section(metadata(), b"good")
    rows = rows_of(block(bytes(hurt[: chance.randrange(1, len(hurt) + 1)]), good), verifies_checksums=False)
    found = batch_of(rows, "t", SCHEMA.names)
    found.validate(full=True)
    assert [each.name for each in SCHEMA if found.column(each.name).null_count and not each.nullable] == []
    last = found.to_pylist()[-1]
    assert (last["value"], last["error"], last["message_id"]["entry_id"]) == (b"good", None, 1)


@given(st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 300), min_size=1))
def test_varints_of_every_length(values: list[int]) -> None:
    encoded = [SingleMessageMetadata(payload_size=0, sequence_id=value).SerializeToString()[3:] for value in values]
    ends = numpy.cumsum([len(each) for each in encoded])
    found, sizes = varints_at(padded(b"".join(encoded)), numpy.concatenate(([0], ends[:-1])))
    assert (found.tolist(), sizes.tolist()) == (values, [len(each) for each in encoded])


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_a_scan_of_anything_says_broken_only_where_protobuf_does(messages: list[bytes]) -> None:
    ends = numpy.cumsum([len(each) for each in messages], dtype=numpy.int64)
    starts = ends - numpy.array([len(each) for each in messages], numpy.int64)
    columns = scan(padded(b"".join(messages)), starts, ends, Fields(numbers=(3, 8), spans=(2,)))
    for row, message in enumerate(messages):
        try:
            SingleMessageMetadata.FromString(message)
        except DecodeError:
            continue  # a scan looks at fewer things than protobuf: what it takes may still be wrong
        groups = any(octet & 7 in (3, 4) for octet in message)
        assert groups or not columns.is_broken[row]


@given(st.lists(st.tuples(st.binary(max_size=30), st.integers(0, 4)), min_size=1, max_size=6))
def test_batches_of_anything_are_split_as_one_message_at_a_time_or_called_broken(batches: list[tuple[bytes, int]]) -> None:
    payloads = [each for each, _ in batches]
    ends = numpy.cumsum([len(each) for each in payloads], dtype=numpy.int64)
    starts = ends - numpy.array([len(each) for each in payloads], numpy.int64)
    found = messages_of(padded(b"".join(payloads)), starts, ends, numpy.array([count for _, count in batches]))
    for index, (payload, count) in enumerate(batches):
        try:
            expected = [len(body) for _, body in batch_messages(payload, count)]
        except (RemoteError, DecodeError):
            continue
        if found.is_broken[index]:
            assert any(octet & 7 in (3, 4) for octet in payload)
            continue
        mine = found.batches == index
        assert (found.payload_ends - found.metadata_ends)[mine].tolist() == expected
