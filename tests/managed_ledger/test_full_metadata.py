"""Metadata without room: a ledger that cannot be named is deleted, appends are refused, and everything resumes by itself."""

import asyncio
from collections.abc import Sequence

import pytest

from managed_ledger.contract import EARLIEST
from managed_ledger.errors import AppendRefused, MetadataFull
from metadata.store import Operation, Put, Stat, StoreFull

from .cursor.cursor_steps import cursor_ledgers, with_cursor
from .fake_ledgers import batch
from .ledger_world import NAME, World, append_each, run, small


def fill_metadata(world: World, monkeypatch: pytest.MonkeyPatch, under: str) -> list[str]:
    """Puts of nodes under this path are refused while the list that is returned is not empty."""
    full, commit = [under], world.store.commit

    async def refusing(operations: Sequence[Operation]) -> list[Stat | None]:
        if any(isinstance(each, Put) and each.path.startswith(path) for each in operations for path in full):
            raise StoreFull("no room")
        return await commit(operations)

    monkeypatch.setattr(world.store, "commit", refusing)
    return full


def test_appends_whose_ledger_finds_no_room_in_the_metadata_are_refused_and_the_log_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        ledger.on_refused(lambda: None)
        cursor = await ledger.open_cursor("sub", EARLIEST)
        positions = await append_each(ledger, 10)
        full = fill_metadata(world, monkeypatch, f"/managed-ledgers/{NAME}")
        for _ in range(5):
            with pytest.raises(AppendRefused, match="no room"):
                await ledger.append(batch(b"refused"))
        assert len(world.shared.ledgers) == 1, "no ledger is left behind"
        assert (await ledger.read(positions[0], 100, 1 << 20)) is not None
        assert cursor.backlog_entries() == 10
        full.clear()
        await append_each(ledger, 3)
        assert cursor.backlog_entries() == 13
        again = await world.reopen()
        assert again.cursors["sub"].backlog_entries() == 13

    run(scenario())


def test_a_cursor_ledger_that_finds_no_room_in_the_metadata_is_deleted_and_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = World(small(managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=0))
        _, cursor, positions = await with_cursor(world, 10)
        full = fill_metadata(world, monkeypatch, f"/managed-ledgers/{NAME}/sub")
        for position in positions[:5]:
            cursor.acknowledge_cumulative(position)
            with pytest.raises(MetadataFull, match="no room"):
                await cursor.flush()
        assert cursor_ledgers(world) == []
        full.clear()
        await cursor.flush()
        assert len(cursor_ledgers(world)) == 1
        assert (await world.reopen()).cursors["sub"].mark_delete == positions[4]
        await asyncio.sleep(0)

    run(scenario())
