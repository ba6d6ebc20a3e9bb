"""Messages that the kernel writes of columns: what protobuf reads of each, compiled and plain the same bytes."""

from array import array
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from wire.generated.pulsar_api_pb2 import KeyValue, SingleMessageMetadata
from wire.payloads import batch_messages

PLAIN, INSTALLED = both("outgoing")
_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "value": st.none() | st.binary(max_size=300),
            "key": st.none() | st.text(alphabet="abé", max_size=8) | st.just("k" * 200),
            "is_base64": st.booleans(),
            "properties": st.lists(st.builds(KeyValue, key=st.just("k"), value=st.text(alphabet="ab")), max_size=2),
            "event_time": st.integers(0, 3) | st.integers(0, (1 << 63) - 1),
            "sequence_id": st.integers(0, 300) | st.integers(0, (1 << 63) - 1),
        }
    ),
    max_size=6,
)


def laid_out(parts: list[bytes], before: bytes = b"") -> tuple[bytes, memoryview]:
    bounds = [len(before) + sum(map(len, parts[:at])) for at in range(len(parts) + 1)]
    return before + b"".join(parts), memoryview(array("i", bounds))


def put(module: ModuleType, rows: list[dict[str, Any]], room: int) -> tuple[bytes, list[int]]:
    flags = [
        (row["value"] is None) * module.IS_NULL
        + row["is_base64"] * module.IS_BASE64
        + (row["key"] is not None) * module.HAS_KEY
        for row in rows
    ]
    properties = [SingleMessageMetadata(payload_size=0, properties=row["properties"]).SerializeToString()[:-2] for row in rows]
    ends, into = array("q", [0] * len(rows)), bytearray(room)
    size = module.put_messages(
        *laid_out([row["value"] or b"" for row in rows], b"of a slice before"),
        *laid_out([(row["key"] or "").encode() for row in rows]),
        *laid_out(properties),
        *(memoryview(array("Q", [row[name] for row in rows])) for name in ("event_time", "sequence_id")),
        *(memoryview(each) for each in (bytearray(flags), ends, into)),
    )
    return bytes(into[:size]), ends.tolist()


@given(_ROWS)
def test_messages_are_what_protobuf_reads_of_them(rows: list[dict[str, Any]]) -> None:
    found, ends = put(INSTALLED, rows, 10_000)
    assert put(PLAIN, rows, 10_000) == (found, ends)
    read = list(batch_messages(found, len(rows)))
    assert [bytes(body) for _, body in read] == [row["value"] or b"" for row in rows]
    for (about, body), row in zip(read, rows, strict=True):
        expected = SingleMessageMetadata(payload_size=len(body), sequence_id=row["sequence_id"], properties=row["properties"])
        if row["key"] is not None:
            expected.partition_key = row["key"]
        if row["event_time"]:
            expected.event_time = row["event_time"]
        if row["is_base64"]:
            expected.partition_key_b64_encoded = True
        if row["value"] is None:
            expected.null_value = True
        assert about == expected
    assert ends == [len(b"".join(_whole(found, len(rows))[: at + 1])) for at in range(len(rows))]


def _whole(data: bytes, count: int) -> list[bytes]:
    """The messages with what is before them."""
    parts, at = [], 0
    for about, body in batch_messages(data, count):
        end = at + 4 + about.ByteSize() + len(body)
        parts.append(data[at:end])
        at = end
    return parts


@pytest.mark.parametrize("module", [PLAIN, INSTALLED])
def test_a_room_that_is_too_small_is_refused(module: ModuleType) -> None:
    row = {"value": b"1" * 30, "key": "k", "is_base64": False, "properties": [], "event_time": 0, "sequence_id": 7}
    assert len(put(module, [row], 73)[0]) == 41
    with pytest.raises(IndexError, match="row 0: no room"):
        put(module, [row], 72)


@pytest.mark.parametrize("module", [PLAIN, INSTALLED])
@pytest.mark.parametrize("bounds", [(0, 5), (3, 2), (-1, 2)])
def test_bounds_that_do_not_fit_are_refused(module: ModuleType, bounds: tuple[int, int]) -> None:
    nothing, none, ids = memoryview(array("i")), memoryview(array("Q")), memoryview(array("Q", [1]))
    rest = (memoryview(bytearray(1)), memoryview(array("q", [0])), memoryview(bytearray(100)))
    with pytest.raises(IndexError, match="beyond"):
        module.put_messages(b"1234", memoryview(array("i", bounds)), b"", nothing, b"", nothing, none, ids, *rest)
