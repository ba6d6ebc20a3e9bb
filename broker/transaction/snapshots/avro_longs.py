"""Avro's binary form of the parts of snapshots: whole numbers, texts, lists of rows of numbers (Avro 1.11). Pure.

A list may come in several blocks, so that parts of it can be encoded at different times. Numbers are those of Java's long:
unsigned numbers here are signed there.
"""

from collections.abc import Iterable, Iterator

from wire.int64 import signed, unsigned

_LONG_BYTES_MAX = 10
_ROWS_MAX = 2_000_000
"""Rows of a list: more than fit into a message."""
PRESENT = b"\2"
"""Branch of a union of null and something: not null."""
END = b"\0"
"""End of a list, after its blocks."""


class BadSnapshot(Exception):
    """A message that holds no snapshot as Apache 4.0 writes it."""


def longs(numbers: Iterable[int]) -> bytes:
    """One after the other."""
    out = bytearray()
    for number in numbers:
        value = signed(unsigned(number))
        rest = value << 1 ^ value >> 63
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def text(value: str) -> bytes:
    """One that is not null."""
    encoded = value.encode()
    return PRESENT + longs((len(encoded),)) + encoded


def block(rows: int, encoded: bytes) -> bytes:
    """Some rows of a list; nothing of none."""
    return longs((rows,)) + encoded if rows else b""


class Reader:
    """Reader from the first byte on. BadSnapshot where something else is there."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = bytes(data)
        self._at = 0

    def long(self) -> int:
        """A signed number."""
        value = 0
        for shift in range(0, 7 * _LONG_BYTES_MAX, 7):
            if self._at >= len(self._data):
                raise BadSnapshot("it ends in a number")
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return signed(unsigned(value >> 1 ^ -(value & 1)))
        raise BadSnapshot(f"a number of more than {_LONG_BYTES_MAX} bytes")

    def is_null(self) -> bool:
        """Whether a union of null and another type is null."""
        which = self.long()
        if which not in (0, 1):
            raise BadSnapshot(f"choice {which} of 2")
        return which == 0

    def text(self) -> str:
        """Empty for null."""
        if self.is_null():
            return ""
        count = self.long()
        if not 0 <= count <= len(self._data) - self._at:
            raise BadSnapshot(f"a text of {count} bytes")
        self._at += count
        try:
            return self._data[self._at - count : self._at].decode()
        except UnicodeDecodeError as error:
            raise BadSnapshot(str(error)) from error

    def rows(self, width: int) -> Iterator[tuple[int, ...]]:
        """Yields the rows of a list that may be null, each of `width` numbers."""
        if self.is_null():
            return
        seen = 0
        while count := self.long():
            if count < 0:  # then the size of the block comes, too
                count = -count
                self.long()
            seen += count
            if seen > _ROWS_MAX:
                raise BadSnapshot(f"more than {_ROWS_MAX} rows")
            for _ in range(count):
                yield tuple(self.long() for _ in range(width))

    def end(self) -> None:
        """Nothing is left."""
        if self._at != len(self._data):
            raise BadSnapshot(f"{len(self._data) - self._at} bytes are left over")
