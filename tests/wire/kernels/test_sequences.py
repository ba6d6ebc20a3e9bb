"""wire.kernels.sequences, compiled and not, beside a naive twin; and the receipts of what was stored before."""

from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.both_kernels import both
from tests.wire.frame_samples import unframe
from wire.int64 import signed
from wire.run import EntryBatch, SendRun

BOTH = pytest.mark.parametrize("sequences", both("sequences"), ids=["plain", "installed"])
WORDS = st.one_of(st.integers(0, 12), st.integers((1 << 63) - 3, (1 << 63) + 3), st.integers(0, (1 << 64) - 1))


def naive(pairs: list[tuple[int, int]]) -> int:
    """Naive twin of the kernel, on (sequence id, highest sequence id), entry by entry."""
    before = -1
    for first, last in pairs:
        if not before < first or max(first, last) >= 1 << 63:
            return -1
        before = max(first, last)
    return before


def words(values: list[int]) -> "array[int]":
    return array("Q", values)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=6))
def test_the_highest_id_of_an_ascending_run_is_what_a_naive_twin_says(pairs: list[tuple[int, int]]) -> None:
    firsts, lasts = words([first for first, _ in pairs]), words([last for _, last in pairs])
    for sequences in both("sequences"):
        assert sequences.highest_if_ascending(firsts, lasts) == naive(pairs)


@BOTH
@pytest.mark.parametrize(
    ("firsts", "lasts", "expected"),
    [
        ([0], [0], 0),
        ([0, 1, 2], [0, 0, 0], 2),
        ([0, 5, 9], [4, 8, 0], 9),
        ([0, 4], [4, 0], -1),  # the second begins where the first, a batch, ends
        ([3, 3], [0, 0], -1),
        ([3, 2], [0, 0], -1),
        ([], [], -1),
        ([(1 << 64) - 1], [0], -1),
        ([1], [1 << 63], -1),
        ([(1 << 63) - 1], [0], (1 << 63) - 1),
    ],
)
def test_only_a_strictly_ascending_run_has_a_highest_id(
    sequences: ModuleType, firsts: list[int], lasts: list[int], expected: int
) -> None:
    assert sequences.highest_if_ascending(words(firsts), words(lasts)) == expected


@BOTH
def test_a_batch_that_does_not_say_its_last_id_has_as_many_as_it_has_messages(sequences: ModuleType) -> None:
    top = (1 << 64) - 1
    firsts, highests, counts = words([0, 10, 20, top, 7]), words([0, 15, 0, 0, 0]), array("I", [10, 3, 1, 2, 1])
    assert list(sequences.last_sequence_ids(firsts, highests, counts)) == [9, 15, 20, top, 7]
    assert list(sequences.last_sequence_ids(words([]), words([]), array("I"))) == []
    with pytest.raises(ValueError, match="1 sequence ids, 1 highest, 0 message counts"):
        sequences.last_sequence_ids(words([1]), words([0]), array("I"))


@BOTH
def test_a_run_whose_arrays_differ_in_length_is_refused(sequences: ModuleType) -> None:
    with pytest.raises(ValueError, match="1 sequence ids, 2 highest"):
        sequences.highest_if_ascending(words([1]), words([1, 2]))


@pytest.mark.parametrize("sends", both("sends"), ids=["plain", "installed"])
def test_receipts_of_what_was_stored_before_all_have_the_id_minus_one(sends: ModuleType) -> None:
    batch = EntryBatch(bytearray(), array("I", (0, 0, 0, 0)), 36, 3)
    run = SendRun(7, batch, words([4, 5, 6]), words([0, 0, 9]), 0, 0)
    receipts = [command.send_receipt for command, _ in unframe(sends.send_receipts(run, -1, -1))]
    assert [receipt.sequence_id for receipt in receipts] == [4, 5, 6]
    assert [receipt.highest_sequence_id for receipt in receipts] == [0, 0, 9]
    ids = {(signed(receipt.message_id.ledger_id), signed(receipt.message_id.entry_id)) for receipt in receipts}
    assert ids == {(-1, -1)}
