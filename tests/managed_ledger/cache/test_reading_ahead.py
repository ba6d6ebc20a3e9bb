"""Catching up: what is read is what was written, with the disk a step ahead, within every bound."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from managed_ledger.cache.entry_cache import CachedLog, EntryCache
from managed_ledger.cache.pieces import Pieces
from managed_ledger.cache.places import ReadingPlaces
from managed_ledger.cache.reads_in_flight import ReadsInFlight
from managed_ledger.contract import EARLIEST, ManagedLedgerError
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from managed_ledger.read import read_driver
from tests.invariants import checked_after_each_step
from wire.position import Position

from ..fake_ledgers import payloads
from ..ledger_world import MANY, World, append_each, numbers, run, small, trimming

checked_machines = checked_after_each_step(EntryCache, CachedLog, ReadingPlaces, Pieces, ReadsInFlight)

STEP_S = 0.01


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of five or six entries."""
    monkeypatch.setattr(read_driver, "PIECE_BYTES", 220)


async def filled(count: int, **changes: Any) -> tuple[World, StoredManagedLedger]:
    """A world whose calls take a while, and a managed ledger that has nothing in memory."""
    world = World(small(managed_ledger_max_entries_per_ledger=1000, **changes))
    await append_each(await world.open(), count)
    ledger = await world.reopen()
    world.shared.step_s = STEP_S
    return world, ledger


async def through(ledger: StoredManagedLedger, pause_s: float, entries_max: int = 2) -> tuple[list[bytes], int]:
    """Everything, as a consumer reads it; and how many reads had to wait."""
    found, waited, position = list[bytes](), 0, EARLIEST
    while True:
        one = ledger.read_cached(position, entries_max, MANY)
        if one is None:
            one = await ledger.read(position, entries_max, MANY)
            waited += 1
        if one is None:
            return found, waited
        found += payloads(one)
        position = Position(one.ledger_id, one.last_entry_id + 1)
        await asyncio.sleep(pause_s)


def test_a_sequential_reader_waits_for_the_disk_only_at_the_beginning_and_the_end() -> None:
    async def scenario() -> None:
        _, ledger = await filled(200)
        found, waited = await through(ledger, 2 * STEP_S)
        assert found == numbers(200)
        assert waited <= 4, "the first read, the first piece, the second, and the end"

    run(scenario())


def test_nothing_is_fetched_ahead_for_a_slow_reader() -> None:
    async def scenario() -> None:
        world, ledger = await filled(60)
        found, _ = await through(ledger, 0.4)
        assert found == numbers(60)
        assert world.shared.reads <= 14, "each piece once: what is fetched ahead would be gone when it is asked for"

    run(scenario())


def test_readers_at_the_same_place_share_a_read() -> None:
    async def scenario() -> None:
        world, ledger = await filled(100)
        alone_world, alone = await filled(100)
        await through(alone, STEP_S)
        for found, _ in await asyncio.gather(*(through(ledger, STEP_S) for _ in range(8))):
            assert found == numbers(100)
        assert world.shared.reads <= alone_world.shared.reads + 8, "each begins with a read of its own"

    run(scenario())


def test_any_number_of_readers_has_no_more_than_its_share_of_the_cache() -> None:
    async def scenario() -> None:
        _, ledger = await filled(150)
        cache = ledger.reads._cache.shared
        cache.bytes_max = 2000
        readers = [asyncio.ensure_future(through(ledger, STEP_S * (1 + number / 7))) for number in range(12)]
        while not all(reader.done() for reader in readers):
            assert cache.ahead_bytes <= 1000
            assert cache.size_bytes <= 2000
            await asyncio.sleep(STEP_S / 3)
        assert all(reader.result()[0] == numbers(150) for reader in readers)
        await asyncio.sleep(2)
        cache.evict(asyncio.get_running_loop().time())
        assert (cache.ahead_bytes, cache.size_bytes, cache.in_flight.size_bytes) == (0, 0, 0)

    run(scenario())


def test_the_bytes_of_reads_in_flight_are_bounded_and_further_reads_wait() -> None:
    async def scenario() -> None:
        _, ledger = await filled(50)
        gate = ledger.reads._in_flight
        gate.bytes_max = 10
        reads = [asyncio.ensure_future(ledger.read(Position(1, entry), 1, MANY)) for entry in range(20)]
        await asyncio.sleep(STEP_S / 2)
        assert gate.size_bytes <= 10
        assert gate.waiting > 0
        assert [payloads(one)[0] for one in await asyncio.gather(*reads) if one] == numbers(20)
        assert (gate.size_bytes, gate.waiting) == (0, 0)

    run(scenario())


