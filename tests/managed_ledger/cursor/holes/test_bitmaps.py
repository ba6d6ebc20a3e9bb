"""Bitmaps to and from Apache's words and ranges, against plain sets of numbers."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from managed_ledger.cursor.batch_indexes import BatchIndexes
from managed_ledger.cursor.holes.bitmaps import from_words, range_count, ranges, run_end, to_words
from wire.position import Position

BLOCK = 1 << 16

RANGE = st.tuples(st.integers(0, 5 * BLOCK), st.sampled_from([1, 2, 63, 64, 65, 5000, 3 * BLOCK]))


@st.composite
def bitmaps(draw: st.DrawFn) -> BitMap:
    """Every kind of container: few numbers, many, runs; optimised or not."""
    bits = BitMap(draw(st.lists(st.integers(0, 5 * BLOCK))))
    for start, size in draw(st.lists(RANGE, max_size=4)):
        bits.add_range(start, start + size)
    for start, step in draw(st.lists(st.tuples(st.integers(0, 5 * BLOCK), st.sampled_from([2, 3, 7])), max_size=2)):
        bits |= BitMap(range(start, start + 2 * BLOCK, step))
    if draw(st.booleans()):
        bits.run_optimize()
    return bits


def naive_words(bits: BitMap) -> list[int]:
    words = [0] * (bits.max() // 64 + 1 if bits else 0)
    for value in bits:
        words[value // 64] |= 1 << value % 64
    return words


@settings(max_examples=40, deadline=None)
@given(bitmaps())
@example(BitMap())
@example(BitMap([0]))
@example(BitMap(range(BLOCK)))
def test_words_are_those_of_a_java_bit_set_and_come_back(bits: BitMap) -> None:
    words = to_words(bits)
    assert list(words) == naive_words(bits)
    signed = [word - (1 << 64) if word >> 63 else word for word in words]
    assert from_words(words) == bits
    assert from_words(signed) == bits


@settings(max_examples=40, deadline=None)
@given(bitmaps())
def test_ranges_cover_exactly_what_is_in_it_and_do_not_touch(bits: BitMap) -> None:
    found = list(ranges(bits))
    assert len(found) == range_count(bits)
    rebuilt = BitMap()
    for first, last in found:
        rebuilt.add_range(first, last + 1)
    assert rebuilt == bits
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(found))


@settings(max_examples=40, deadline=None)
@given(bitmaps(), st.integers(0, 6 * BLOCK))
def test_run_end_is_the_last_of_the_consecutive_numbers(bits: BitMap, first: int) -> None:
    naive = first - 1
    while naive + 1 in bits:
        naive += 1
    assert run_end(bits, first) == naive


@pytest.mark.parametrize("size", range(1, 70))
def test_run_end_finds_the_end_of_a_run_of_every_length_before_other_numbers(size: int) -> None:
    assert run_end(BitMap([*range(5, 5 + size), 1000]), 5) == 4 + size


@pytest.mark.parametrize("word", [-1, 1, -(1 << 63), (1 << 64) - 1])
def test_a_single_word_is_read_signed_or_not(word: int) -> None:
    assert from_words([word]) == BitMap(bit for bit in range(64) if word >> bit & 1)


def test_batches_between_two_positions_are_found_without_the_others() -> None:
    batches = BatchIndexes()
    for ledger_id, entry_id in itertools.product((3, 5), range(4)):
        batches.restore(Position(ledger_id, entry_id), (entry_id + 1,))
    assert [place for place, _ in batches.between(Position(3, 2), Position(5, 0))] == [(3, 2), (3, 3), (5, 0)]
    assert list(batches.between(None, None)) == batches.items()


def test_words_of_runs_that_begin_anywhere_are_those_of_the_same_numbers() -> None:
    """Each run container says how many runs it has in two bytes, and the first run's beginning stands right behind them."""
    bits = BitMap(range(300, 900)) | BitMap(range(BLOCK + 77, BLOCK + 5000)) | BitMap(range(2 * BLOCK + 1, 2 * BLOCK + 9))
    bits.run_optimize()
    assert list(to_words(bits)) == naive_words(bits)


@pytest.mark.parametrize("batch_size", [0, 5, 64])
def test_an_acknowledgement_that_leaves_all_of_a_batch_changes_nothing(batch_size: int) -> None:
    batches = BatchIndexes()
    ack_set = [(1 << (batch_size or 64)) - 1]
    assert batches.acknowledge(Position(1, 1), ack_set, batch_size) == (False, False)
    assert batches.items() == []


def test_after_as_many_numbers_as_a_container_can_list_the_next_container_is_found() -> None:
    """4,096 of them take as much as a bit set; one more, and it is one."""
    for count in (4095, 4096, 4097):
        bits = BitMap(range(0, 2 * count, 2)) | BitMap([BLOCK + 7, BLOCK + 9])
        assert from_words(to_words(bits)) == bits
