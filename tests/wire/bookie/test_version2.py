"""Version 2 of the bookie protocol against bytes that Apache's client (4.17.3) wrote, and faults of bad ones."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.bookie.bookie_samples import KEY, add, answer, batch_read, entry, frame, read
from tests.wire.bookie.version3_samples import LAC_FENCE_READ
from wire.bookie import version2, version3
from wire.bookie.requests import Add, Authenticate, BatchRead, Read, Rejected
from wire.errors import MalformedCommand
from wire.generated import bookie_protocol_pb2 as api
from wire.kernels.bookie_requests import take_adds

CRC32C_ADD = bytes.fromhex(
    "00000041020100002aa226ba095b6969a64871977693b14671710d76000000000000000700000000000000030000000000000002"
    "0000000000000064a2790d2c68656c6c6f"
)
"""Ledger 7, entry 3, last add confirmed 2, length 100, password "pw", payload "hello"."""


def test_apaches_add_is_read_byte_for_byte() -> None:
    run = take_adds(CRC32C_ADD, 0, len(CRC32C_ADD), 10, 1 << 20)
    assert run is not None
    assert run.master_key.hex() == "2aa226ba095b6969a64871977693b14671710d76"
    assert (run.entries.ledger_id, run.entries.first_entry_id) == (7, 3)
    assert bytes(run.entries.buffer) == CRC32C_ADD[28:]
    slow = version2.decode(CRC32C_ADD[4:]).operation
    assert isinstance(slow, Add)
    assert (slow.entries.buffer, slow.master_key) == (CRC32C_ADD[28:], run.master_key)


def test_no_request_of_version_2_is_one_of_version_3() -> None:
    for data in (add(7, 5), read(7, 5), batch_read(7, 5, 1, 1), CRC32C_ADD):
        assert version3.decode(data[4:]) is None
    assert version3.decode(b"") is None
    assert version3.decode(LAC_FENCE_READ[:7]) is None


def test_requests_of_version_2_are_read() -> None:
    assert version2.decode(read(7, -1)[4:]).operation == Read(7, -1)
    assert version2.decode(read(7, 5, flags=5, key=KEY)[4:]).operation == Read(7, 5, KEY)
    assert version2.decode(batch_read(7, 5, 3, 1000)[4:]).operation == BatchRead(7, 5, 77, 3, 1000)
    fencing = frame(batch_read(7, 5, 3, 1000, flags=1)[4:] + KEY)
    assert version2.decode(fencing[4:]).operation == BatchRead(7, 5, 77, 3, 1000, KEY)
    message = api.AuthMessage(authPluginName="plugin", payload=b"x").SerializeToString()
    request = version2.decode(b"\x02\x03\0\0" + message)
    assert request.operation == Authenticate("plugin", b"x")
    assert request.answers.authenticated("plugin", b"x") == frame(b"\x02\x03\0\0" + message)


def test_flags_are_read_in_version_2_alone() -> None:
    operation = version2.decode(b"\x01" + read(7, 5, flags=1, key=KEY)[5:]).operation
    assert operation == Read(7, 5)


@pytest.mark.parametrize(
    ("data", "answered"),
    [
        (read(-7, 5), answer(2, 100, -7, 5)),
        (read(7, -2), answer(2, 100, 7, -2)),
        (read(7, 5, flags=1, key=KEY[:-1]), answer(2, 100, 7, 5)),
        (add(7, -1), answer(1, 100, 7, -1)),
        (frame(add(7, 5)[4:28] + entry(7, 5)[:31]), answer(1, 100, 7, 5)),
        (frame(b"\x03" + read(7, 5)[5:]), frame(b"\x03" + answer(2, 103, 7, 5)[5:])),
        (frame(b"\x80" + add(7, 5)[5:]), frame(b"\x80" + answer(1, 103, 7, 5)[5:])),
    ],
)
def test_an_impossible_request_is_answered_with_the_code_of_the_protocol(data: bytes, answered: bytes) -> None:
    operation = version2.decode(data[4:]).operation
    assert isinstance(operation, Rejected)
    assert operation.answer == answered


@pytest.mark.parametrize("data", [read(7, 5)[:-1], add(7, 5)[:30], b"\0\0\0\0\x02\x09\0\0", batch_read(7, 5, 1, 1)[:-1]])
def test_a_request_too_short_to_answer_raises_malformed_command(data: bytes) -> None:
    with pytest.raises(MalformedCommand):
        version2.decode(data[4:])


@given(st.binary(max_size=120))
def test_any_bytes_are_a_request_or_a_mistake(data: bytes) -> None:
    if version3.decode(data) is None and len(data) >= 4:
        with contextlib.suppress(MalformedCommand):
            version2.decode(data)
