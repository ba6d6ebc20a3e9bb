"""Java's longs and protobuf's uint64: the same 64 bits, read with and without a sign. -1 travels as 2^64 - 1."""

WORD_MAX = (1 << 64) - 1


def signed(word: int) -> int:
    """An id as Java sees it: 2^64 - 1 is -1."""
    return word - WORD_MAX - 1 if word >> 63 else word


def unsigned(number: int) -> int:
    """A number as a uint64 field takes it: -1 is 2^64 - 1."""
    return number & WORD_MAX
