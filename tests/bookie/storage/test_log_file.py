"""Blocks that were appended are found where the spans say, in whatever pieces they went to a disk that takes pages only."""

import asyncio
from array import array

from hypothesis import given
from hypothesis import strategies as st

from bookie.storage import log_file
from bookie.storage.files_v1 import LogExtent, decode_index
from bookie.storage.log_file import LogFile, index_name, new_log
from bookie.storage.log_reader import LogReader
from bookie.storage.small_files import read_file
from bookie.storage.span import Span
from ports.disk.disk import DIRECT_ALIGNMENT
from simulation.disks.disk import SimDisk
from simulation.world.loop import SimLoop
from simulation.world.rng import stream
from simulation.world.trace import Trace
from tests.bookie.runs import entries_of, sealed
from wire.run import EntryRun

DIRECTORY = "/logs"
PIECE_BYTES = 3 * DIRECT_ALIGNMENT

flushes = st.lists(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6_000)), min_size=1, max_size=6), min_size=1, max_size=4
)


def moved(run: EntryRun) -> EntryRun:
    """The same entries somewhere else in their buffer."""
    return EntryRun(
        run.ledger_id,
        run.first_entry_id,
        b"\0" * 7 + bytes(run.buffer),
        array("I", [offset + 7 for offset in run.offsets]),
        run.header_bytes,
    )


async def write(
    disk: SimDisk, plan: list[list[tuple[int, int]]], *, reopens: bool
) -> tuple[LogExtent, list[tuple[Span, EntryRun]]]:
    """A log of these flushes, each a list of runs (entries, payload bytes)."""
    await disk.make_directories(DIRECTORY)
    extent, written, at = new_log(1), list[tuple[Span, EntryRun]](), 0
    file: LogFile | None = None
    for flush in plan:
        if file is None:
            file = LogFile(disk, DIRECTORY, extent, "test", direct=True)
            await file.open()
        added = []
        for count, size in flush:
            run = moved(sealed(7, at, count, size))
            added.append((await file.append([run]), run))
            at += count
        extent, batch = await file.finish()
        assert batch == [(7, span) for span, _ in added]
        assert extent.log_bytes % DIRECT_ALIGNMENT == 0
        written += added
        if reopens:
            await file.close()
            file = None
    if file is not None:
        await file.close()
    return extent, written


@given(flushes, st.booleans(), st.booleans())
def test_appended_entries_are_read_back(plan: list[list[tuple[int, int]]], reopens: bool, power_cut: bool) -> None:
    async def scenario() -> None:
        extent, written = await write(disk, plan, reopens=reopens)
        if power_cut:
            disk.crash(power_cut=True)
        reader = LogReader(disk, DIRECTORY, files_max=1, tables_bytes_max=1 << 20, direct=True)
        for span, run in written:
            assert entries_of(await reader.read_checked(7, span)) == entries_of(run)
        index = await read_file(disk, f"{DIRECTORY}/{index_name(1)}", extent.index_bytes)
        assert list(decode_index(index, 1)) == [(7, span) for span, _ in written]
        assert await reader.scan(extent) == ([(7, span) for span, _ in written], True)
        await reader.close()

    loop = SimLoop(stream(0, "loop"), Trace(None))
    disk = SimDisk(loop, stream(0, "disk"))
    whole, log_file.WRITE_BYTES = log_file.WRITE_BYTES, PIECE_BYTES
    try:
        loop.run_until_complete(scenario())
    finally:
        log_file.WRITE_BYTES = whole
        loop.finish()


def test_pieces_are_written_before_the_end() -> None:
    """Memory is bounded: what waits is less than a piece and a block."""

    async def scenario() -> None:
        await disk.make_directories(DIRECTORY)
        file = LogFile(disk, DIRECTORY, new_log(1), "test", direct=True)
        await file.open()
        for entry_id in range(30):
            await file.append([sealed(7, entry_id, 1, 200_000)])
            assert file._waiting_bytes < log_file.WRITE_BYTES
        await file.finish()
        await file.close()

    loop = SimLoop(stream(0, "loop"), Trace(None))
    disk = SimDisk(loop, stream(0, "disk"))
    try:
        loop.run_until_complete(asyncio.wait_for(scenario(), 60))
    finally:
        loop.finish()
