"""Entries of a ledger that a bookie lacks although the ledger's metadata gives them to it. Pure.

As BookKeeper's DataIntegrityCheckImpl: a closed ledger counts up to its end, another one up to its last segment, before which
all is confirmed. In a striped ledger a bookie has the entries whose write set it is in.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState

Range = tuple[int, int]
"""First and last entry id."""


def last_known_entry(metadata: LedgerMetadata) -> int:
    """Last entry that is known to be confirmed; -1: none is."""
    is_closed = metadata.state == LedgerState.CLOSED
    return metadata.last_entry_id if is_closed else metadata.segments[-1].first_entry_id - 1


def is_named(metadata: LedgerMetadata, bookie_id: str) -> bool:
    return any(bookie_id in segment.bookies for segment in metadata.segments)


def missing_entries(metadata: LedgerMetadata, bookie_id: str, held: Sequence[Range]) -> Iterator[Range]:
    """Missing ranges, ascending. `held`: ranges that the bookie has, ascending, neither overlapping nor touching."""
    for first, last in _due(metadata, bookie_id):
        yield from _without(first, last, held)


def _due(metadata: LedgerMetadata, bookie_id: str) -> Iterator[Range]:
    end = last_known_entry(metadata)
    ends = [segment.first_entry_id - 1 for segment in metadata.segments[1:]] + [end]
    for segment, segment_end in zip(metadata.segments, ends, strict=True):
        if bookie_id in segment.bookies:
            index, last = segment.bookies.index(bookie_id), min(segment_end, end)
            yield from _written_to(index, segment.first_entry_id, last, metadata.ensemble_size, metadata.write_quorum)


def _written_to(index: int, first: int, last: int, ensemble_size: int, write_quorum: int) -> Iterator[Range]:
    """Entries of a segment that the bookie at `index` gets: so many in a row, at each turn of the ensemble."""
    if write_quorum >= ensemble_size:
        if first <= last:
            yield first, last
        return
    turn = first - (first - index) % ensemble_size - (write_quorum - 1)  # the first of a row; `index` itself is its last
    while turn <= last:
        begin, end = max(first, turn), min(last, turn + write_quorum - 1)
        if begin <= end:
            yield begin, end
        turn += ensemble_size


def _without(first: int, last: int, held: Sequence[Range]) -> Iterator[Range]:
    """Ranges of these entries that are in none of the held ranges."""
    at = max(0, bisect_right(held, first, key=lambda each: each[0]) - 1)
    while first <= last:
        begin, end = held[at] if at < len(held) else (last + 1, last + 1)
        if begin > first:
            yield first, min(last, begin - 1)
        first = max(first, end + 1)
        at += 1
