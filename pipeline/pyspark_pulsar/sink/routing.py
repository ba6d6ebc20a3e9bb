"""Partition of its topic that a row goes to, chosen as Pulsar's clients do. Pure.

The hash of the key decides (RoundRobinPartitionMessageRouterImpl with JavaStringHash or Murmur3Hash32); rows without a key
take turns of a thousand. The choice depends on the row and its number alone: rows that are written again go where they went
before.
"""

from typing import Any

import numpy

from ..decode.octets import Octets, Places
from .messages import Keys
from .values.pieces import is_null, sizes_of

HASHES = ("JAVASTRINGHASH", "MURMUR3_32HASH")
TURN_ROWS = 1000
_C1, _C2 = numpy.uint32(0xCC9E2D51), numpy.uint32(0x1B873593)


def partitions_of(keys: Keys | None, row_numbers: Places, first_turn: int, count: int, scheme: str) -> Places:
    """Partition of each row. `first_turn` sets tasks apart: they do not all begin with the same partition."""
    turns = (row_numbers // TURN_ROWS + first_turn) % count
    if keys is None:
        return turns
    hashes = murmur3(keys.text) if scheme == HASHES[1] else java_string_hash(keys.text)
    return numpy.where(is_null(keys.text), turns, (hashes & 0x7FFFFFFF) % count)


def _laid_out(texts: Any) -> tuple[Octets, Places, Places]:
    """The bytes, where each text starts, and how long it is."""
    starts = numpy.frombuffer(texts.buffers()[1], numpy.int32)[texts.offset : texts.offset + len(texts)].astype(numpy.int64)
    buffer = texts.buffers()[2]
    data = numpy.frombuffer(b"" if buffer is None else buffer, numpy.uint8)
    return numpy.append(data, numpy.zeros(8, numpy.uint8)), starts, sizes_of(texts)


def java_string_hash(texts: Any) -> Places:
    """String.hashCode of each; that of Java's UTF-16 units, of which ASCII has one a byte."""
    data, starts, sizes = _laid_out(texts)
    hashes = numpy.zeros(len(starts), numpy.uint32)
    rows = numpy.arange(len(starts))
    for step in range(int(sizes.max(initial=0))):
        rows = rows[sizes[rows] > step]
        hashes[rows] = hashes[rows] * numpy.uint32(31) + data[starts[rows] + step]
    if bool((data > 127).any()):
        for row, text in enumerate(texts.to_pylist()):
            if text is not None and not text.isascii():
                hashes[row] = _java_hash_of(text.decode())
    return hashes.astype(numpy.int64)


def _java_hash_of(text: str) -> int:
    found = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        found = (31 * found + unit) & 0xFFFFFFFF
    return found


def murmur3(texts: Any) -> Places:
    """MurmurHash3, 32 bits, seed 0, of each text's bytes (Murmur3Hash32)."""
    data, starts, sizes = _laid_out(texts)
    words = numpy.ndarray((len(data) - 3,), numpy.dtype("<u4"), data, strides=(1,))
    hashes = numpy.zeros(len(starts), numpy.uint32)
    rows = numpy.arange(len(starts))
    for step in range(int(sizes.max(initial=0)) // 4):
        rows = rows[sizes[rows] >= 4 * step + 4]
        mixed = _rotated(hashes[rows] ^ _scrambled(words[starts[rows] + 4 * step]), 13)
        hashes[rows] = mixed * numpy.uint32(5) + numpy.uint32(0xE6546B64)
    tails = sizes % 4
    kept = (numpy.uint64(1) << (8 * tails).astype(numpy.uint64)) - numpy.uint64(1)
    last = words[starts + sizes - tails] & kept.astype(numpy.uint32)
    hashes ^= numpy.where(tails > 0, _scrambled(last), numpy.uint32(0))
    found: Places = _finished(hashes ^ sizes.astype(numpy.uint32)).astype(numpy.int64)
    return found


def _scrambled(words: Any) -> Any:
    return _rotated(words * _C1, 15) * _C2


def _rotated(words: Any, bits: int) -> Any:
    return (words << numpy.uint32(bits)) | (words >> numpy.uint32(32 - bits))


def _finished(words: Any) -> Any:
    words = (words ^ (words >> numpy.uint32(16))) * numpy.uint32(0x85EBCA6B)
    words = (words ^ (words >> numpy.uint32(13))) * numpy.uint32(0xC2B2AE35)
    return words ^ (words >> numpy.uint32(16))
