"""BatchIndexes: unacknowledged messages of partly acknowledged batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from managed_ledger.cursor.batch_indexes import BatchIndexes, to_bits, to_words
from wire.position import Position

PLACE = Position(3, 7)


def test_a_batch_is_forgotten_when_its_last_message_is_acknowledged() -> None:
    indexes = BatchIndexes()
    assert indexes.acknowledge(PLACE, [0b110], 3) == (True, False)
    assert indexes.get(PLACE) == (0b110,)
    assert indexes.acknowledge(PLACE, [0b001], 3) == (True, True)
    assert indexes.get(PLACE) is None
    assert len(indexes) == 0


def test_an_acknowledgement_that_is_repeated_changes_nothing() -> None:
    indexes = BatchIndexes()
    indexes.acknowledge(PLACE, [0b110], 3)
    assert indexes.acknowledge(PLACE, [0b111], 3) == (False, False)
    assert indexes.acknowledge(PLACE, [0b110], 3) == (False, False)


def test_an_acknowledgement_of_no_message_of_a_new_batch_is_not_kept() -> None:
    indexes = BatchIndexes()
    assert indexes.acknowledge(PLACE, [0b111], 3) == (False, False)
    assert list(indexes) == []


def test_cursors_without_partly_acknowledged_batches_do_not_share_the_first_one() -> None:
    one, other = BatchIndexes(), BatchIndexes()
    one.restore(PLACE, [1])
    assert (len(one), len(other)) == (1, 0)
    other.check_invariants()


def test_batches_between_two_positions_include_both() -> None:
    indexes = BatchIndexes()
    for entry_id in (1, 2, 3, 4):
        indexes.restore(Position(1, entry_id), [entry_id])
    assert list(indexes.between(Position(1, 2), Position(1, 3))) == [(Position(1, 2), (2,)), (Position(1, 3), (3,))]


@pytest.mark.parametrize("acknowledged", [{3}, {0, 3, 20, 21, 22, 23, 24, 25, 26, 27}])
def test_wholly_acknowledged_entries_are_removed_in_their_ledger_alone(acknowledged: set[int]) -> None:
    """Few entries are looked up one by one; among many, the known batches are."""
    indexes = BatchIndexes()
    for ledger_id in (1, 2):
        for entry_id in range(5):
            indexes.restore(Position(ledger_id, entry_id), [1])
    indexes.remove(1, BitMap(acknowledged))
    left = [Position(1, each) for each in range(5) if each not in acknowledged]
    assert list(indexes) == [*left, *(Position(2, each) for each in range(5))]


def test_removal_through_a_position_includes_it() -> None:
    indexes = BatchIndexes()
    for entry_id in (1, 2, 3):
        indexes.restore(Position(1, entry_id), [1])
    indexes.remove_through(Position(1, 2))
    assert list(indexes) == [Position(1, 3)]


@given(st.integers(0, 1 << 300))
def test_words_are_the_bits_of_the_integer_without_trailing_zero_words(bits: int) -> None:
    words = to_words(bits)
    assert to_bits(words) == bits
    assert not words or words[-1]
    signed = [word - (1 << 64) if word >> 63 else word for word in words]
    assert to_bits(signed) == bits
