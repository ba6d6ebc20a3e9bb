"""The small files of the storage, version 1."""

import pytest

from bookie.journal.format_v1 import JournalMark
from bookie.ledgers import LedgerState
from bookie.storage import files_v1
from bookie.storage.files_v1 import Checkpoint, DamagedFile, LogExtent
from bookie.storage.span import Span

SPANS = [(5, Span(0, 10, 3, 4096, 777)), (6, Span(1 << 40, 1, 3, 1 << 33, 5_000_000))]


STATES = [LedgerState(1, b"k" * 20), LedgerState(2, b"", True), LedgerState(3, b"x", True, 12345)]


def test_the_small_files_are_read_back() -> None:
    assert list(files_v1.decode_index(files_v1.encode_index(3, SPANS[:1]) + files_v1.encode_index(3, SPANS[1:]), 3)) == SPANS
    assert files_v1.decode_ledgers(files_v1.encode_ledgers(9, STATES), 9) == STATES
    later = files_v1.encode_ledgers(9, [LedgerState(2, b"new")], [3])
    assert files_v1.decode_ledgers(files_v1.encode_ledgers(9, STATES) + later, 9) == [STATES[0], LedgerState(2, b"new")]
    checkpoint = Checkpoint(JournalMark(5, 6, 7), True, 8, 9, 10, (LogExtent(1, 2, 3), LogExtent(4, 5, 6)))
    assert files_v1.decode_checkpoint(files_v1.encode_checkpoint(checkpoint)) == checkpoint
    assert files_v1.decode_checkpoint(files_v1.encode_checkpoint(Checkpoint())) == Checkpoint()


def test_any_changed_or_missing_byte_of_a_small_file_is_noticed() -> None:
    good = files_v1.encode_checkpoint(Checkpoint(JournalMark(5, 6, 7), True, 8, 9, 10, (LogExtent(1, 2, 3),)))
    for bit in range(len(good) * 8):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedFile):
            files_v1.decode_checkpoint(bytes(bad))
    for size in range(len(good)):
        with pytest.raises(DamagedFile):
            files_v1.decode_checkpoint(good[:size])
    with pytest.raises(DamagedFile):
        list(files_v1.decode_index(files_v1.encode_index(3, SPANS), 4))
