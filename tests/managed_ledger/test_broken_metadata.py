"""Broken metadata: a named error of this topic only; with the settings for it exactly what is lost is skipped, and counted."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from bookkeeper.ledgers import LedgerReader, LedgerUnreadable
from managed_ledger.contract import ManagedCursor, ManagedLedgerError, Skipped
from managed_ledger.errors import BrokenMetadata, NonRecoverableLedger
from managed_ledger.ledgers.info import LedgerList, decode_info, encode_info
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from managed_ledger.skipping import CURSOR_ENTRIES_MAX
from wire.generated.managed_ledger_pb2 import ManagedLedgerInfo
from wire.position import Position

from .cursor.cursor_steps import cursor_ledgers, node, with_cursor
from .fake_ledgers import FakeLedgerStore, batch
from .ledger_world import NAME, World, append_each, numbers, read_all, run, small

OTHER = "public/default/persistent/other"
PATH = f"/managed-ledgers/{NAME}"


def skipping(**changes: Any) -> World:
    return World(small(auto_skip_non_recoverable_data=True, **changes))


def forced() -> World:
    return World(small(managed_ledger_force_recovery=True))


async def other_serves(world: World) -> None:
    assert await append_each(await world.open(OTHER), 2)


async def refused(world: World, error: type[ManagedLedgerError], match: str) -> None:
    """The topic does not open, the other one does."""
    await world.restart()
    with pytest.raises(error, match=match) as found:
        await world.open()
    assert NAME in str(found.value)
    await other_serves(world)


async def stored(world: World, path: str = PATH) -> bytes:
    found = await world.store.get(path)
    assert found is not None
    return found.value


async def rewrite(world: World, change: Any) -> None:
    info = decode_info(NAME, await stored(world))
    await world.store.put(PATH, encode_info(change(list(info.ledgers)), info.terminated, info.properties))


# the managed ledger's own node


def test_a_node_cut_anywhere_opens_or_is_an_error_of_this_topic_only() -> None:
    async def scenario() -> None:
        world = World()
        ledger, cursor, positions = await with_cursor(world, 25)
        cursor.acknowledge_cumulative(positions[3])
        await ledger.close()
        for path in (PATH, f"{PATH}/sub"):
            whole = await stored(world, path)
            refusals = 0
            for cut in range(len(whole)):
                await world.store.put(path, whole[:cut])
                await world.restart()
                try:
                    await world.open()
                except BrokenMetadata as error:
                    assert NAME in str(error)  # noqa: PT017 - either outcome is right
                    refusals += 1
                await other_serves(world)
            assert refusals > len(whole) // 2
            await world.store.put(path, whole)

    run(scenario())


@given(st.binary(min_size=1, max_size=40))
def test_any_bytes_are_a_list_or_refused(value: bytes) -> None:
    try:
        assert isinstance(decode_info(NAME, value), LedgerList)
    except BrokenMetadata as error:
        assert NAME in str(error)  # noqa: PT017 - either outcome is right


def test_a_list_that_cannot_be_is_refused() -> None:
    async def scenario() -> None:
        world = World()
        await append_each(await world.open(), 25)
        await rewrite(world, lambda ledgers: [*ledgers, ledgers[0]])
        await refused(world, BrokenMetadata, "lists ledger 1 twice")

    run(scenario())


def test_a_ledger_before_the_last_one_without_an_end_is_recovered() -> None:
    async def scenario() -> None:
        world = World()
        await append_each(await world.open(), 25)
        value = await stored(world)
        first = decode_info(NAME, value).ledgers[0]
        assert first.entries == 10
        without_end = value.replace(first.other, b"\x08\x01").replace(bytes([len(first.other)]) + b"\x08\x01", b"\x02\x08\x01")
        await world.store.put(PATH, without_end)
        assert decode_info(NAME, without_end).ledgers[0].entries is None
        ledger = await world.reopen()
        assert await read_all(ledger) == numbers(25)

    run(scenario())


# a ledger that is not there


async def without_last_ledger(world: World) -> Position:
    """Last position of a log that lost five of 25 entries in three ledgers, with a cursor among the lost ones."""
    ledger, cursor, positions = await with_cursor(world, 25)
    cursor.acknowledge_entries(positions[22].ledger_id, BitMap([positions[22].entry_id]))
    cursor.acknowledge_cumulative(positions[21])
    await cursor.flush()
    other = await ledger.open_cursor("behind", positions[4])
    await other.flush()
    del world.shared.ledgers[positions[-1].ledger_id]
    return positions[19]


def test_a_last_ledger_that_is_not_there_is_an_error_that_names_it_and_the_remedy() -> None:
    async def scenario() -> None:
        world = World()
        last = await without_last_ledger(world)
        await refused(world, NonRecoverableLedger, f"ledger {last.ledger_id + 1} .*autoSkipNonRecoverableData=true")

    run(scenario())


@pytest.mark.parametrize("make", [skipping, forced])
def test_a_last_ledger_that_is_not_there_is_skipped_alone_and_counted(make: Any) -> None:
    async def scenario() -> None:
        world = make()
        last = await without_last_ledger(world)
        ledger = await world.reopen()
        assert await read_all(ledger) == numbers(20)
        assert ledger.last_confirmed == last
        assert world.ledgers.skipping.ledgers == 1
        assert [cursor.backlog_entries() for cursor in (ledger.cursors["sub"], ledger.cursors["behind"])] == [0, 16]
        await goes_on(world, ledger)

    run(scenario())


async def goes_on(world: World, ledger: StoredManagedLedger) -> None:
    """Check that new appends are stored and read, and that the next opening finds nothing to skip."""
    await append_each(ledger, 3, first=100)
    assert ledger.cursors["sub"].backlog_entries() == 3
    ledger = await world.reopen()
    assert await read_all(ledger) == numbers(20) + numbers(3, 100)
    assert ledger.cursors["sub"].backlog_entries() == 3
    assert world.ledgers.skipping.ledgers == 0


def test_a_last_ledger_that_cannot_be_read_now_is_skipped_by_force_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = FakeLedgerStore.open

    async def unreadable(store: FakeLedgerStore, ledger_id: int) -> LedgerReader:
        if ledger_id == 3:
            raise LedgerUnreadable("no bookie answers")
        return await opened(store, ledger_id)

    async def scenario() -> None:
        for world in (World(), skipping()):
            await append_each(await world.open(), 25)
            await refused(world, NonRecoverableLedger, "ledger 3 .*no bookie answers.*managedLedgerForceRecovery=true")
        world = forced()
        await append_each(await world.open(), 25)
        ledger = await world.reopen()
        assert await read_all(ledger) == numbers(20)
        assert 3 in world.shared.ledgers  # it may still be read by other means

    monkeypatch.setattr(FakeLedgerStore, "open", unreadable)
    run(scenario())


# cursor ledgers


async def with_marks(world: World, marks: int) -> tuple[list[Position], int]:
    """A cursor whose ledger has an entry for each of the first `marks` positions."""
    _, cursor, positions = await with_cursor(world, marks + 10)
    for position in positions[:marks]:
        cursor.acknowledge_cumulative(position)
        await cursor.flush()
    [ledger_id] = cursor_ledgers(world)
    return positions, ledger_id


def damage(world: World, ledger_id: int, entries: int) -> None:
    """The last `entries` are garbage."""
    runs = world.shared.ledgers[ledger_id].runs
    for at in range(len(runs) - entries, len(runs)):
        runs[at].buffer[runs[at].offsets[0] + runs[at].header_bytes :] = batch(b"\xff" * 7).buffer[-7:]  # type: ignore[index]
        del runs[at].offsets[1:]
        runs[at].offsets.append(len(runs[at].buffer))


async def reopened_cursor(world: World) -> ManagedCursor:
    return (await world.reopen()).cursors["sub"]


def test_garbage_at_the_end_of_a_cursor_ledger_is_an_error_that_names_it() -> None:
    async def scenario() -> None:
        world = World()
        _, ledger_id = await with_marks(world, 5)
        damage(world, ledger_id, 1)
        await refused(world, NonRecoverableLedger, f"sub: cursor ledger {ledger_id}: .*autoSkipNonRecoverableData=true")

    run(scenario())


def test_skipped_entries_are_counted_for_their_own_topic() -> None:
    async def scenario() -> None:
        world = skipping()
        _, ledger_id = await with_marks(world, 5)
        damage(world, ledger_id, 2)
        await world.restart()
        await other_serves(world)
        ledger, other = await world.open(), await world.open(OTHER)
        assert (ledger.skipped, other.skipped) == (Skipped(cursor_entries=2), Skipped())
        world.shared.ledgers[1].lost |= {2, 3, 7}
        await read_all(ledger)
        assert (ledger.skipped, other.skipped) == (Skipped(entries=3, cursor_entries=2), Skipped())

    run(scenario())


@pytest.mark.parametrize("garbage", [1, 3, 4])
def test_exactly_the_garbage_of_a_cursor_ledger_is_skipped_and_counted(garbage: int) -> None:
    async def scenario() -> None:
        world = skipping()
        positions, ledger_id = await with_marks(world, 5)
        damage(world, ledger_id, garbage)
        cursor = await reopened_cursor(world)
        assert cursor.mark_delete == positions[4 - garbage]
        assert world.ledgers.skipping.cursor_entries == garbage
        cursor.acknowledge_cumulative(positions[6])
        await cursor.flush()
        assert (await reopened_cursor(world)).mark_delete == positions[6]
        assert world.ledgers.skipping.cursor_entries == 0

    run(scenario())


def test_a_lost_entry_of_a_cursor_ledger_is_skipped_like_garbage() -> None:
    async def scenario() -> None:
        world = skipping()
        positions, ledger_id = await with_marks(world, 5)
        world.shared.ledgers[ledger_id].lost.add(4)
        assert (await reopened_cursor(world)).mark_delete == positions[3]

    run(scenario())


@pytest.mark.parametrize("damage_all", [True, False])
def test_a_cursor_whose_ledger_is_lost_delivers_again_all_since_that_ledger_began(damage_all: bool) -> None:
    async def scenario() -> None:
        for world in (World(), skipping()):
            positions, ledger_id = await with_marks(world, 5)
            if damage_all:
                damage(world, ledger_id, 5)
            else:
                del world.shared.ledgers[ledger_id]
            if not world.settings.auto_skip_non_recoverable_data:
                await refused(world, NonRecoverableLedger, f"cursor ledger {ledger_id}")
                continue
            cursor = await reopened_cursor(world)
            assert cursor.first_unacknowledged() == positions[1]
            assert cursor.backlog_entries() == 14
            assert world.ledgers.skipping.cursor_ledgers == 1
            cursor.acknowledge_cumulative(positions[6])
            await cursor.flush()
            assert (await reopened_cursor(world)).mark_delete == positions[6]

    run(scenario())


def test_garbage_is_passed_over_so_far_and_no_farther() -> None:
    async def scenario() -> None:
        world = skipping()
        positions, ledger_id = await with_marks(world, CURSOR_ENTRIES_MAX + 2)
        damage(world, ledger_id, CURSOR_ENTRIES_MAX + 1)
        assert (await reopened_cursor(world)).first_unacknowledged() == positions[1]
        assert world.ledgers.skipping.cursor_entries == CURSOR_ENTRIES_MAX
        assert world.ledgers.skipping.cursor_ledgers == 1

    run(scenario())


def test_a_cursor_of_which_only_the_name_is_known_begins_anew_by_force_alone() -> None:
    async def scenario() -> None:
        for world in (World(), skipping(), forced()):
            _, cursor, positions = await with_cursor(world, 12)
            cursor.acknowledge_cumulative(positions[4])
            await cursor.flush()
            await world.store.put(f"{PATH}/sub", b"\xff\xff")
            if not world.settings.managed_ledger_force_recovery:
                await refused(world, BrokenMetadata, "sub: its ManagedCursorInfo cannot be read")
                continue
            cursor = await reopened_cursor(world)
            assert cursor.backlog_entries() == 12
            assert world.ledgers.skipping.cursor_nodes == 1
            cursor.acknowledge_cumulative(positions[5])
            await cursor.flush()
            assert (await node(world)).cursors_ledger_id in cursor_ledgers(world)
            assert (await reopened_cursor(world)).mark_delete == positions[5]

    run(scenario())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 8))
def test_damage_never_puts_a_mark_ahead_of_the_acknowledgements(marks: int, garbage: int) -> None:
    async def scenario() -> None:
        world = skipping()
        positions, ledger_id = await with_marks(world, marks)
        damage(world, ledger_id, min(garbage, marks))
        cursor = await reopened_cursor(world)
        assert cursor.mark_delete <= positions[marks - 1]
        assert cursor.backlog_entries() >= 10

    run(scenario())


@pytest.mark.parametrize("wrong", [{"ledger_id": -1}, {"entries": -1}, {"size": -1}])
def test_a_ledger_list_with_a_number_below_zero_is_broken(wrong: dict[str, int]) -> None:
    found = ManagedLedgerInfo()
    found.ledger_info.add(**{"ledger_id": 3, "entries": 1, "size": 10, "timestamp": 5, **wrong})
    with pytest.raises(BrokenMetadata, match="lists ledger"):
        decode_info("log", found.SerializeToString())
