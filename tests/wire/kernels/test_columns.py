"""Columns of messages: what protobuf reads of each, compiled and plain; of anything else it says that it is not for it."""

import contextlib
from array import array
from types import ModuleType
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from wire.errors import RemoteError
from wire.generated.pulsar_api_pb2 import KeyValue, SingleMessageMetadata
from wire.payloads import batch_messages

PLAIN, INSTALLED = both("columns")
Row = tuple[Any, ...]
"""Batch, index, start and end of the metadata, end of the payload, event time, sequence id, key, flags."""

_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "partition_key": st.text(alphabet="abé", max_size=8) | st.just("k" * 200),
        "event_time": st.integers(0, (1 << 64) - 1) | st.integers(0, 300),
        "sequence_id": st.integers(0, (1 << 64) - 1) | st.integers(0, 300),
        "compacted_out": st.booleans(),
        "partition_key_b64_encoded": st.booleans(),
        "null_value": st.booleans(),
        "null_partition_key": st.booleans(),
        "ordering_key": st.binary(max_size=3),
        "properties": st.lists(st.builds(KeyValue, key=st.just("k"), value=st.just("v")), max_size=2),
    },
)
_MESSAGES = st.lists(st.tuples(st.binary(max_size=20) | st.just(b"v" * 300), _FIELDS), max_size=5)


def _encoded(message: tuple[bytes, dict[str, Any]]) -> bytes:
    body, about = message
    encoded = SingleMessageMetadata(payload_size=len(body), **about).SerializeToString()
    return len(encoded).to_bytes(4) + encoded + body


def taken(module: ModuleType, payloads: list[bytes], counts: list[int]) -> list[Row] | None:
    data = b"".join(payloads)
    ends = [sum(map(len, payloads[: at + 1])) for at in range(len(payloads))]
    starts = [end - len(payload) for end, payload in zip(ends, payloads, strict=True)]
    total = sum(counts)
    columns, flags = array("q", [0] * module.COLUMNS * total), bytearray(total)
    places = [memoryview(array("q", each)) for each in (starts, ends, counts)]
    if not module.take_messages(data, *places, memoryview(columns), memoryview(flags)):
        return None
    rows = [columns[row::total].tolist() for row in range(total)]
    keys = [data[row[5] : row[6]] if row[5] >= 0 else None for row in rows]
    return [(*row[:5], *row[7:], key, flag) for row, key, flag in zip(rows, keys, flags, strict=True)]


def _octets(text: str | bytes) -> bytes:
    """Protobuf gives what is no text as it is."""
    return text if isinstance(text, bytes) else text.encode()


def expected(payloads: list[bytes], counts: list[int]) -> list[Row]:
    rows, base = [], 0
    for batch, (payload, count) in enumerate(zip(payloads, counts, strict=True)):
        at = base
        for index, (about, body) in enumerate(batch_messages(payload, count)):
            start = at + 4
            stop = start + int.from_bytes(payload[at - base : start - base])
            at = stop + len(body)
            key = _octets(about.partition_key) if about.HasField("partition_key") else None
            named = (about.null_value, about.partition_key_b64_encoded, about.compacted_out, about.HasField("sequence_id"))
            flags = sum(1 << bit for bit, flag in enumerate((*named, len(about.properties) > 0)) if flag)
            rows.append((batch, index, start, stop, at, about.event_time, about.sequence_id, key, flags))
        base += len(payload)
    return rows


@given(st.lists(_MESSAGES, max_size=4))
def test_messages_are_taken_as_protobuf_reads_them(batches: list[list[tuple[bytes, dict[str, Any]]]]) -> None:
    payloads, counts = [b"".join(map(_encoded, each)) for each in batches], [len(each) for each in batches]
    is_large = any(about.get(name, 0) >> 63 for each in batches for _, about in each for name in ("event_time", "sequence_id"))
    for module in (PLAIN, INSTALLED):
        # no client writes numbers beyond 63 bits: those batches are read another way
        assert taken(module, payloads, counts) == (None if is_large else expected(payloads, counts))


