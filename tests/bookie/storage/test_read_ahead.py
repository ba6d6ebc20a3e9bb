"""A reader that goes on where it was costs few reads of the disk, one that jumps about none too many, and memory is bounded."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.storage.block_v1 import encode_block
from bookie.storage.log_reader import LogReader
from bookie.storage.read_ahead import READERS_MAX, ReadAhead
from bookie.storage.span import Span
from tests.bookie.runs import entries_of, sealed
from tests.bookie.storage.test_log_reader import OFFSET, OneFile
from tests.invariants import checked_after_each_step
from wire.run import EntryRun
from wire.run_parts import join

checked_machines = checked_after_each_step(ReadAhead)

SIZE, COUNT, BATCH = 1000, 1000, 100


class World:
    """A log of several blocks of one ledger; single reads of it."""

    def __init__(self, ahead: ReadAhead, blocks: int = 1, count: int = COUNT, size: int = SIZE) -> None:
        self.ahead, self.count, self.spans = ahead, count, list[Span]()
        data = bytearray(OFFSET)
        for first in range(0, blocks * count, count):
            run = join([sealed(1, first + index, 1, size) for index in range(count)])
            buffers, block_bytes = encode_block([run])
            self.spans.append(Span(first, count, 1, len(data), block_bytes))
            data += b"".join(buffers)
        self.size = size
        self.file = OneFile(bytes(data))
        self.reader = LogReader(
            self.file,  # type: ignore[arg-type]
            "d",
            files_max=1,
            tables_bytes_max=1 << 20,
            direct=True,
            ahead=ahead,
        )

    async def read(self, entry_id: int, count_max: int = 1, bytes_max: int = 1 << 20) -> EntryRun:
        run = await self.reader.read(1, self.spans[entry_id // self.count], entry_id, count_max, bytes_max)
        expected = {each: entries_of(sealed(1, each, 1, self.size))[each] for each in range(entry_id, entry_id + run.count)}
        assert entries_of(run) == expected
        return run


def run(coroutine: object) -> None:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)  # type: ignore[attr-defined]
    except StopIteration:
        return
    raise AssertionError("it waits")


def test_entries_read_one_by_one_cost_a_read_for_each_batch() -> None:
    async def scenario(batch: int, reads_max: int) -> None:
        world = World(ReadAhead(1 << 20, batch, -1), blocks=3)
        for entry_id in range(3 * COUNT):
            assert (await world.read(entry_id)).count == 1
        assert len(world.file.reads) <= reads_max
        assert batch == 0 or max(world.file.reads) < (BATCH + 10) * (SIZE + 50)

    run(scenario(BATCH, 3 * (COUNT // BATCH + 2)))
    run(scenario(0, 3 * COUNT))


def test_without_it_each_entry_costs_a_read() -> None:
    async def scenario() -> None:
        world = World(ReadAhead(1 << 20, 0, -1))
        for entry_id in range(50):
            await world.read(entry_id)
        assert len(world.file.reads) == 50

    run(scenario())


def test_scattered_reads_read_nothing_ahead() -> None:
    async def scenario() -> None:
        world = World(ReadAhead(1 << 20, BATCH, -1))
        for entry_id in range(COUNT - 1, 0, -7):
            await world.read(entry_id)
        assert max(world.file.reads[2:]) < 2 * SIZE

    run(scenario())


def test_no_more_bytes_than_asked_for_are_read_ahead() -> None:
    async def scenario() -> None:
        world = World(ReadAhead(1 << 20, BATCH, 5 * (SIZE + 36)))
        for entry_id in range(50):
            await world.read(entry_id)
        assert max(world.file.reads[2:]) <= 5 * (SIZE + 36)
        assert len(world.file.reads) <= 14

    run(scenario())


def test_memory_is_bounded_also_where_an_entry_is_larger_than_the_cache() -> None:
    async def scenario(size: int) -> None:
        world = World(ReadAhead(20_000, BATCH, -1), blocks=20, count=10, size=size)
        for entry_id in range(200):
            await world.read(entry_id)
            kept = sum(len(piece) for _, piece in world.ahead._pieces.values())
            assert kept == world.ahead._pieces_bytes <= 20_000
        await world.reader.forget(1)
        assert world.ahead._pieces_bytes == 0

    run(scenario(1000))
    run(scenario(30_000))


def test_the_readers_that_are_remembered_are_bounded() -> None:
    ahead = ReadAhead(1000, 10, -1)
    for ledger_id in range(3 * READERS_MAX):
        ahead.was_read(ledger_id, 4)
    assert len(ahead._next) == READERS_MAX
    assert ahead.goes_on(3 * READERS_MAX - 1, 5)
    assert not ahead.goes_on(0, 5)


READ = st.tuples(st.integers(0, 59), st.integers(1, 8), st.integers(1, 400), st.booleans())


@settings(deadline=None)
@given(st.lists(READ, max_size=40), st.integers(0, 12), st.integers(-1, 300), st.integers(0, 2000))
def test_every_read_is_right_whatever_is_read_ahead(
    reads: list[tuple[int, int, int, bool]], batch: int, batch_bytes: int, bytes_max: int
) -> None:
    async def scenario() -> None:
        world = World(ReadAhead(bytes_max, batch, batch_bytes), blocks=3, count=20, size=30)
        at = 0
        for entry_id, count_max, size_max, goes_on in reads:
            first = at % 60 if goes_on else entry_id
            found = await world.read(first, count_max, size_max)
            assert 1 <= found.count <= count_max
            assert found.count == 1 or found.size_bytes <= size_max
            at = first + found.count

    run(scenario())
