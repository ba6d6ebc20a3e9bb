"""The primitives of the kernels in Python: big-endian words, varints and CRC32C, on any buffer.

Never compiled and never imported by a compiled kernel: `octets.h` and `octets.pxd` are the same in C. What returns a pointer
there returns the buffer itself here. Nothing checks a bound except the varint functions; every caller has done so before.
"""

from array import array
from collections.abc import MutableSequence
from typing import TypeAlias

import crc32c

Buffer: TypeAlias = bytes | bytearray | memoryview
Writable: TypeAlias = bytearray | memoryview
Words: TypeAlias = "MutableSequence[int]"

_WORD = (1 << 64) - 1


def octets_of(buffer: Buffer) -> memoryview:
    return memoryview(buffer)


def length_of(buffer: Buffer) -> int:
    return memoryview(buffer).nbytes


def doubles_of(values: "array[float]") -> "array[float]":
    return values


def room_in(buffer: bytearray) -> bytearray:
    return buffer


def new_room(size: int) -> bytearray:
    """Compiled, it holds what was in memory before: the kernel writes all of it."""
    return bytearray(size)


def new_octets(size: int) -> bytearray:
    """Room that `finished` turns into bytes."""
    return bytearray(size)


def writable(octets: bytearray) -> bytearray:
    return octets


def finished(octets: bytearray) -> bytes:
    return bytes(octets)


def words_of(values: "array[int]") -> "array[int]":
    """The elements of an array of typecode "Q"."""
    return values


def counts_of(values: "array[int]") -> "array[int]":
    """The elements of an array of typecode "I"."""
    return values


def bytes_of(values: "array[int]") -> "array[int]":
    """The elements of an array of typecode "B"."""
    return values


def signed_words_of(values: "array[int]") -> "array[int]":
    """The elements of an array of typecode "q"."""
    return values


def octets_in_room(room: memoryview) -> memoryview:
    """Room of somebody else's, to be written to."""
    return room


def signed_words_in(room: memoryview) -> memoryview:
    """The same, of words of eight bytes."""
    return room


def small_words_in(room: memoryview) -> memoryview:
    """The same, of signed words of four."""
    return room


def read_u16(data: Buffer, at: int) -> int:
    return data[at] << 8 | data[at + 1]


def read_u32(data: Buffer, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def read_u64(data: Buffer, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "big")


def write_u32(data: Writable, at: int, value: int) -> None:
    data[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "big")


def write_u64(data: Writable, at: int, value: int) -> None:
    data[at : at + 8] = (value & _WORD).to_bytes(8, "big")


def varint_end(data: Buffer, at: int, end: int) -> int:
    """The position after the varint at `at`, or 0 when it does not end before `end` or does not fit into 64 bits."""
    last = at
    while last < end and last < at + 10:
        if data[last] < 128:
            return 0 if last == at + 9 and data[last] > 1 else last + 1
        last += 1
    return 0


def varint_value(data: Buffer, at: int, after: int) -> int:
    """The value of the varint in [at, after), where `varint_end` gave `after`."""
    value = 0
    for position in range(after - 1, at - 1, -1):
        value = value << 7 | data[position] & 127
    return value


def field_end(data: Buffer, at: int, end: int, wire_type: int) -> int:
    """The end of the protobuf field value at `at`, 0 when it is malformed or goes beyond `end`."""
    if wire_type == 0:
        return varint_end(data, at, end)
    if wire_type == 1:
        return at + 8 if end - at >= 8 else 0
    if wire_type == 5:
        return at + 4 if end - at >= 4 else 0
    if wire_type != 2:
        return 0
    after = varint_end(data, at, end)
    if after == 0:
        return 0
    size = varint_value(data, at, after)
    return after + size if size <= end - after else 0


def varint_size(value: int) -> int:
    return max(1, ((value & _WORD).bit_length() + 6) // 7)


def write_varint(data: Writable, at: int, value: int) -> int:
    """Write a varint; the position after it."""
    value &= _WORD
    while value > 127:
        data[at] = value & 127 | 128
        value >>= 7
        at += 1
    data[at] = value
    return at + 1


def copy_octets(target: Writable, at: int, source: Buffer, start: int, end: int) -> None:
    target[at : at + end - start] = source[start:end]


def clear_octets(target: Writable, start: int, end: int) -> None:
    target[start:end] = bytes(end - start)


def crc32c_of(data: Buffer, start: int, end: int, seed: int) -> int:
    """CRC32C of data[start:end], going on from the CRC32C of what stands before it."""
    return crc32c.crc32c(data[start:end], seed)


def crc32c_joined(first: int, second: int, second_bytes: int) -> int:
    """The CRC32C of two pieces, one behind the other, from that of each."""
    power, moved = 0x00800000, first
    while second_bytes:
        if second_bytes & 1:
            moved = _crc_times(power, moved)
        power = _crc_times(power, power)
        second_bytes >>= 1
    return moved ^ second


def _crc_times(a: int, b: int) -> int:
    """Modulo the polynomial, both reflected."""
    product = 0
    for bit in range(31, -1, -1):
        product ^= b if a >> bit & 1 else 0
        b = b >> 1 ^ (0x82F63B78 if b & 1 else 0)
    return product
