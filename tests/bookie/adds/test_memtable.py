"""A memtable sorts what came mixed in bounded steps, and finds the newest entry whatever was sorted before."""

from collections.abc import Sequence
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.adds import memtable
from bookie.adds.memtable import COPIED_RUN_BYTES_MAX, Memtable, cost_bytes
from tests.bookie.runs import entries_of, mixed, sealed
from tests.invariants import checked_after_each_step
from wire.kernels.mixes import joined
from wire.run import EntryMix, EntryRun

checked_machines = checked_after_each_step(Memtable)

SIZES = st.sampled_from([20, COPIED_RUN_BYTES_MAX])
adds = st.lists(
    st.tuples(st.booleans(), st.integers(1, 3), st.integers(0, 12), st.integers(1, 5), SIZES, st.integers(0, 4)), max_size=16
)


def small_steps(patch: pytest.MonkeyPatch) -> list[int]:
    """Steps of four parts and three runs; the returned list gets the number of parts of each joining."""
    parts_joined: list[int] = []

    def noted(parts: Sequence[EntryRun | EntryMix]) -> EntryMix:
        parts_joined.append(len(parts))
        return joined(parts)

    for name, value in (("PARTS_AT_ONCE", 4), ("RUNS_AT_ONCE", 3), ("joined", noted)):
        patch.setattr(memtable, name, value)
    return parts_joined


def inserted(table: Memtable, added: EntryRun | EntryMix) -> None:
    table.insert(added, cost_bytes(added))


def found_in(table: Memtable) -> dict[tuple[int, int], bytes]:
    return {(run.ledger_id, entry_id): data for _, runs in table.sorted_ledgers() for run in runs
            for entry_id, data in entries_of(run).items()}  # fmt: skip


def test_sorting_takes_steps_of_a_bounded_number_of_parts_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    parts_joined, table = small_steps(monkeypatch), Memtable()
    for ledger_id in range(10):
        for entry_id in range(2):
            inserted(table, sealed(ledger_id, entry_id))
    steps = sum(1 for _ in table.sort_steps())
    assert parts_joined == [4, 4, 4, 4, 4]
    assert steps == len(parts_joined) + 1 + 4, "the joined parts are sorted once, ten runs find their places three at a time"
    assert [(ledger_id, [run.count for run in runs]) for ledger_id, runs in table.sorted_ledgers()] == [
        (ledger_id, [2]) for ledger_id in range(10)
    ]


def test_a_small_run_among_mixes_becomes_one_with_them_and_a_large_one_is_not_copied() -> None:
    table, large = Memtable(), sealed(1, 9, 1, COPIED_RUN_BYTES_MAX)
    for added in (mixed([sealed(1, 0, 4), sealed(2, 0, 4)]), sealed(1, 4, 5), large):
        inserted(table, added)
    assert [run.count for run in dict(table.sorted_ledgers())[1]] == [9, 1]
    found = table.find(1, 9)
    assert found is large


def test_the_known_digest_size_is_kept_while_all_entries_have_it() -> None:
    table = Memtable()
    for added in (sealed(1, 0), sealed(1, 1)):
        inserted(table, added)
    found = table.find(1, 0)
    assert found is not None
    assert found.header_bytes == 36
    inserted(table, mixed([sealed(1, 2)]))
    found = table.find(1, 2)
    assert found is not None
    assert found.header_bytes == 32


@settings(deadline=None)
@given(adds)
def test_the_newest_of_each_entry_is_found_whatever_was_sorted_when_it_came(
    plan: list[tuple[bool, int, int, int, int, int]],
) -> None:
    twin: dict[tuple[int, int], bytes] = {}
    with pytest.MonkeyPatch.context() as patch:
        small_steps(patch)
        table = Memtable()
        for number, (is_mix, ledger_id, first, count, size, steps) in enumerate(plan):
            runs = [sealed(ledger_id, first, count, size, fill=number)]
            if is_mix:
                runs.append(sealed(ledger_id + 1, first, 2, 30, fill=number))
            inserted(table, mixed(runs) if is_mix else runs[0])
            for run in runs:
                twin.update({(run.ledger_id, entry_id): data for entry_id, data in entries_of(run).items()})
            for _ in islice(table.sort_steps(), steps):
                table.check_invariants()
        assert bool(table) is bool(plan)
        assert found_in(table) == twin
