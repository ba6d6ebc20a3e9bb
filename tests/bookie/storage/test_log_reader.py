"""Reads of blocks against what was written: any part, whatever is known of the block, and no more of the file than needed."""

import asyncio
import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.storage.block_v1 import BLOCK_HEADER_BYTES, EXTENT_BYTES, DamagedBlock, encode_block, head_size
from bookie.storage.log_reader import LogReader
from bookie.storage.span import Span
from tests.bookie.runs import entries_of, sealed
from wire.run import EntryRun
from wire.run_parts import is_what_it_says, join

OFFSET = 4096
MANY = 1 << 30


class OneFile:
    """A disk that is one file, and the file; counts what was read."""

    path = ""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[int] = []

    async def open(
        self, path: str, *, create: bool = False, lane: str = "", direct: bool = False, queued: bool = False
    ) -> "OneFile":
        return self

    async def read(self, offset: int, size: int) -> bytes:
        found = self.data[offset : offset + size]
        self.reads.append(len(found))
        return found

    read_piece = read

    async def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        return [await self.read(*each) for each in places]

    async def close(self) -> None:
        pass


def written(sizes: list[int], tables_bytes_max: int = 1 << 20) -> tuple[EntryRun, Span, OneFile, LogReader]:
    run = join([sealed(1, 10 + index, 1, size) for index, size in enumerate(sizes)])
    buffers, size = encode_block([run])
    file = OneFile(bytes(OFFSET) + b"".join(buffers) + b"what follows")
    reader = LogReader(file, "d", files_max=1, tables_bytes_max=tables_bytes_max, direct=True)  # type: ignore[arg-type]
    return run, Span(10, run.count, 1, OFFSET, size), file, reader


READ = st.tuples(st.integers(0, 30), st.integers(1, 40), st.integers(1, 3000))


@settings(deadline=None)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.lists(READ, min_size=1, max_size=6), st.booleans())
def test_any_part_of_a_block_is_what_was_written_and_as_long_as_its_bounds_allow(
    sizes: list[int], reads: list[tuple[int, int, int]], remembers: bool
) -> None:
    run, span, _, reader = written(sizes, 1 << 20 if remembers else 0)
    for start, count_max, bytes_max in reads:
        first = 10 + start % run.count
        part = asyncio.run(reader.read(1, span, first, count_max, bytes_max))
        whole = entries_of(run)
        assert part.first_entry_id == first
        assert entries_of(part) == {entry_id: whole[entry_id] for entry_id in range(first, part.last_entry_id + 1)}
        assert part.count <= count_max
        assert part.count == 1 or part.size_bytes <= bytes_max
        following = part.last_entry_id + 1
        if following in whole and part.count < count_max:
            assert part.size_bytes + len(whole[following]) > bytes_max


def test_a_whole_block_is_one_read_and_a_later_part_of_it_is_a_read_of_that_part() -> None:
    _, span, file, reader = written([100] * 50)
    asyncio.run(reader.read(1, span, 10, MANY, MANY))
    assert file.reads == [span.size_bytes]
    asyncio.run(reader.read(1, span, 40, 2, MANY))
    assert file.reads[1:] == [2 * 136]


def test_a_single_entry_of_an_unknown_block_costs_its_table_and_itself() -> None:
    _, span, file, reader = written([1000] * 50)
    asyncio.run(reader.read(1, span, 30, 1, MANY))
    assert file.reads == [head_size(50), 1036]


@pytest.mark.parametrize("what", ["whole", "part", "damaged"])
def test_a_single_entry_of_a_large_block_costs_its_offsets_and_itself_unless_they_lead_elsewhere(what: str) -> None:
    run, span, file, reader = written([100] * 3000)
    if what == "part":
        span = span.entries(1000, 500)
    if what == "damaged":
        at = OFFSET + BLOCK_HEADER_BYTES + 4 * 1100
        file.data = file.data[: at + 1] + b"x" + file.data[at + 2 :]
        with pytest.raises(DamagedBlock):
            asyncio.run(reader.read(1, span, 1110, 1, MANY))
        return
    part = asyncio.run(reader.read(1, span, 1110, 1, MANY))
    assert entries_of(part) == entries_of(run.entries(1110, 1))
    if what == "whole":
        assert file.reads == [EXTENT_BYTES, 136]


def test_a_read_of_part_of_a_block_gives_only_the_entries_of_that_part() -> None:
    run, span, _, reader = written([10] * 20)
    part = asyncio.run(reader.read(1, span.entries(15, 4), 15, MANY, MANY))
    assert entries_of(part) == entries_of(run.entries(15, 4))


