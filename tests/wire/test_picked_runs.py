"""Runs of picked entries say of each index which entry it is, and have the payloads of those wanted, and nothing else."""

from array import array
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from wire import picked_runs as module
from wire.kernels.metadata import scan
from wire.picked_runs import picked_runs
from wire.run import FLAG_UNPARSEABLE, EntryRun

HEADER = 36


def part(first: int, sizes: list[int]) -> EntryRun:
    """Entries of ledger 3, with payloads that say which entry they are."""
    payloads = [b"%d:" % (first + index) + bytes(size) for index, size in enumerate(sizes)]
    buffer = b"gap" + b"".join(bytes(HEADER) + payload for payload in payloads)
    offsets = array("I", accumulate((HEADER + len(payload) for payload in payloads), initial=3))
    return EntryRun(3, first, buffer, offsets, HEADER)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.lists(st.integers(0, 5), min_size=1, max_size=20)), max_size=6),
    st.integers(1, 60),
    st.data(),
)
def test_the_wanted_entries_are_there_byte_for_byte_and_the_others_are_empty(
    shape: list[tuple[int, list[int]]], empty_max: int, data: st.DataObject
) -> None:
    parts, entry_id = [], 0
    for gap, sizes in shape:
        parts.append(part(entry_id + gap, sizes))
        entry_id += gap + len(sizes)
    wanted = BitMap(data.draw(st.sets(st.integers(0, max(entry_id, 1)))))
    there = {
        entry: bytes(each.payload(entry)) for each in parts for entry in range(each.first_entry_id, each.last_entry_id + 1)
    }
    expected = {entry: there[entry] for entry in wanted if entry in there}
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(module, "EMPTY_MAX", empty_max)
        runs = list(picked_runs(parts, wanted))
    found: dict[int, bytes] = {}
    for run in runs:
        assert run.ledger_id == 3
        theirs = {entry: bytes(run.payload(entry)) for entry in range(run.first_entry_id, run.last_entry_id + 1)}
        assert theirs[run.first_entry_id]
        assert theirs[run.last_entry_id]
        found |= {entry: payload for entry, payload in theirs.items() if payload}
    assert found == expected
    assert list(found) == sorted(found)
    for before, after in pairwise(runs):
        assert after.first_entry_id - before.last_entry_id > empty_max


def test_empty_places_count_as_one_message_each_that_nobody_can_read() -> None:
    (run,) = picked_runs([part(10, [1] * 5)], BitMap([10, 14]))
    found = scan(run)
    assert (list(found.message_counts), list(found.flags)) == ([1] * 5, [FLAG_UNPARSEABLE] * 5)
