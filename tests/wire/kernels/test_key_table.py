"""The key table beside a dict: the newest message of each key, whatever is noted and removed, compiled and not."""

from array import array
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.both_kernels import both

TABLES = pytest.mark.parametrize("kernel", both("key_table"), ids=["plain", "installed"])
KEYS = st.sampled_from([b"", b"a", b"b", b"eight by", b"more than eight bytes", bytes(40)])
SLOTS = 8


def table(slots: int = SLOTS) -> "array[int]":
    return array("Q", bytes(8 * 3 * slots))


@TABLES
@settings(max_examples=60)
@given(steps=st.lists(st.tuples(KEYS, st.booleans())))
def test_the_newest_mark_of_each_key_is_that_of_a_dict(kernel: ModuleType, steps: list[tuple[bytes, bool]]) -> None:
    slots, counts, naive, gone = table(), array("Q", [0, 0, 0]), dict[bytes, int](), 0
    for number, (key, is_removed) in enumerate(steps, start=1):
        mark = 0 if is_removed else number << 20
        gone += (key in naive) + is_removed
        kernel.note_key(slots, counts, key, mark)
        if is_removed:
            naive.pop(key, None)
        else:
            naive[key] = mark
        assert list(counts)[1:] == [len(naive), gone]
    for key in (b"", b"a", b"b", b"eight by", b"more than eight bytes", bytes(40), b"never noted"):
        assert kernel.newest(slots, key) == naive.get(key, -1)


@TABLES
def test_a_larger_table_has_the_keys_that_are_there_and_no_removed_ones(kernel: ModuleType) -> None:
    small, large, counts = table(), table(64), array("Q", [0, 0, 0])
    for number in range(1, 7):
        kernel.note_key(small, counts, b"key %d" % number, number << 20)
    kernel.note_key(small, counts, b"key 2", 0)
    assert kernel.rehash(small, large) == 5
    found = {number: kernel.newest(large, b"key %d" % number) for number in range(1, 7)}
    assert found == {number: -1 if number == 2 else number << 20 for number in range(1, 7)}


@TABLES
def test_a_full_row_of_slots_goes_on_at_the_beginning_of_the_table(kernel: ModuleType) -> None:
    slots, counts = table(4), array("Q", [0, 0, 0])
    for number in range(1, 4):
        kernel.note_key(slots, counts, b"%d" % number, number << 20)
    assert [kernel.newest(slots, b"%d" % number) for number in range(1, 4)] == [number << 20 for number in range(1, 4)]
    assert list(counts) == [3, 3, 0]


def test_compiled_and_plain_tables_are_the_same_bytes() -> None:
    """A broker that has no compiler goes on with the table of one that had."""
    tables = []
    for kernel in both("key_table"):
        slots, counts = table(), array("Q", [0, 0, 0])
        for number, key in enumerate((b"", b"a", b"more than eight bytes"), start=1):
            kernel.note_key(slots, counts, key, number << 20)
        tables.append(slots.tobytes())
    assert tables[0] == tables[1]
