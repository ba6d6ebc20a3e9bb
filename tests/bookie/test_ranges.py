"""Parts of ledgers over one another, against a dictionary."""

import itertools
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.ranges import NO_ENTRY, Ranges
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(Ranges)


@dataclass(frozen=True)
class Labelled:
    first_entry_id: int
    count: int
    label: int

    @property
    def last_entry_id(self) -> int:
        return self.first_entry_id + self.count - 1

    def entries(self, first_entry_id: int, count: int) -> "Labelled":
        assert self.first_entry_id <= first_entry_id
        assert count > 0
        assert first_entry_id + count <= self.first_entry_id + self.count
        return Labelled(first_entry_id, count, self.label)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=30))
def test_the_newest_part_holds_each_entry(inserts: list[tuple[int, int]]) -> None:
    ranges: Ranges[Labelled] = Ranges()
    twin: dict[int, int] = {}
    for label, (first, count) in enumerate(inserts):
        ranges.insert(Labelled(first, count, label))
        twin.update(dict.fromkeys(range(first, first + count), label))
    for entry_id in range(-1, 45):
        found = ranges.find(entry_id)
        assert (None if found is None else found.label) == twin.get(entry_id)
    parts = list(ranges)
    assert ranges.last_entry_id == max(twin, default=-1)
    assert all(before.last_entry_id < after.first_entry_id for before, after in itertools.pairwise(parts))
    for entry_id in range(-1, 45):
        later = [part.first_entry_id for part in parts if part.first_entry_id > entry_id]
        assert ranges.first_after(entry_id) == min(later, default=NO_ENTRY)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12), st.booleans()), max_size=30))
def test_entries_are_cut_out_where_all_are_there_and_none_had_taken_the_place_of_another(
    steps: list[tuple[int, int, bool]],
) -> None:
    ranges: Ranges[Labelled] = Ranges()
    twin: dict[int, int] = {}
    for label, (first, count, is_cut) in enumerate(steps):
        wanted = range(first, first + count)
        if not is_cut:
            ranges.insert(Labelled(first, count, label))
            twin.update(dict.fromkeys(wanted, label))
            continue
        parts, before = iter(ranges), list(ranges)
        is_done = ranges.cut(first, first + count - 1)
        assert is_done == (not ranges.has_replaced and twin.keys() >= set(wanted))
        assert list(parts) == before, "who iterates goes on with what there was"
        for entry_id in wanted if is_done else ():
            del twin[entry_id]
    for entry_id in range(-1, 45):
        found = ranges.find(entry_id)
        assert (None if found is None else found.label) == twin.get(entry_id)