def test_a_read_that_waits_too_long_for_others_fails_and_names_the_setting() -> None:
    async def scenario() -> None:
        _, ledger = await filled(50, managed_ledger_max_reads_in_flight_permits_acquire_timeout_millis=5)
        gate = ledger.reads._in_flight
        gate.bytes_max, gate.waiting_max = 1, 1
        first, second, third = (asyncio.ensure_future(ledger.read(Position(1, entry), 1, MANY)) for entry in range(3))
        for refused in (second, third):
            with pytest.raises(ManagedLedgerError, match="managedLedgerMaxReadsInFlightSizeInMB"):
                await refused
        assert await first is not None
        assert (gate.size_bytes, gate.waiting) == (0, 0)

    run(scenario())


def test_a_read_that_was_given_up_leaves_the_line() -> None:
    async def scenario() -> None:
        _, ledger = await filled(50)
        gate = ledger.reads._in_flight
        gate.bytes_max = 1
        reads = [asyncio.ensure_future(ledger.read(Position(1, entry), 1, MANY)) for entry in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        reads[1].cancel()
        assert await reads[2] is not None
        assert (gate.size_bytes, gate.waiting) == (0, 0)

    run(scenario())


def test_no_read_goes_to_a_trimmed_ledger_and_none_of_it_comes_into_the_cache() -> None:
    async def scenario() -> None:
        world = World(trimming(managed_ledger_max_entries_per_ledger=20))
        ledger = await world.open()
        cursor = await ledger.open_cursor("s", EARLIEST)
        await append_each(ledger, 45)
        world.shared.step_s = STEP_S
        ledger.reads._cache.close()
        first = await ledger.read(Position(1, 0), 2, MANY)
        assert first is not None
        under_way = asyncio.ensure_future(ledger.read(Position(1, 2), 2, MANY))
        await asyncio.sleep(STEP_S / 2)
        cursor.acknowledge_cumulative(Position(1, 19))
        ledger.sequence.remove([1])
        ledger.reads.forget_ledger(1)
        await under_way
        assert ledger.read_cached(Position(1, 4), 2, MANY) is None
        assert Position(1, 2) not in ledger.reads._cache
        following = await ledger.read(Position(1, 4), 2, MANY)
        assert following is not None
        assert following.ledger_id == 2

    run(scenario())


def test_a_read_under_way_when_its_ledger_is_trimmed_goes_on_after_it() -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=20))
        await append_each(await world.open(), 45)
        ledger = await world.reopen()
        world.shared.step_s = STEP_S
        under_way = asyncio.ensure_future(ledger.read(Position(1, 4), 2, MANY))
        await asyncio.sleep(STEP_S / 2)
        ledger.sequence.remove([1])
        ledger.reads.forget_ledger(1)
        del world.shared.ledgers[1]
        found = await under_way
        assert found is not None
        assert payloads(found) == numbers(2, 20)

    run(scenario())


def test_a_reader_far_behind_holds_nothing_that_is_near_the_end() -> None:
    async def scenario(threshold: int) -> int:
        world = World(small(managed_ledger_max_entries_per_ledger=1000, managed_ledger_cursor_backlogged_threshold=threshold))
        ledger = await world.open()
        ledger.open_non_durable_cursor("s", EARLIEST)
        await append_each(ledger, 100)
        await ledger.read(Position(1, 10), 1, MANY)
        for entry in range(90, 99):
            await ledger.read(Position(1, entry), 1, MANY)
        return sum(Position(1, entry) in ledger.reads._cache for entry in range(90, 97))

    assert run(scenario(1000)) == 7, "kept for who is at 11"
    assert run(scenario(20)) == 0


def test_a_cursor_is_active_until_it_is_farther_behind_than_the_threshold() -> None:
    async def scenario() -> None:
        settings = small(managed_ledger_max_entries_per_ledger=10, managed_ledger_cursor_backlogged_threshold=20)
        ledger = await World(settings).open()
        assert ledger.active_from() == ledger.first_position()
        for number in range(0, 50, 10):
            await append_each(ledger, 10, number)
            assert ledger.count_between(ledger.active_from(), ledger.last_confirmed) == min(20, number + 10)

    run(scenario())


