"""Signed and unsigned 64 bits."""

from hypothesis import given
from hypothesis import strategies as st

from wire.int64 import signed, unsigned


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_signed_and_unsigned_undo_each_other(number: int) -> None:
    assert signed(unsigned(number)) == number
    assert 0 <= unsigned(number) < 1 << 64
