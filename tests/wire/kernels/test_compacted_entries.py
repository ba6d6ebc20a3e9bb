"""Entries of a compacted ledger as Apache's RawMessageImpl writes them, packed and unpacked, compiled and not."""

import struct
from array import array
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.both_kernels import both_beside
from wire.generated.pulsar_api_pb2 import MessageIdData
from wire.run import EntryRun

ENTRIES = pytest.mark.parametrize(
    "kernel", both_beside("compacted_entries", "key_table", "compaction"), ids=["plain", "installed"]
)
DROP, KEEP, REWRITE = 0, 1, 2
SECTIONS = st.lists(st.tuples(st.binary(max_size=6), st.sampled_from([DROP, KEEP, REWRITE])), min_size=1, max_size=8)


def by_hand(ledger_id: int, entry_id: int, section: bytes, partition: int = -1) -> bytes:
    message_id = MessageIdData(ledger_id=ledger_id, entry_id=entry_id, partition=partition).SerializeToString()
    return struct.pack(">I", len(message_id)) + message_id + struct.pack(">I", len(section)) + section


def run_of(entries: list[bytes], ledger_id: int = 99, first: int = 0) -> EntryRun:
    offsets = array("I", [0])
    for entry in entries:
        offsets.append(offsets[-1] + len(entry))
    return EntryRun(ledger_id, first, b"".join(entries), offsets, 0)


@ENTRIES
@settings(max_examples=60)
@given(sections=SECTIONS, partition=st.integers(-1, 300), header_bytes=st.sampled_from([0, 36]))
def test_entries_that_stay_are_packed_as_apache_does_it(
    kernel: ModuleType, sections: list[tuple[bytes, int]], partition: int, header_bytes: int
) -> None:
    run = run_of([section for section, _ in sections], ledger_id=1 << 33, first=200)
    rewritten = {at: b"new" for at, (_, verdict) in enumerate(sections) if verdict == REWRITE}
    batch = kernel.pack(run, array("B", [verdict for _, verdict in sections]), rewritten, partition, header_bytes)
    expected = [
        bytes(header_bytes) + by_hand(1 << 33, 200 + at, rewritten.get(at, section), partition)
        for at, (section, verdict) in enumerate(sections)
        if verdict != DROP
    ]
    assert bytes(batch.buffer) == b"".join(expected)
    assert batch.count == batch.message_count == len(expected)


@ENTRIES
def test_unpacked_entries_have_their_old_ids_and_gaps_are_empty(kernel: ModuleType) -> None:
    run = run_of([by_hand(7, 5, b"five"), by_hand(7, 8, b"eight"), by_hand(8, 0, b"zero")])
    found, present, stop = kernel.unpack(run, 0, 1000)
    assert (found.ledger_id, found.first_entry_id, list(present), stop) == (7, 5, [5, 8], 2)
    assert [bytes(found.payload(entry_id)) for entry_id in range(5, 9)] == [b"five", b"", b"", b"eight"]
    found, present, stop = kernel.unpack(run, 2, 1000)
    assert (found.ledger_id, found.first_entry_id, list(present), stop) == (8, 0, [0], 3)


@ENTRIES
def test_a_span_of_ids_is_bounded_however_far_apart_they_are(kernel: ModuleType) -> None:
    run = run_of([by_hand(7, 0, b"a"), by_hand(7, 9, b"b"), by_hand(7, 10, b"c")])
    assert kernel.unpack(run, 0, 10)[2] == 2
    assert kernel.unpack(run, 0, 9)[2] == 1


@ENTRIES
def test_ids_that_go_back_end_a_run(kernel: ModuleType) -> None:
    run = run_of([by_hand(7, 5, b"a"), by_hand(7, 5, b"b")])
    assert kernel.unpack(run, 0, 1000)[2] == 1


@ENTRIES
def test_the_id_of_an_entry_is_that_of_the_message_it_copies(kernel: ModuleType) -> None:
    run = run_of([by_hand(7, 5, b"a"), by_hand(1 << 40, 1 << 50, b"")])
    assert [kernel.message_id(run, at) for at in range(2)] == [(7, 5), (1 << 40, 1 << 50)]


WHOLE = by_hand(7, 5, b"section")
BROKEN = (b"", WHOLE[:7], WHOLE[:-1], struct.pack(">I", 1 << 31) + WHOLE[4:], struct.pack(">II", 0, 0), b"\xff" * 20)


@ENTRIES
@pytest.mark.parametrize("entry", BROKEN)
def test_an_entry_that_is_no_compacted_message_is_an_error_that_names_it(kernel: ModuleType, entry: bytes) -> None:
    run = run_of([WHOLE, entry], first=3)
    with pytest.raises(ValueError, match="entry 4 of ledger 99 is no compacted message"):
        kernel.message_id(run, 1)
    with pytest.raises(ValueError, match="entry 4 of ledger 99"):
        kernel.unpack(run, 1, 1000)
