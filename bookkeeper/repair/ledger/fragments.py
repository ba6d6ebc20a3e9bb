"""Fragments: the parts of a ledger whose copies can be counted, and which entries each bookie has of them. Pure.

A fragment is a segment whose end is known: every one but the last of a ledger that is not closed. It may hold nothing.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState
from bookkeeper.write.quorum_tracker import Quorum


@dataclass(frozen=True, slots=True)
class Fragment:
    """Entries from the first to the last; the last is before the first where there are none."""

    first_entry_id: int
    last_entry_id: int
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyRun:
    """Consecutive entries that the same bookies lack, as indexes in the ensemble."""

    first_entry_id: int
    count: int
    indexes: tuple[int, ...]


def quorum_of(metadata: LedgerMetadata) -> Quorum:
    return Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)


def fragments_of(metadata: LedgerMetadata) -> list[Fragment]:
    """Fragments in the order of their entries. An entry after the end of a closed ledger belongs to none."""
    is_closed = metadata.state == LedgerState.CLOSED
    ends = [segment.first_entry_id - 1 for segment in metadata.segments[1:]]
    ends += [metadata.last_entry_id] if is_closed else []
    return [
        Fragment(segment.first_entry_id, max(end, segment.first_entry_id - 1), segment.bookies)
        for segment, end in zip(metadata.segments, ends, strict=False)
    ]


def open_ensemble(metadata: LedgerMetadata) -> tuple[str, ...]:
    """The bookies of the segment whose end is not known; none for a closed ledger."""
    return () if metadata.state == LedgerState.CLOSED or not metadata.segments else metadata.segments[-1].bookies


def has_entry(quorum: Quorum, entry_id: int, index: int) -> bool:
    """Whether the bookie at the index gets the entry."""
    return (index - entry_id) % quorum.ensemble_size < quorum.write_quorum


def stored_ends(quorum: Quorum, fragment: Fragment, index: int) -> tuple[int, int] | None:
    """The first and the last entry of the fragment that the bookie at the index has; None: it has none."""
    ids = range(fragment.first_entry_id, fragment.last_entry_id + 1)
    stored = (entry_id for entry_id in ids[: quorum.ensemble_size] if has_entry(quorum, entry_id, index))
    first = next(stored, None)
    if first is None:
        return None
    from_end = reversed(ids[-quorum.ensemble_size :])
    return first, next(entry_id for entry_id in from_end if has_entry(quorum, entry_id, index))


def probed_entries(quorum: Quorum, fragment: Fragment, index: int, percentage: int, chance: Callable[[], float]) -> list[int]:
    """Entries read at the bookie to see whether it has the fragment: the first, the last, and so many percent
    of those between, one out of each of as many equal parts (auditorLedgerVerificationPercentage). `chance` gives 0 to 1,
    without 1."""
    ends = stored_ends(quorum, fragment, index)
    if ends is None:
        return []
    first, last = ends
    count = (last - first - 1) * percentage // 100
    parts = [first + 1 + (last - first - 1) * part // max(1, count) for part in range(count + 1)]
    chosen = {parts[at] + int(chance() * (parts[at + 1] - parts[at])) for at in range(count)}
    stored = (entry_id for entry_id in sorted({first, last, *chosen}) if has_entry(quorum, entry_id, index))
    return list(stored)


def copy_runs(quorum: Quorum, fragment: Fragment, indexes: Collection[int], count_max: int) -> Iterator[CopyRun]:
    """All entries of the fragment that bookies at these indexes should have, ascending, in runs of at most `count_max`."""
    if not quorum.is_striped:
        end = fragment.last_entry_id + 1
        for first in range(fragment.first_entry_id, end, count_max):
            yield CopyRun(first, min(count_max, end - first), tuple(sorted(indexes)))
        return
    first, lacking = fragment.first_entry_id, _lacking(quorum, fragment.first_entry_id, indexes)
    for entry_id in range(fragment.first_entry_id, fragment.last_entry_id + 1):
        now = _lacking(quorum, entry_id, indexes)
        if now != lacking or entry_id - first == count_max:
            if lacking:
                yield CopyRun(first, entry_id - first, lacking)
            first, lacking = entry_id, now
    if lacking and fragment.last_entry_id >= first:
        yield CopyRun(first, fragment.last_entry_id + 1 - first, lacking)


def _lacking(quorum: Quorum, entry_id: int, indexes: Collection[int]) -> tuple[int, ...]:
    return tuple(index for index in sorted(indexes) if has_entry(quorum, entry_id, index))


def batches(runs: Iterator[CopyRun], count_max: int) -> Iterator[list[CopyRun]]:
    """Runs together that hold at most so many entries, or one run."""
    batch: list[CopyRun] = []
    count = 0
    for run in runs:
        if batch and count + run.count > count_max:
            yield batch
            batch, count = [], 0
        batch.append(run)
        count += run.count
    if batch:
        yield batch


def could_spread_more(metadata: LedgerMetadata, place_of: Callable[[str], str], places_min: int) -> bool:
    """Whether some entry's copies are in fewer places than `places_min`, or than there are copies."""
    quorum = quorum_of(metadata)
    wanted = min(places_min, quorum.write_quorum)
    return any(
        len({place_of(segment.bookies[index]) for index in quorum.write_set(start)}) < wanted
        for segment in metadata.segments
        for start in range(quorum.ensemble_size)
    )