@pytest.mark.parametrize("first", [10, 20])
def test_a_file_that_ends_too_soon_is_damage_and_never_a_shorter_run(first: int) -> None:
    for known in (False, True):
        _, span, file, reader = written([100] * 20)
        if known:
            asyncio.run(reader.read(1, span, 12, 1, MANY))
        file.data = file.data[: OFFSET + span.size_bytes - 30]
        with pytest.raises(DamagedBlock):
            asyncio.run(reader.read(1, span, first, MANY, MANY))


def test_a_block_of_another_place_is_damage() -> None:
    _, span, _, reader = written([10] * 5)
    with pytest.raises(DamagedBlock):
        asyncio.run(reader.read(2, span, 10, 1, MANY))
    with pytest.raises(DamagedBlock):
        asyncio.run(reader.read(1, Span(11, 5, 1, OFFSET, span.size_bytes), 11, 1, MANY))
    with pytest.raises(DamagedBlock):
        asyncio.run(reader.read(1, Span(10, 5, 1, OFFSET, span.size_bytes + 1), 10, MANY, MANY))


@settings(deadline=None)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.sets(st.integers(0, 29)), st.booleans(), st.integers(0, 9))
def test_picked_entries_of_a_block_are_as_written_and_cost_their_offsets_and_themselves(
    sizes: list[int], wanted: set[int], is_known: bool, cut: int
) -> None:
    """Ids tell the entries of a span that is part of its block from others."""
    run, span, file, reader = written(sizes)
    if is_known:
        asyncio.run(reader.read(1, span, 10, 1, 1))
    cut = min(cut, run.count - 1)
    part = span.entries(10 + cut, run.count - cut)
    ids = [10 + each for each in sorted(wanted) if cut <= each < run.count]
    file.reads.clear()
    found = asyncio.run(reader.pick([(1, part, entry_id) for entry_id in ids], MANY))
    sound = {each.first_entry_id: entries_of(each)[each.first_entry_id] for each in found if is_what_it_says(each)}
    whole = entries_of(run)
    assert sound == {entry_id: whole[entry_id] for entry_id in sound}
    if is_known or not cut:
        assert list(sound) == ids
        assert file.reads == [EXTENT_BYTES] * (0 if is_known else len(ids)) + [len(whole[entry_id]) for entry_id in ids]


@settings(deadline=None)
@given(st.binary(min_size=8, max_size=8), st.integers(0, 19), st.integers(0, 2000))
def test_offsets_that_are_damaged_lead_to_nothing_that_is_not_there(offsets: bytes, index: int, missing: int) -> None:
    _, span, file, reader = written([100] * 20)
    at = OFFSET + BLOCK_HEADER_BYTES + 4 * index
    file.data = (file.data[:at] + offsets + file.data[at + 8 :])[: len(file.data) - missing]
    for each in asyncio.run(reader.pick([(1, span, entry_id) for entry_id in range(10, 30)], MANY)):
        assert len(each.buffer) == each.size_bytes <= span.size_bytes


def test_no_more_is_picked_than_there_is_room_for() -> None:
    _, span, _, reader = written([100] * 20)
    found = asyncio.run(reader.pick([(1, span, entry_id) for entry_id in range(10, 30)], 3 * 136 + 100))
    assert [each.first_entry_id for each in found] == [10, 11, 12]


def test_tables_of_many_blocks_are_read_together_and_none_that_is_known() -> None:
    runs = [sealed(1, first, 2) for first in range(0, 300, 3)]
    data, spans = bytes(OFFSET), list[Span]()
    for run in runs:
        buffers, size = encode_block([run])
        spans.append(Span(run.first_entry_id, run.count, 1, len(data), size))
        data += b"".join(buffers)
    damaged, first, last = bytearray(data), spans[7], spans[-1]
    damaged[first.offset] ^= 1
    together: list[int] = []

    class Counted(OneFile):
        async def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
            together.append(len(places))
            return await super().read_all(places)

    reader = LogReader(Counted(bytes(damaged)), "d", files_max=1, tables_bytes_max=1 << 20, direct=True)  # type: ignore[arg-type]
    part = Span(last.first_entry_id + 1, 1, 1, last.offset, last.size_bytes)
    longer = dataclasses.replace(spans[9], size_bytes=spans[9].size_bytes + 1)
    assert asyncio.run(reader.tables(1, [longer])) == [None], "its block is another than the index says"
    together.clear()
    for wanted in ([*spans[:-1], part], spans):
        tables = asyncio.run(reader.tables(1, wanted))
        assert [table is None for table in tables] == [span == first for span in wanted]
        found = {table.first_entry_id: list(table.offsets) for table in tables if table is not None}
        assert found == {run.first_entry_id: list(encoded_offsets(run)) for run in runs if run is not runs[7]}
    assert together == [len(spans), 1], "but for the one that is damaged, which is nobody's table"


def encoded_offsets(run: EntryRun) -> Sequence[int]:
    """Encoded offsets of a block that has this run alone."""
    return [head_size(run.count) + offset - run.offsets[0] for offset in run.offsets]
