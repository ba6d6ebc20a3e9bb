"""The primitives of the kernels in Python, beside protobuf and Python's own integers."""

import crc32c
from google.protobuf.internal import decoder, encoder
from hypothesis import given
from hypothesis import strategies as st

from wire.kernels.octets import (
    crc32c_joined,
    crc32c_of,
    field_end,
    read_u16,
    read_u32,
    read_u64,
    varint_end,
    varint_size,
    varint_value,
    write_u32,
    write_u64,
    write_varint,
)

WORDS = st.integers(0, (1 << 64) - 1)


def varint(value: int) -> bytes:
    return encoder._VarintBytes(value)  # type: ignore[attr-defined, no-any-return]


@given(WORDS, st.integers(0, 3))
def test_a_varint_is_written_and_read_as_protobuf_does_it(value: int, at: int) -> None:
    room = bytearray(at + 10)
    after = write_varint(room, at, value)
    assert (bytes(room[at:after]), after - at) == (varint(value), varint_size(value))
    assert varint_end(room, at, after) == after
    assert varint_value(room, at, after) == value == decoder._DecodeVarint(room, at)[0]  # type: ignore[attr-defined]


def test_a_varint_that_is_cut_off_or_beyond_64_bits_has_no_end() -> None:
    assert varint_end(b"\x80", 0, 1) == 0
    assert varint_end(b"\x80\x01", 0, 1) == 0
    assert varint_end(b"", 0, 0) == 0
    assert varint_end(b"\xff" * 9 + b"\x01", 0, 10) == 10
    assert varint_end(b"\xff" * 9 + b"\x02", 0, 10) == 0
    assert varint_end(b"\x80" * 10 + b"\x01", 0, 11) == 0


def test_a_field_ends_where_protobuf_ends_it() -> None:
    for wire_type, data in ((0, varint(300)), (1, bytes(8)), (5, bytes(4)), (2, varint(3) + b"abc"), (2, varint(0))):
        assert field_end(data + b"more", 0, len(data) + 4, wire_type) == len(data)
        assert field_end(data, 0, len(data) - 1, wire_type) == 0, "it is cut off"


def test_groups_and_unknown_wire_types_are_malformed() -> None:
    assert [field_end(bytes(20), 0, 20, wire_type) for wire_type in (3, 4, 6, 7)] == [0] * 4


def test_a_length_near_the_largest_number_is_beyond_the_end_and_not_around_it() -> None:
    data = varint((1 << 64) - 1) + b"abc"
    assert field_end(data, 0, len(data), 2) == 0


@given(WORDS)
def test_words_are_big_endian_and_cut_to_their_size(value: int) -> None:
    room = bytearray(12)
    write_u64(room, 0, value)
    write_u32(room, 8, value)
    assert bytes(room) == value.to_bytes(8, "big") + (value & 0xFFFFFFFF).to_bytes(4, "big")
    assert (read_u64(room, 0), read_u32(room, 0), read_u16(room, 6)) == (value, value >> 32, value & 0xFFFF)


def test_negative_numbers_are_written_in_twos_complement() -> None:
    room = bytearray(8)
    write_u64(room, 0, -1)
    assert bytes(room) == b"\xff" * 8
    assert varint_size(-1) == 10


@given(st.binary(max_size=40), st.binary(max_size=300))
def test_the_checksum_of_two_pieces_is_that_of_the_whole(first: bytes, second: bytes) -> None:
    whole = crc32c.crc32c(first + second)
    assert crc32c_of(second, 0, len(second), crc32c.crc32c(first)) == whole
    assert crc32c_joined(crc32c.crc32c(first), crc32c.crc32c(second), len(second)) == whole
