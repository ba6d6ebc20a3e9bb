"""Partition of a message, as Apache's clients choose it. Pure."""

from collections.abc import Callable, Mapping

_WORD = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def java_string_hash(key: str) -> int:
    """Java's String.hashCode, over units of UTF-16."""
    value, units = 0, key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & _WORD
    return value & _POSITIVE


def murmur3_32_hash(key: str) -> int:
    """MurmurHash3 of 32 bits, seed 0, over UTF-8."""
    data = key.encode("utf-8", "surrogatepass")
    value, whole = 0, len(data) & ~3
    for at in range(0, whole, 4):
        value ^= _mixed(int.from_bytes(data[at : at + 4], "little"))
        value = (value << 13 | value >> 19) & _WORD
        value = (value * 5 + 0xE6546B64) & _WORD
    value ^= _mixed(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & _WORD
    value = (value ^ value >> 13) * 0xC2B2AE35 & _WORD
    return (value ^ value >> 16) & _POSITIVE


def _mixed(word: int) -> int:
    word = word * 0xCC9E2D51 & _WORD
    return (word << 15 | word >> 17) * 0x1B873593 & _WORD


_HASHES: Mapping[str, Callable[[str], int]] = {"JavaStringHash": java_string_hash, "Murmur3_32Hash": murmur3_32_hash}


class Router:
    """Routes of one producer. A message with a key goes by its hash, others to one partition or to each in turn."""

    def __init__(self, routing: str, hashing: str, partitions: int, chance: int) -> None:
        self._is_round = routing == "RoundRobinPartition"
        self._hash, self._partitions, self._next = _HASHES[hashing], partitions, chance % partitions

    def of(self, key: str | None) -> int:
        if key is not None:
            return self._hash(key) % self._partitions
        place = self._next
        if self._is_round:
            self._next = (place + 1) % self._partitions
        return place