def test_a_step_back_into_the_last_read_leaves_no_place_behind() -> None:
    places = ReadingPlaces()
    places.moved(Position(1, 0), Position(1, 10))
    assert places.moved(Position(1, 8), Position(1, 18))
    assert Position(1, 10) not in places
    assert places.slowest(Position(1, 0)) == Position(1, 18)
    places.moved(Position(1, 0), Position(1, 5))
    assert places.slowest(Position(1, 0)) == Position(1, 5), "another reader"


ACTION = st.one_of(
    st.tuples(st.just("read"), st.integers(0, 3), st.integers(1, 8)),
    st.tuples(st.just("back"), st.integers(0, 3), st.integers(1, 4)),
    st.tuples(st.just("jump"), st.integers(0, 3), st.integers(0, 60)),
    st.tuples(st.just("append"), st.integers(1, 9), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 60), st.just(0)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTION, max_size=50), st.sampled_from([500, 1500, 1 << 20]), st.sampled_from([0, 100, 1 << 20]))
def test_every_reader_finds_what_was_written_whatever_the_others_do(
    actions: list[tuple[str, int, int]], cache_bytes: int, in_flight_bytes: int
) -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_entries_per_ledger=7, managed_ledger_cursor_backlogged_threshold=10))
        await append_each(await world.open(), 40)
        ledger = await world.reopen()
        ledger.open_non_durable_cursor("s", EARLIEST)
        world.shared.step_s = STEP_S
        cache, gate = ledger.reads._cache.shared, ledger.reads._in_flight
        cache.bytes_max, gate.bytes_max = cache_bytes, in_flight_bytes
        cache._bytes_kept_max = cache_bytes * 9 // 10
        twin, places = numbers(40), [0, 0, 0, 0]
        for name, first, second in actions:
            if name == "append":
                await append_each(ledger, first, len(twin))
                twin += numbers(first, len(twin))
            elif name == "wait":
                await asyncio.sleep(first * STEP_S / 2)
            elif name == "back":
                places[first] = max(0, places[first] - second)
            elif name == "jump":
                places[first] = min(second, len(twin))
            else:
                place = places[first]
                at = ledger.sequence.position_at(place) if place < len(twin) else ledger.next_position(ledger.last_confirmed)
                one = await ledger.read(at, second, MANY)
                found = [] if one is None else payloads(one)
                assert found == twin[place : place + len(found)]
                assert 1 <= len(found) <= second or place == len(twin)
                places[first] += len(found)
            assert cache.size_bytes <= cache_bytes
            assert cache.ahead_bytes <= cache_bytes / 2
            assert not in_flight_bytes or gate.size_bytes <= in_flight_bytes
        await asyncio.sleep(1)
        assert (gate.size_bytes, gate.waiting) == (0, 0)

    run(scenario())


def test_a_piece_that_reaches_into_what_another_reader_has_in_memory_is_kept_up_to_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a piece was thrown away as a whole, and fetched again for each read up to there."""
    monkeypatch.setattr(read_driver, "PIECE_BYTES", 2200)

    async def scenario() -> None:
        world, ledger = await filled(100)
        for first in (60, 62, 64):  # what another reader who catches up has fetched
            assert await ledger.read(Position(1, first), 2, MANY) is not None
        before = world.shared.reads
        position, found = Position(1, 20), list[bytes]()
        while position.entry_id < 60:
            one = await ledger.read(position, 2, MANY)
            assert one is not None
            found += payloads(one)
            position = Position(1, one.last_entry_id + 1)
        assert found == numbers(100)[20:60]
        assert world.shared.reads - before <= 4

    run(scenario())


def test_a_read_takes_room_for_what_there_is_and_for_no_more_than_it_may_have() -> None:
    async def scenario() -> None:
        _, ledger = await filled(50)
        span = ledger.sequence.span(1)
        assert span is not None
        gate, each = ledger.reads._in_flight, span.size_bytes // span.entries + 1
        left = span.entries - 2
        for first, entries_max, bytes_max, room in ((left, 100, MANY, 2 * each), (0, 10, 3, 3), (0, 10, MANY, 10 * each)):
            reading = asyncio.ensure_future(ledger.reads._fetch(Position(1, first), entries_max, bytes_max))
            await asyncio.sleep(STEP_S / 2)
            assert gate.size_bytes == room
            await reading

    run(scenario())