@given(st.lists(_MESSAGES, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_both_kernels_take_any_bytes_alike_and_never_otherwise_than_protobuf(batches: list[Any], chance: Any) -> None:
    payloads, counts = [], []
    for each in batches:
        hurt = bytearray(b"".join(map(_encoded, each)))
        for _ in range(chance.randrange(3) if hurt else 0):
            hurt[chance.randrange(len(hurt))] = chance.choice((0, 1, 0x12, 0x18, 127, 128, 255))
        payloads.append(bytes(hurt[: chance.randrange(len(hurt) + 1)] if chance.random() < 0.3 else hurt))
        counts.append(max(0, len(each) + chance.choice((0, 0, 0, -1, 1))))
    found = taken(INSTALLED, payloads, counts)
    assert found == taken(PLAIN, payloads, counts)
    if found is not None:
        with contextlib.suppress(RemoteError, DecodeError):  # protobuf looks into properties too
            assert found == expected(payloads, counts)


@given(st.lists(st.binary(max_size=20), max_size=10), st.randoms(use_true_random=False))
def test_places_are_gathered_in_their_order(parts: list[bytes], chance: Any) -> None:
    data = b"".join(parts)
    ends = [sum(map(len, parts[: at + 1])) for at in range(len(parts))]
    spans = [(end - len(part), end) for end, part in zip(ends, parts, strict=True)] + [(-1, -1)]
    chance.shuffle(spans)
    for module in (PLAIN, INSTALLED):
        room, offsets = bytearray(len(data)), array("i", [0] * (len(spans) + 1))
        places = [memoryview(array("q", [span[side] for span in spans])) for side in (0, 1)]
        module.gather(data, *places, memoryview(offsets), memoryview(room))
        wanted = [data[max(start, 0) : max(end, 0)] for start, end in spans]
        assert [bytes(room[offsets[at] : offsets[at + 1]]) for at in range(len(spans))] == wanted


@pytest.mark.parametrize(("start", "end", "room"), [(0, 5, 9), (3, 5, 9), (-2, 1, 9), (0, 4, 3)])
def test_a_place_that_is_not_there_or_does_not_fit_is_refused(start: int, end: int, room: int) -> None:
    for module in (PLAIN, INSTALLED):
        places = [memoryview(array("q", [each])) for each in (start, end)]
        with pytest.raises(IndexError, match="place 0"):
            module.gather(b"1234", *places, memoryview(array("i", [0, 0])), memoryview(bytearray(room)))


def columns_taken(module: ModuleType, payloads: list[bytes], counts: list[int], rooms: tuple[int, int]) -> Any:
    """Keys and values, None where a key is absent or a column is not wanted; -1 where they are not for the kernel."""
    data, total = b"".join(payloads), sum(counts)
    ends = [sum(map(len, payloads[: at + 1])) for at in range(len(payloads))]
    starts = [end - len(payload) for end, payload in zip(ends, payloads, strict=True)]
    places = memoryview(array("q", [*starts, *ends, *counts]))
    keys, values, flags = bytearray(rooms[0]), bytearray(rooms[1]), bytearray(total)
    bounds = [array("i", [0] * (total + 1)) for _ in range(2)]
    views = [memoryview(each) for each in (keys, bounds[0], values, bounds[1], flags)]
    absent = module.take_columns(data, places, *views)
    if absent < 0:
        return absent
    assert absent == flags.count(0)
    parts = [
        [bytes(room[at[row] : at[row + 1]]) for row in range(total)] for room, at in zip((keys, values), bounds, strict=True)
    ]
    return [each if flag else None for each, flag in zip(parts[0], flags, strict=True)], parts[1]


@given(st.lists(_MESSAGES, max_size=4), st.booleans(), st.booleans())
def test_keys_and_values_are_copied_as_protobuf_reads_them(batches: list[Any], with_keys: bool, with_values: bool) -> None:
    payloads, counts = [b"".join(map(_encoded, each)) for each in batches], [len(each) for each in batches]
    size = sum(map(len, payloads))
    about = [each for messages in batches for _, each in messages]
    is_large = any(each.get(name, 0) >> 63 for each in about for name in ("event_time", "sequence_id"))
    is_odd = any(each.get(name) for each in about for name in ("null_value", "partition_key_b64_encoded", "compacted_out"))
    keys = [each["partition_key"].encode() if "partition_key" in each else None for each in about]
    values = [body for messages in batches for body, _ in messages]
    expected: Any = (
        [each if with_keys or each is None else b"" for each in keys],
        [each if with_values else b"" for each in values],
    )
    for module in (PLAIN, INSTALLED):
        found = columns_taken(module, payloads, counts, (size * with_keys, size * with_values))
        assert found == (-1 if is_large or is_odd else expected)


@given(st.lists(_MESSAGES, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_both_kernels_copy_any_bytes_alike_in_rooms_of_any_size(batches: list[Any], chance: Any) -> None:
    payloads, counts = [], []
    for each in batches:
        hurt = bytearray(b"".join(map(_encoded, each)))
        for _ in range(chance.randrange(3) if hurt else 0):
            hurt[chance.randrange(len(hurt))] = chance.choice((0, 1, 0x12, 0x18, 127, 128, 255))
        payloads.append(bytes(hurt))
        counts.append(max(0, len(each) + chance.choice((0, 0, 0, -1, 1))))
    rooms = (chance.choice((1, 5, 1000)), chance.choice((1, 20, 5000)))
    assert columns_taken(INSTALLED, payloads, counts, rooms) == columns_taken(PLAIN, payloads, counts, rooms)
