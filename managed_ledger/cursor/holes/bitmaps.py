"""Bitmaps to and from what Apache stores: ranges, and the 64-bit words of a java.util.BitSet. Pure.

Nothing here runs a Python statement per entry: ranges come from set arithmetic, words from CRoaring's portable format
(https://github.com/RoaringBitmap/RoaringFormatSpec), whose dense containers are the words themselves.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import compress

from pyroaring import BitMap

WORD_MASK = (1 << 64) - 1
_COOKIE_WITH_RUNS = 12347
_CONTAINER_BITS = 1 << 16
_ARRAY_CARDINALITY_MAX = 4096
_NO_OFFSETS_BELOW = 4
_ONES = b"\xff" * (_CONTAINER_BITS // 8)
_DIGITS = bytes.maketrans(b"01", b"\x00\x01")


def ranges(bits: BitMap) -> Iterator[tuple[int, int]]:
    """The ranges of consecutive numbers, first and last included, ascending."""
    return zip(_starts(bits).to_array(), (bits - bits.shift(-1)).to_array(), strict=True)


def range_count(bits: BitMap) -> int:
    return len(_starts(bits))


def _starts(bits: BitMap) -> BitMap:
    return bits - bits.shift(1)


def run_end(bits: BitMap, first: int) -> int:
    """The last of the consecutive numbers that begin with `first`; first - 1 when `first` is not in it."""
    if first not in bits:
        return first - 1
    last = int(bits.max())
    if bits.contains_range(first, last + 1):
        return last
    inside, step = first, 1  # inside is in the run; look for a place that is not, twice as far each time
    while bits.contains_range(inside, inside + step + 1):
        inside += step
        step *= 2
    outside = inside + step
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if bits.contains_range(inside, middle + 1):
            inside = middle
        else:
            outside = middle
    return inside


def to_words(bits: BitMap) -> "array[int]":
    """Words as in BitSet.toLongArray: word 0 has the numbers 0 to 63. Unsigned, typecode "Q"."""
    words = array("Q", bytes(8 * ((int(bits.max()) >> 6) + 1 if bits else 0)))
    if not words:
        return words
    data = bits.serialize()
    for high, cardinality, is_run, at in _containers(data):
        base = high * (_CONTAINER_BITS // 64)
        if is_run:
            _write_runs(words, base, array("H", data[at + 2 : at + 2 + 4 * int.from_bytes(data[at : at + 2], "little")]))
        elif cardinality <= _ARRAY_CARDINALITY_MAX:
            _write_values(words, base, array("H", data[at : at + 2 * cardinality]))
        else:
            block = array("Q", data[at : at + _CONTAINER_BITS // 8])
            words[base : base + len(block)] = block[: len(words) - base]
    return words


def _containers(data: bytes) -> Iterator[tuple[int, int, bool, int]]:
    """Facts of each container: the high 16 bits, its cardinality, whether it is made of runs, where it begins."""
    cookie = int.from_bytes(data[:4], "little")
    runs = b""
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        at = 4 + (count + 7) // 8
        runs = data[4:at]
    else:
        count, at = int.from_bytes(data[4:8], "little"), 8
    header = array("H", data[at : at + 4 * count])
    at += 4 * count
    if not runs or count >= _NO_OFFSETS_BELOW:
        at += 4 * count
    for place in range(count):
        high, cardinality = header[2 * place], header[2 * place + 1] + 1
        is_run = bool(runs) and bool(runs[place >> 3] >> (place & 7) & 1)
        yield high, cardinality, is_run, at
        if is_run:
            at += 2 + 4 * int.from_bytes(data[at : at + 2], "little")
        else:
            at += 2 * cardinality if cardinality <= _ARRAY_CARDINALITY_MAX else _CONTAINER_BITS // 8


def _write_values(words: "array[int]", base: int, values: "array[int]") -> None:
    for value in values:
        words[base + (value >> 6)] |= 1 << (value & 63)


def _write_runs(words: "array[int]", base: int, runs: "array[int]") -> None:
    for start, more in zip(runs[::2], runs[1::2], strict=True):
        first, last = base + (start >> 6), base + (start + more >> 6)
        head, tail = WORD_MASK << (start & 63) & WORD_MASK, WORD_MASK >> (63 - (start + more & 63))
        if first == last:
            words[first] |= head & tail
            continue
        words[first] |= head
        words[last] |= tail
        for index in range(first + 1, last):
            words[index] = WORD_MASK


def from_words(words: Sequence[int]) -> BitMap:
    """The inverse of `to_words`; the words may be signed."""
    data = array("Q", [word & WORD_MASK for word in words]).tobytes()
    bits = BitMap()
    for at in range(0, len(data), _CONTAINER_BITS // 8):
        block = data[at : at + _CONTAINER_BITS // 8]
        if block == _ONES:
            bits.add_range(8 * at, 8 * at + _CONTAINER_BITS)
        elif block.count(0) < len(block):
            bits |= _block_bits(block, 8 * at)
    return bits


def _block_bits(block: bytes, base: int) -> BitMap:
    number = int.from_bytes(block, "little")
    digits = format(number, "b").encode()[::-1].translate(_DIGITS)
    return BitMap(compress(range(base, base + len(digits)), digits))
