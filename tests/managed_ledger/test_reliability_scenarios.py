"""Failures that others have had, by their number in the catalogue of scenarios (F01 to F07), on managed ledgers.

Each names the issue of Apache Pulsar that it comes from. F03, F04 and F21 are played with a whole server in `tests/simulation`.
"""

import asyncio
import random

import pytest
from pyroaring import BitMap

from managed_ledger.contract import EARLIEST, ManagedCursor
from managed_ledger.ledgers.info import ListedLedger, decode_info, encode_info
from managed_ledger.managed_ledger_driver import StoredManagedLedger

from .fake_ledgers import FakeLedger
from .ledger_world import NAME, World, append, append_each, numbers, read_all, run, small, trimming

PATH = f"/managed-ledgers/{NAME}"
PERSIST_SECONDS = 2.5
"""Time until a mark is stored, at one mark a second, and some."""
HOLES_OF_APACHE_MAX = 10_000


def data_ledgers(world: World) -> list[int]:
    """Existing ledgers of the log, without the cursors'."""
    return sorted(each for each, ledger in world.shared.ledgers.items() if "pulsar/cursor" not in ledger.custom_metadata)


async def listed(world: World) -> dict[int, bool]:
    """The ledgers that the log's node names, and whether each is marked for deletion."""
    node = await world.store.get(PATH)
    assert node is not None
    return {each.ledger_id: each.is_deleting for each in decode_info(NAME, node.value).ledgers}


def test_f01_more_holes_than_apache_keeps_survive_a_kill() -> None:
    """P#25540, P#25548: every second entry is acknowledged, beyond managedLedgerMaxUnackedRangesToPersist."""

    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=50_000, managed_ledger_default_mark_delete_rate_limit=1.0))
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST)
        count = 2 * HOLES_OF_APACHE_MAX + 5000
        for first in range(0, count, 1000):
            last = await append(ledger, *numbers(1000, first))
        odd = BitMap(range(1, count, 2))
        assert cursor.acknowledge_entries(last.ledger_id, odd) == odd
        await asyncio.sleep(PERSIST_SECONDS)
        again = (await world.reopen()).cursors["sub"]
        assert again.acknowledged_in(last.ledger_id) == odd
        assert again.backlog_entries() == count - len(odd)

    run(scenario())


def test_f02_three_holes_over_thirty_million_entries_are_stored_and_small() -> None:
    """P#25985: as words of a bit set they would not fit an entry."""
    entries, holes = 30_000_000, BitMap([10, 15_000_000, 29_999_990])

    async def scenario() -> None:
        world = World(small(managed_ledger_persist_individual_ack_as_long_array=True))
        world.shared.next_id = 1
        span = ListedLedger(1, entries, entries * 100, 1)
        await world.store.put(PATH, encode_info([span], None, {}))
        world.shared.ledgers[1] = long_closed_ledger(entries)
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST)
        assert cursor.acknowledge_entries(1, holes) == holes
        await cursor.flush()
        stored = [ledger.length_bytes for ledger in world.shared.ledgers.values() if "pulsar/cursor" in ledger.custom_metadata]
        assert 0 < sum(stored) < 2000
        again = (await world.reopen()).cursors["sub"]
        assert again.acknowledged_in(1) == holes
        assert again.backlog_entries() == entries - 3

    run(scenario())


def long_closed_ledger(entries: int) -> FakeLedger:
    """Closed ledger as if so many entries were in it; they cannot be read."""
    found = FakeLedger(1, {"pulsar/managed-ledger": NAME.encode()})
    found.last_entry_id, found.is_fenced = entries - 1, True
    return found


def test_f03_a_message_of_a_batch_that_was_acknowledged_stays_so_after_a_kill() -> None:
    """P#26498: A of [A, B], then nothing more happens."""

    async def scenario() -> None:
        world = World(small(managed_ledger_default_mark_delete_rate_limit=1.0))
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST)
        position = await append(ledger, b"A and B")
        assert not cursor.acknowledge_batch_indexes(position, (0b10,), 2)
        await asyncio.sleep(PERSIST_SECONDS)
        again = (await world.reopen()).cursors["sub"]
        assert again.unacknowledged_batch_indexes(position) == (0b10,)
        assert again.acknowledge_batch_indexes(position, (0b01,), 2), "B was the last one"

    run(scenario())


