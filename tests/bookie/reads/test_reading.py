"""A read of memtables against a dictionary: the newest of each entry, the bounds, nothing beyond a gap."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.adds.memtable import Memtable, cost_bytes
from bookie.reads.reading import last_add_confirmed, read_tables, slice_run
from tests.bookie.runs import entries_of, mixed, sealed
from tests.invariants import checked_after_each_step
from wire.run import EntryRun
from wire.run_parts import is_what_it_says, join

checked_machines = checked_after_each_step(Memtable)

inserts = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6), st.integers(0, 60)), max_size=12)


@settings(deadline=None)
@given(inserts, inserts, st.integers(0, 30), st.integers(1, 12), st.integers(1, 700))
def test_a_read_gives_the_newest_entries_within_its_bounds(
    older: list[tuple[int, int, int]], newer: list[tuple[int, int, int]], first: int, count_max: int, bytes_max: int
) -> None:
    twin: dict[int, bytes] = {}
    tables: list[Memtable] = []
    for fill, plan in enumerate((older, newer)):
        table = Memtable()
        for number, (start, count, size) in enumerate(plan):
            run = sealed(1, start, count, size, fill=fill * 100 + number)
            table.insert(run, cost_bytes(run))
            twin.update(entries_of(run))
        tables.insert(0, table)
    found = read_tables(tables, 1, first, count_max, bytes_max)
    assert read_tables(tables, 2, first, count_max, bytes_max) is None
    if found is None:
        assert first not in twin
        return
    assert found.first_entry_id == first
    assert 1 <= found.count <= count_max
    assert found.count == 1 or found.size_bytes <= bytes_max
    assert is_what_it_says(found)
    assert all(twin[entry_id] == data for entry_id, data in entries_of(found).items())
    following = found.last_entry_id + 1
    if following in twin and found.count < count_max:
        assert found.size_bytes + len(twin[following]) > bytes_max


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3), st.integers(0, 12), st.integers(1, 5)), max_size=16), st.booleans())
def test_entries_added_mixed_are_found_like_entries_added_in_runs(plan: list[tuple[bool, int, int, int]], looks: bool) -> None:
    twin: dict[tuple[int, int], bytes] = {}
    table = Memtable()
    for number, (is_mix, ledger_id, first, count) in enumerate(plan):
        runs = [sealed(ledger_id, first, count, 20, fill=number)]
        if is_mix:
            runs.append(sealed(ledger_id + 1, first, 2, 30, fill=number))
        added = mixed(runs) if is_mix else runs[0]
        table.insert(added, cost_bytes(added))
        for run in runs:
            twin.update({(run.ledger_id, entry_id): data for entry_id, data in entries_of(run).items()})
        if looks:
            assert table.find(ledger_id, first) is not None
    found = {(run.ledger_id, entry_id): data for _, runs in table.sorted_ledgers() for run in runs
             for entry_id, data in entries_of(run).items()}  # fmt: skip
    assert found == twin
    assert bool(table) is bool(plan)
    assert table.last_entry_id(1) == max((entry_id for ledger_id, entry_id in twin if ledger_id == 1), default=-1)


def test_a_mix_that_is_sorted_is_one_run_of_each_ledger_and_costs_what_they_cost() -> None:
    table = Memtable()
    runs = [sealed(ledger_id, 5, 40, 100) for ledger_id in (9, 2, 4)]
    for start in range(0, 40, 10):
        mix = mixed([run.entries(5 + start, 10) for run in runs])
        table.insert(mix, cost_bytes(mix))
    before = table.size_bytes
    assert [ledger_id for ledger_id, _ in table.sorted_ledgers()] == [2, 4, 9]
    assert [list(map(entries_of, found)) for _, found in table.sorted_ledgers()] == [
        [entries_of(run)] for run in sorted(runs, key=lambda run: run.ledger_id)
    ]
    assert table.size_bytes == sum(map(cost_bytes, runs))
    assert table.size_bytes < before


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(0, 50), st.integers(1, 10), st.integers(1, 500))
def test_a_slice_is_as_long_as_its_bounds_allow(count: int, size: int, count_max: int, bytes_max: int) -> None:
    run = sealed(1, 10, count, size)
    for first in range(10, 10 + count):
        part = slice_run(run, first, count_max, bytes_max)
        whole = list(range(first, 10 + count))[:count_max]
        fitting = [number for number in range(1, len(whole) + 1) if number == 1 or number * (size + 36) <= bytes_max]
        assert (part.first_entry_id, part.count) == (first, max(fitting))
        assert part.buffer is run.buffer


def test_joined_runs_are_their_entries_in_one_buffer() -> None:
    runs = [sealed(1, 0, 2, 5), sealed(1, 0, 5, 7).entries(2, 2), sealed(1, 4, 1, 0)]
    joined = join(runs)
    assert entries_of(joined) == {key: data for run in runs for key, data in entries_of(run).items()}
    assert joined.offsets[0] == 0
    assert last_add_confirmed(joined) == 3


def test_a_run_that_holds_another_place_is_not_what_it_says() -> None:
    run = sealed(1, 5, 3)
    assert is_what_it_says(run)
    assert not is_what_it_says(EntryRun(2, 5, run.buffer, run.offsets))
    assert not is_what_it_says(EntryRun(1, 4, run.buffer, run.offsets))
    mixed = join([sealed(1, 5, 2), EntryRun(1, 7, sealed(1, 8).buffer, sealed(1, 8).offsets)])
    assert not is_what_it_says(mixed)
