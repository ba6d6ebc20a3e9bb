"""Replication worker by itself, in virtual time: what it does with ledgers that cannot be repaired."""

import asyncio
from typing import Any

import pytest

from bookkeeper.repair import backlog
from bookkeeper.repair.ledger.ledger_repair import LedgerRepair, RepairOutcome
from bookkeeper.repair.settings import RepairSettings
from tests.bookkeeper.repair.repair_world import RepairWorld
from tests.simulation.worlds import World, run

QUICK = RepairSettings(rereplication_entry_batch_size=4)


def test_more_ledgers_than_a_worker_can_hold_locks_of_are_not_tried_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be repaired, as when the disks of all bookies are full."""
    monkeypatch.setattr(backlog, "HELD_MAX", 3)
    repair, tries = LedgerRepair.repair, 0

    async def counted(self: LedgerRepair, *words: Any, **options: Any) -> RepairOutcome:
        nonlocal tries
        tries += 1
        assert tries <= 2000, "a worker that takes no time between two tries: this ends it"
        return await repair(self, *words, **options)

    monkeypatch.setattr(LedgerRepair, "repair", counted)

    async def scenario(_: World) -> None:
        world = RepairWorld(4, QUICK)
        await world.up("b0:1", "b1:1")
        ids = [await world.closed_ledger((2, 2, 2), 3) for _ in range(12)]
        await world.down("b1:1")
        await world.auto_recovery()
        await asyncio.sleep(60.0)
        assert len(world.marked()) == len(ids)
        first_pause = QUICK.lock_release_of_failed_ledger_grace_period / 1000 / 32
        assert len(ids) / 2 <= tries <= 3 * (60.0 / first_pause + 2)
        await world.up("b2:1", "b3:1")
        await world.until_whole(*ids)
        await world.close()

    run(scenario)
