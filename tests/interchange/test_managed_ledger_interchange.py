"""Managed ledgers and cursors written by Apache's own code are opened by ours, ours by Apache's, and both see the same."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyroaring import BitMap

from managed_ledger.contract import EARLIEST
from managed_ledger.cursor.holes.bitmaps import WORD_MASK
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from tests.managed_ledger.ledger_world import World, append_each, run, small
from wire.compressed_metadata import COMPRESSIONS
from wire.position import Position

from .apache_program import HAS_JAVA, ApacheProgram
from .durable import NAMESPACE, dump, load, names, state_lines, state_of

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not HAS_JAVA, reason="no Java toolchain"),
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> ApacheProgram:
    return ApacheProgram(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def by_apache(apache: ApacheProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that Apache wrote, in a directory for each compression."""
    directory = tmp_path_factory.mktemp("by-apache")
    apache.write(directory)
    return directory


def world(compression: str, *, is_array: bool = True) -> World:
    return World(
        small(
            managed_ledger_info_compression_type=compression,
            managed_ledger_info_compression_threshold_in_bytes=16,
            managed_cursor_info_compression_type=compression,
            managed_cursor_info_compression_threshold_in_bytes=16,
            managed_ledger_persist_individual_ack_as_long_array=is_array,
        )
    )


async def state_of_all(world: World) -> list[str]:
    return sorted([line for name in await names(world) for line in await state_of(await world.open(name))])


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_managed_ledgers_written_by_apache_are_read_alike_by_us(by_apache: Path, compression: str) -> None:
    async def scenario() -> None:
        ours = world("NONE")
        await load(ours, by_apache / compression)
        assert await state_of_all(ours) == state_lines(by_apache / compression)

    run(scenario())
    assert len(state_lines(by_apache / compression)) > 400


def test_managed_ledgers_written_by_us_are_read_alike_by_apache(apache: ApacheProgram, tmp_path: Path) -> None:
    seen: dict[Path, list[str]] = {}

    async def scenario(directory: Path, compression: str, is_array: bool) -> None:
        ours = world(compression, is_array=is_array)
        for kind in ("stopped", "killed"):
            ledger = await ours.open(NAMESPACE + kind)
            await acknowledge_in_many_ways(ledger)
            state = await state_of(ledger)
            assert sum("\tleft of batch\t" in line for line in state) == 2
            if kind == "stopped":
                state = recovered_from_nodes(state)
                await ledger.close()
            else:
                for cursor in ledger.cursors.values():
                    await cursor.flush()
            seen.setdefault(directory, []).extend(state)
        ledger = await ours.open(NAMESPACE + "terminated")
        await append_each(ledger, 3)
        await ledger.terminate()
        seen[directory] += await state_of(ledger)
        await dump(ours, directory)

    for compression in COMPRESSIONS:
        for is_array in (True, False):
            directory = tmp_path / f"{compression}-{is_array}"
            run(scenario(directory, compression, is_array))
    assert_apache_sees(apache, seen)


async def acknowledge_in_many_ways(ledger: StoredManagedLedger) -> None:
    await ledger.set_properties({"partitions": "4", "owner": "somebody"})
    await ledger.open_cursor("nothing", EARLIEST)
    everything = await ledger.open_cursor("all", EARLIEST)
    holes = await ledger.open_cursor("holes", EARLIEST)
    second = await ledger.open_cursor("every second", EARLIEST)
    batches = await ledger.open_cursor("batches", EARLIEST)
    described = await ledger.open_cursor("described", EARLIEST, {"filter": "a > 1"})
    positions = await append_each(ledger, 25)
    everything.acknowledge_cumulative(positions[-1])
    holes.acknowledge_cumulative(positions[4])
    for each in (7, 8, 9, 10, 11, 13, 19, 24):
        holes.acknowledge_entries(positions[each].ledger_id, BitMap([positions[each].entry_id]))
    for position in positions[1::2]:
        second.acknowledge_entries(position.ledger_id, BitMap([position.entry_id]))
    batches.acknowledge_batch_indexes(positions[2], ack_set(5, 0, 3), 5)
    batches.acknowledge_batch_indexes(positions[12], ack_set(130, 64, 130), 130)
    batches.acknowledge_entries(positions[15].ledger_id, BitMap([positions[15].entry_id]))
    await described.set_cursor_properties({"filter": "a > 2", "added": "later"})
    described.acknowledge_cumulative(positions[11])


def ack_set(size: int, first: int, end: int) -> Sequence[int]:
    """Words of a batch of which the messages from `first` up to `end` are acknowledged."""
    left = (1 << size) - 1 & ~((1 << end) - (1 << first))
    return [left >> shift & WORD_MASK for shift in range(0, size, 64)]


@pytest.mark.parametrize("compression", ["NONE", "ZSTD"])
def test_apache_sees_what_we_did_to_its_topics(
    apache: ApacheProgram, by_apache: Path, tmp_path: Path, compression: str
) -> None:
    seen: dict[Path, list[str]] = {}

    async def scenario(directory: Path, stops: bool) -> None:
        ours = world(compression)
        await load(ours, by_apache / compression)
        seen[directory] = []
        for name in await names(ours):
            ledger = await ours.open(name)
            if not ledger.is_terminated:
                await go_on(ledger)
            seen[directory] += await state_of(ledger)
        if stops:
            await ours.ledgers.close()
            seen[directory] = recovered_from_nodes(seen[directory])
        await dump(ours, directory)

    run(scenario(tmp_path / "killed", False))
    run(scenario(tmp_path / "stopped", True))
    assert_apache_sees(apache, seen)


def test_apache_refuses_a_topic_with_segments_of_holes_rather_than_forget_them(apache: ApacheProgram, tmp_path: Path) -> None:
    async def scenario() -> None:
        ours = World(small(managed_ledger_max_unacked_ranges_to_persist=3))
        ledger = await ours.open(NAMESPACE + "segmented")
        cursor = await ledger.open_cursor("very many", EARLIEST)
        for position in (await append_each(ledger, 25))[1::2]:
            cursor.acknowledge_entries(position.ledger_id, BitMap([position.entry_id]))
        await cursor.flush()
        assert cursor.hole_stats().is_segmented
        await dump(ours, tmp_path)

    run(scenario())
    with pytest.raises(AssertionError, match="ManagedLedgerException"):
        apache.read([tmp_path])


async def go_on(ledger: StoredManagedLedger) -> None:
    """More entries, and each cursor acknowledges the second and the fourth entry that it has left."""
    await append_each(ledger, 12, first=100)
    for cursor in ledger.cursors.values():
        left: list[Position] = []
        at = cursor.first_unacknowledged()
        while at <= ledger.last_confirmed:
            if not cursor.is_acknowledged(at):
                left.append(at)
            at = ledger.next_position(at)
        for position in left[1:4:2]:
            cursor.acknowledge_entries(position.ledger_id, BitMap([position.entry_id]))
        await cursor.flush()


def recovered_from_nodes(lines: list[str]) -> list[str]:
    """Apache 4.0.8 writes batch indexes into a node, and reads them from cursor ledgers only: of its own topics too."""
    return [line for line in lines if "\tleft of batch\t" not in line]


def assert_apache_sees(apache: ApacheProgram, seen: dict[Path, list[str]]) -> None:
    apache.read(list(seen))
    for directory, lines in seen.items():
        assert len(lines) > 50
        assert "\n".join(state_lines(directory)) == "\n".join(sorted(lines)), directory.name
