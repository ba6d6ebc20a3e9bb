"""Entries that a bookie should have and has not, against counting entry by entry."""

from hypothesis import given
from hypothesis import strategies as st

from bookie.ranges import joined_ranges
from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, Segment
from bookkeeper.write.quorum_tracker import Quorum
from cli.bookie.missing_entries import is_named, last_known_entry, missing_entries

NAMES = tuple("abcdef")


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerMetadata:
    size = draw(st.integers(1, 5))
    write_quorum = draw(st.integers(1, size))
    starts = [0, *sorted(draw(st.sets(st.integers(1, 40), max_size=4)))]
    segments = tuple(Segment(start, tuple(draw(st.permutations(NAMES))[:size])) for start in starts)
    metadata = LedgerMetadata(size, write_quorum, write_quorum, segments)
    match draw(st.sampled_from(LedgerState)):
        case LedgerState.CLOSED:
            return metadata.closed(draw(st.integers(starts[-1] - 1, 60)), 0)
        case LedgerState.IN_RECOVERY:
            return metadata.in_recovery()
    return metadata


def counted(metadata: LedgerMetadata, bookie_id: str, held: set[int]) -> set[int]:
    quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
    due = set()
    for entry_id in range(last_known_entry(metadata) + 1):
        segment = [each for each in metadata.segments if each.first_entry_id <= entry_id][-1]
        if bookie_id in [segment.bookies[index] for index in quorum.write_set(entry_id)]:
            due.add(entry_id)
    return due - held


@given(ledgers(), st.sets(st.integers(0, 70)))
def test_the_missing_entries_are_those_that_counting_finds(metadata: LedgerMetadata, held: set[int]) -> None:
    found = list(missing_entries(metadata, "a", joined_ranges((entry_id, entry_id) for entry_id in held)))
    entries = [entry_id for first, last in found for entry_id in range(first, last + 1)]
    assert entries == sorted(counted(metadata, "a", held))
    assert all(first <= last for first, last in found)


@given(ledgers())
def test_a_bookie_that_no_segment_names_lacks_nothing(metadata: LedgerMetadata) -> None:
    assert is_named(metadata, "a") == any("a" in segment.bookies for segment in metadata.segments)
    assert is_named(metadata, "a") or not list(missing_entries(metadata, "a", []))
