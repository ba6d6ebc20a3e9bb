"""The bytes on disk: what is written is read back, and whatever was changed is noticed."""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.journal import format_v1 as journal_form
from bookie.journal.format_v1 import JournalMark, LedgerFenced, MasterKeySet, Record
from bookie.ledgers import LedgerState
from bookie.storage import files_v1
from bookie.storage.block_v1 import BLOCK_BYTES_MAX, DamagedBlock, block_size, decode_block, encode_block, plan_blocks
from bookie.storage.files_v1 import Checkpoint, DamagedFile, LogExtent
from bookie.storage.span import Span
from tests.bookie.runs import entries_of, mixed, sealed
from wire.run import EntryRun

ALIGNMENT = 512
FILE_KEY = journal_form.file_key(b"secret", 7)
records = st.one_of(
    st.builds(sealed, st.integers(0, 1 << 62), st.integers(0, 1 << 40), st.integers(1, 5), st.integers(0, 300)),
    st.builds(
        lambda count, size: mixed([sealed(7, 0, count, size), sealed(5, 9, 2, 3)]), st.integers(1, 3), st.integers(0, 300)
    ),
    st.builds(MasterKeySet, st.integers(0, 1 << 62), st.binary(max_size=20)),
    st.builds(LedgerFenced, st.integers(0, 1 << 62)),
)


def frame(items: list[Record], sequence: int = 3) -> bytes:
    buffers, size = journal_form.encode_frame(items, FILE_KEY, sequence, ALIGNMENT)
    data = b"".join(buffers)
    assert len(data) == size
    assert size % ALIGNMENT == 0
    return data


def parse(data: bytes) -> list[Record] | None:
    header = journal_form.decode_frame_header(data, 0, FILE_KEY)
    if header is None or header.size_bytes > len(data):
        return None
    return journal_form.decode_body(header, memoryview(data)[journal_form.FRAME_HEADER_BYTES : header.size_bytes])


def same(left: Record, right: Record) -> bool:
    if isinstance(left, EntryRun) and isinstance(right, EntryRun):
        places = (left.ledger_id, left.header_bytes) == (right.ledger_id, right.header_bytes)
        return places and entries_of(left) == entries_of(right)
    return left == right


@settings(deadline=None)
@given(st.lists(records, min_size=1, max_size=6))
def test_a_journal_frame_is_read_back(items: list[Record]) -> None:
    back = parse(frame(items))
    assert back is not None
    assert len(back) == len(items)
    assert all(map(same, items, back))


def test_a_slice_of_a_run_is_written_as_it_is() -> None:
    part = sealed(1, 10, 5, 20).entries(12, 2)
    back = parse(frame([part]))
    assert back is not None
    assert same(back[0], part)
    assert isinstance(back[0], EntryRun)
    assert back[0].offsets[0] == 0


def test_any_changed_bit_of_a_journal_frame_is_noticed() -> None:
    items: list[Record] = [MasterKeySet(1, b"k"), sealed(1, 0, 2, 10), LedgerFenced(1)]
    good = frame(items)
    header = journal_form.decode_frame_header(good, 0, FILE_KEY)
    assert header is not None
    for bit in range(header.size_bytes * 8):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        assert parse(bytes(bad)) is None


def test_a_frame_of_another_file_is_not_one_of_this() -> None:
    assert journal_form.decode_frame_header(frame([LedgerFenced(1)]), 0, journal_form.file_key(b"secret", 8)) is None
    assert journal_form.file_key(b"other", 7) != FILE_KEY


def test_a_file_header_is_read_back_and_any_changed_bit_is_noticed() -> None:
    header = journal_form.FileHeader(ALIGNMENT, 7, 99)
    block = journal_form.encode_file_header(header, FILE_KEY)
    assert len(block) == ALIGNMENT
    assert journal_form.decode_file_header(block, 7, FILE_KEY) == header
    assert journal_form.decode_file_header(block, 8, FILE_KEY) is None
    for bit in range(journal_form.FILE_HEADER_BYTES * 8):
        bad = bytearray(block)
        bad[bit // 8] ^= 1 << bit % 8
        assert journal_form.decode_file_header(bytes(bad), 7, FILE_KEY) is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 200_000), st.booleans()), min_size=1, max_size=8))
def test_blocks_hold_all_entries_in_order_within_their_bounds(plan: list[tuple[int, int, bool]]) -> None:
    runs, next_id = [], 0
    for count, size, gap in plan:
        next_id += 5 if gap else 0
        runs.append(sealed(1, next_id, count, size))
        next_id += count
    found: dict[int, bytes] = {}
    for together in plan_blocks(runs):
        buffers, size = encode_block(together)
        block = b"".join(buffers)
        assert len(block) == size == block_size(block)
        run = decode_block(block, check_data=True)
        assert run.first_entry_id not in found
        assert run.count == 1 or run.size_bytes <= BLOCK_BYTES_MAX
        assert list(found) == sorted(found)
        found.update(entries_of(run))
    assert found == {entry_id: data for run in runs for entry_id, data in entries_of(run).items()}


def test_runs_that_follow_one_another_share_a_block() -> None:
    assert len(list(plan_blocks([sealed(1, first, 10, 100) for first in range(0, 1000, 10)]))) == 1
    assert len(list(plan_blocks([sealed(1, 0), sealed(1, 2)]))) == 2


def test_any_changed_bit_of_a_block_is_noticed() -> None:
    buffers, _ = encode_block([sealed(1, 0, 2, 10), sealed(1, 2, 1, 5).entries(2, 1)])
    good = b"".join(buffers)
    for bit in range(len(good) * 8):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedBlock):
            decode_block(bytes(bad), check_data=True)


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


def test_offsets_are_kept_as_unsigned_32_bit_numbers() -> None:
    assert array("I").itemsize == 4
