"""Bounds of blocks, tables, reads and pieces of the bookie's storage, exact to an entry or byte."""

from typing import Any

import pytest

from bookie.adds.memtable import Memtable, cost_bytes
from bookie.journal.format_v1 import FENCE_KIND, LedgerFenced, encode_frame
from bookie.ledgers import LedgerState
from bookie.ranges import LedgerRanges, Ranges
from bookie.reads.reading import pick_tables
from bookie.storage import block_v1, files_v1, log_reader
from bookie.storage.block_v1 import DamagedBlock, decode_table, encode_block, entry_count, plan_blocks
from bookie.storage.files_v1 import DamagedFile
from bookie.storage.index import Index
from bookie.storage.read_ahead import ReadAhead
from bookie.storage.small_files import read_file
from bookie.storage.span import Span
from tests.bookie.runs import sealed
from tests.bookie.storage.test_log_reader import OneFile
from tests.bookie.storage.test_read_ahead import World
from tests.invariants import checked_after_each_step
from tests.simulation import worlds

checked_machines = checked_after_each_step(LedgerRanges, Index)


@pytest.mark.parametrize("size", [90, 150, 250, 400, 600, 1500])
def test_a_run_that_is_too_large_is_cut_into_blocks_that_are_as_full_as_they_can_be(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_v1, "BLOCK_BYTES_MAX", 1000)
    whole = sealed(1, 0, 12, size)
    each = whole.size_bytes // 12
    assert next(sum(run.count for run in block) for block in plan_blocks([whole])) == max(1, 1000 // each)
    assert all(run.count == 1 or run.size_bytes <= 1000 for block in plan_blocks([whole]) for run in block)


def test_bytes_that_begin_no_block_have_no_count_of_entries() -> None:
    buffers, _ = encode_block([sealed(1, 0, 3)])
    block = b"".join(bytes(buffer) for buffer in buffers)
    assert entry_count(block) == 3
    for damaged in (b"", block[:20], b"x" + block[1:]):
        with pytest.raises(DamagedBlock):
            entry_count(damaged)
        with pytest.raises(DamagedBlock):
            decode_table(damaged)


def test_a_file_of_ledger_states_that_is_cut_anywhere_is_damaged() -> None:
    first = files_v1.encode_ledgers(9, [LedgerState(1, b"k")])
    both = first + files_v1.encode_ledgers(9, [LedgerState(2, b"k")])
    for size in set(range(1, len(both))) - {len(first)}:
        with pytest.raises(DamagedFile):
            files_v1.decode_ledgers(both[:size], 9)


def test_a_pick_from_memory_has_one_size_bound_over_all_entries() -> None:
    table = Memtable()
    run = sealed(1, 0, 10, 100)
    table.insert(run, cost_bytes(run))
    found, others = pick_tables([table], [(1, range(10)), (2, [5])], 3 * run.size_bytes // 10)
    assert [each.first_entry_id for each in found] == [0, 1, 2]
    assert others == [(2, 5)]


def test_parts_of_a_ledger_never_hold_the_same_entry() -> None:
    parts: Ranges[Any] = Ranges()
    parts.insert(sealed(1, 1, 3))
    parts.insert(sealed(1, 3, 3))
    assert [(part.first_entry_id, part.last_entry_id) for part in parts] == [(1, 2), (3, 5)]


def test_nothing_lies_between_an_entry_and_itself() -> None:
    index = Index()
    index.insert_all([(1, Span(0, 10, 1, 4096, 500))])
    assert index.spans_between(1, 5, 5) == []
    assert index.spans_between(1, 5, 6) == [Span(0, 10, 1, 4096, 500)]


def test_a_reader_is_read_ahead_for_by_the_larger_of_what_it_asks_for_and_what_is_set() -> None:
    ahead = ReadAhead(1 << 20, 100, 5000)
    assert ahead.widened(7, 300) == (100, 5000)
    assert ahead.widened(700, 30_000) == (700, 30_000)


def test_the_piece_that_was_not_used_for_the_longest_goes_first() -> None:
    ahead = ReadAhead(20, 100, 20)
    ahead.keep((1, 0), 0, b"x" * 10)
    ahead.keep((2, 0), 0, b"y" * 10)
    assert ahead.find((1, 0), 0, 10) is not None
    ahead.keep((3, 0), 0, b"z" * 10)
    assert [ahead.find((log_id, 0), 0, 10) is not None for log_id in (1, 2, 3)] == [True, False, True]
    assert (ahead.hits, ahead.misses) == (3, 1)


async def read_tables_of(world: World) -> int:
    for span in world.spans:
        await world.reader.tables(1, [span])
    return world.reader._tables_bytes


def test_tables_of_blocks_stay_within_their_memory_however_many_blocks_are_read() -> None:
    world = World(ReadAhead(0, 0, 0), blocks=30, count=50, size=10)
    world.reader._tables_bytes_max = 1500
    counted = worlds.run(lambda _: read_tables_of(world))
    kept = world.reader._tables
    assert 0 < counted <= 1500
    assert counted == sum(log_reader._table_bytes(table) for table in kept.values())
    assert len(kept) < 30


def test_a_small_file_is_closed_when_it_was_read() -> None:
    closed: list[str] = []

    class Closing(OneFile):
        def size(self) -> int:
            return len(self.data)

        async def close(self) -> None:
            closed.append("closed")

    assert worlds.run(lambda _: read_file(Closing(b"content"), "d/name")) == b"content"  # type: ignore[arg-type]
    assert closed == ["closed"]


def test_the_record_of_a_fence_says_its_kind_and_its_ledger_and_nothing_else() -> None:
    buffers, _ = encode_frame([LedgerFenced(0x0102)], 7, 3, 512)
    assert bytes(buffers[0])[-12:] == bytes([FENCE_KIND, 0, 0, 0]) + (0x0102).to_bytes(8, "big")