@pytest.mark.parametrize("milliseconds", range(0, 24, 2))
def test_f05_a_cursor_made_at_the_beginning_during_trimming_points_to_what_is_there(milliseconds: int) -> None:
    """P#24855, P#18651."""

    async def scenario() -> None:
        world = World(trimming(), step_s=0.001)
        ledger = await world.open()
        first = await ledger.open_cursor("first", EARLIEST)
        positions = await append_each(ledger, 35)
        first.acknowledge_cumulative(positions[24])
        await asyncio.sleep(milliseconds / 1000)
        cursor = await ledger.open_cursor("new", EARLIEST)
        check_place(ledger, cursor)
        left = [position for position in positions if not cursor.is_acknowledged(position)]
        assert await read_all(ledger, cursor.first_unacknowledged()) == numbers(35)[35 - len(left) :]
        first.acknowledge_cumulative(positions[-1])
        await ledger.trim()
        check_place(ledger, cursor)
        assert await read_all(ledger, cursor.first_unacknowledged()) == numbers(35)[35 - len(left) :]
        ledger = await world.reopen()
        cursor = ledger.cursors["new"]
        check_place(ledger, cursor)
        cursor.acknowledge_cumulative(positions[-1])
        assert (cursor.mark_delete, cursor.backlog_entries()) == (positions[-1], 0)

    run(scenario())


def check_place(ledger: StoredManagedLedger, cursor: ManagedCursor) -> None:
    place = cursor.first_unacknowledged()
    assert place.ledger_id in {span.ledger_id for span in ledger.sequence}
    assert cursor.backlog_entries() == ledger.count_between(place, ledger.last_confirmed) >= 0


@pytest.mark.parametrize("seed", range(8))
def test_f06_what_retention_by_size_lets_go_during_appends_is_a_prefix(seed: int) -> None:
    """P#20898: never a hole, also over a kill."""
    rng = random.Random(seed)
    answered: set[int] = set()

    async def append_one(ledger: StoredManagedLedger, size_bytes: int) -> None:
        answered.add((await append(ledger, bytes(size_bytes))).ledger_id)

    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=4), step_s=0.001)
        ledger = await world.open()
        for life in range(3):
            ledger.set_retention(-1, 2000)
            appends = [asyncio.ensure_future(append_one(ledger, rng.choice((1, 300, 900)))) for _ in range(40)]
            for _ in range(15):
                await asyncio.sleep(rng.choice((0.0, 0.001, 0.004)))
                await ledger.trim()
                check_prefix(answered, ledger)
            if life < 2:
                for each in appends:
                    each.cancel()
                ledger = await world.reopen()
                check_prefix(answered, ledger)
        await asyncio.gather(*appends)
        await ledger.trim()
        check_prefix(answered, ledger)
        assert len(world.shared.deleted) > 10
        assert ledger.size_bytes < 2000 + 2 * 4 * 900

    run(scenario())


def check_prefix(answered: set[int], ledger: StoredManagedLedger) -> None:
    there = {span.ledger_id for span in ledger.sequence}
    assert max(answered - there, default=-1) < min(there, default=0)


@pytest.mark.parametrize("milliseconds", range(16))
def test_f07_a_crash_between_the_list_and_the_deletion_leaves_no_orphan_and_no_gap(milliseconds: int) -> None:
    """P#13526 (PIP-129)."""

    async def scenario() -> None:
        world = World(trimming(), step_s=0.002)
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST)
        positions = await append_each(ledger, 35)
        cursor.acknowledge_cumulative(positions[24])
        await cursor.flush()
        trim = asyncio.ensure_future(ledger.trim())
        await asyncio.sleep(milliseconds / 1000)
        trim.cancel()
        ledger = await world.reopen()
        assert (await read_all(ledger))[-10:] == numbers(10, 25), "no live ledger was deleted"
        await ledger.trim()
        await asyncio.sleep(0.1)
        names = await listed(world)
        assert [each for each in data_ledgers(world) if each not in names] == [], "no orphan"
        assert [each for each, is_deleting in names.items() if not is_deleting] == [span.ledger_id for span in ledger.sequence]
        assert data_ledgers(world) == [span.ledger_id for span in ledger.sequence]

    run(scenario())


def test_f07_a_ledger_whose_deletion_never_ends_is_marked_and_the_next_owner_deletes_it() -> None:
    async def scenario() -> None:
        world = World(trimming())
        ledger = await world.open()
        cursor = await ledger.open_cursor("sub", EARLIEST)
        positions = await append_each(ledger, 25)
        world.ledger_store.fail_deletes = 1000
        cursor.acknowledge_cumulative(positions[-1])
        await ledger.trim()
        await asyncio.sleep(1)
        marked = [each for each, is_deleting in (await listed(world)).items() if is_deleting]
        assert marked == data_ledgers(world)[:2]
        await world.reopen()
        await asyncio.sleep(1)
        assert not set(marked) & set(data_ledgers(world))

    run(scenario())
