"""Messages read by shapes and by marks are the same as read a field and a message at a time; also for false marks."""

import random
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.decode import batches, protobuf_columns
from pipeline.pyspark_pulsar.decode.batches import messages_of
from pipeline.pyspark_pulsar.decode.marked_messages import marks
from pipeline.pyspark_pulsar.decode.message_shapes import shape_of
from pipeline.pyspark_pulsar.decode.octets import Octets, Places, padded
from pipeline.pyspark_pulsar.decode.protobuf_columns import Columns, Fields, scan
from tests.pipeline.sections import pairs, single
from wire.generated.pulsar_api_pb2 import KeyValue, SingleMessageMetadata

_WANTED = Fields((3, 5, 6, 8, 9), (2, 5), (1, 8))
_metadata = st.builds(
    lambda key, size, time, ids, count: SingleMessageMetadata(
        payload_size=size,
        partition_key=key,
        event_time=time,
        sequence_id=ids,
        properties=[KeyValue(key=name, value=key) for name in "ab"[:count]],
    ).SerializeToString(),
    st.sampled_from(["", "k", "key", "k" * 130]),
    st.sampled_from([0, 1, 127, 128, 70_000]),
    st.sampled_from([0, 5, 1 << 40, (1 << 64) - 1]),
    st.integers(0, 1 << 63),
    st.integers(0, 2),
)


def _as_lists(found: Columns) -> dict[str, Any]:
    return {
        "broken": found.is_broken.tolist(),
        "numbers": {number: (each.values.tolist(), each.present.tolist()) for number, each in found.numbers.items()},
        "spans": {number: (each.starts.tolist(), each.ends.tolist()) for number, each in found.spans.items()},
        "repeated": {
            number: (each.rows.tolist(), each.starts.tolist(), each.ends.tolist()) for number, each in found.repeated.items()
        },
    }


def _scanned(monkeypatch: pytest.MonkeyPatch, messages: list[bytes], least: int) -> dict[str, Any]:
    ends = numpy.cumsum([len(each) for each in messages], dtype=numpy.int64)
    starts = ends - numpy.array([len(each) for each in messages], numpy.int64)
    with monkeypatch.context() as patch:
        patch.setattr(protobuf_columns, "_ALIKE_MIN", least)
        return _as_lists(scan(padded(b"".join(messages)), starts, ends, _WANTED))


@given(st.lists(_metadata | st.binary(max_size=20), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_messages_read_by_their_shapes_are_what_they_are_field_by_field(some: list[bytes], chance: random.Random) -> None:
    messages = [chance.choice(some) for _ in range(40)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert _scanned(monkeypatch, messages, 1) == _scanned(monkeypatch, messages, 1 << 30)


def test_a_shape_is_of_tags_lengths_and_ends_of_varints_and_of_nothing_else() -> None:
    first, alike, longer, other = (
        SingleMessageMetadata(payload_size=size, partition_key=key).SerializeToString()
        for size, key in ((5, "abc"), (127, "xyz"), (128, "ab"), (5, "abcd"))
    )
    assert len(first) == len(longer)
    shape = shape_of(first)
    assert shape is not None
    data, ends = padded(first + alike + longer + other), numpy.cumsum([len(first)] * 3 + [len(other)])
    starts = numpy.array([0, *ends[:-1]])
    assert shape.rows_like_it(data, starts, ends).tolist() == [0, 1]
    sound, unending = b"\x28\x05\x40\x07", b"\x28\x05\x40\x87"
    shape = shape_of(sound)
    assert shape is not None
    assert shape.rows_like_it(padded(sound + unending), numpy.array([0, 4]), numpy.array([4, 8])).tolist() == [0]
    assert [shape_of(each) for each in (b"", b"\x08", b"\x0a\x05ab", b"\x0b", b"\x08" + b"\xff" * 12, first * 20)] == [None] * 6


def _inner(chance: random.Random) -> bytes:
    """Payload that looks like a message."""
    return single(b"v" * chance.randrange(4), partition_key="k", sequence_id=chance.randrange(300))


def _uneven(chance: random.Random, count: int, inner: int) -> list[bytes]:
    payloads = [b"v" * chance.randrange(60) + b"".join(_inner(chance) for _ in range(inner)) for _ in range(count)]
    return [
        single(each, sequence_id=row, properties=pairs(p="q" * (300 * (row % 97 == 96)))) for row, each in enumerate(payloads)
    ]


@pytest.mark.parametrize("inner", [0, 1, 3])
@pytest.mark.parametrize("cut", [0, 3])
def test_messages_of_changing_lengths_are_found_where_they_are(inner: int, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With false marks, with metadata of more than 255 bytes (no mark), and with a batch that is cut off."""
    chance = random.Random(inner)
    groups = [_uneven(chance, count, inner if count != 200 else 0) for count in (200, 1, 150, 90)]
    joined = [b"".join(each) for each in groups]
    ends = numpy.cumsum([len(each) + 7 for each in joined], dtype=numpy.int64)
    starts = ends - numpy.array([len(each) for each in joined])
    data = padded(b"".join(b"\0" * 7 + each for each in joined))
    counts = numpy.array([len(each) for each in groups])
    limits = ends - cut
    asked: list[int] = []

    def counting(octets: Octets, start: int, end: int) -> Places:
        asked.append(start)
        return marks(octets, start, end)

    monkeypatch.setattr(batches, "marks", counting)
    found = messages_of(data, starts, limits, counts)
    monkeypatch.setattr(batches, "_MARKED_MIN", 1 << 40)
    expected = messages_of(data, starts, limits, counts)
    assert len(asked) == 1
    for name in ("metadata_starts", "metadata_ends", "payload_ends", "batches", "indexes", "is_broken"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    assert found.is_broken.any() == bool(cut)
