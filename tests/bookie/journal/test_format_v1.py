"""The journal's bytes, version 1."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.journal import format_v1 as journal_form
from bookie.journal.format_v1 import LedgerFenced, MasterKeySet, Record
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


def test_offsets_are_kept_as_unsigned_32_bit_numbers() -> None:
    assert array("I").itemsize == 4
