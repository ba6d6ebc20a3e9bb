"""Times of compactions."""

import asyncio
import dataclasses

from bookie.disk_space.disk_watch import Room
from tests.bookie.machines import Machine, on_machine
from tests.bookie.upkeep.mixed_logs import UNTHROTTLED, mixed_logs


def test_with_no_room_left_compaction_goes_on_when_that_is_asked_for() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2])
        bookie.health.room = Room.NONE
        await bookie.compact("major")
        assert (bookie.compactor.counts.logs_compacted > 0) == machine.settings.is_force_gc_allow_when_no_space

    for forced in (False, True):
        on_machine(scenario, settings=dataclasses.replace(UNTHROTTLED, is_force_gc_allow_when_no_space=forced))


def test_minor_and_major_compactions_run_at_their_intervals_while_there_is_room() -> None:
    settings = dataclasses.replace(UNTHROTTLED, minor_compaction_interval=100, major_compaction_interval=300)

    async def scenario(machine: Machine) -> None:
        bookie = await mixed_logs(machine)
        await bookie.delete([1, 2])
        await asyncio.sleep(90)
        await bookie.compact()
        assert bookie.compactor.counts.runs == 0
        await asyncio.sleep(20)
        await bookie.compact()
        assert (bookie.compactor.counts.runs, bookie.compactor.counts.logs_compacted) == (1, 0)
        await asyncio.sleep(200)
        bookie.health.room = Room.NONE
        await bookie.compact()
        assert bookie.compactor.counts.runs == 1
        bookie.health.room = Room.LITTLE
        await bookie.compact()
        assert (bookie.compactor.counts.runs, bookie.compactor.counts.logs_compacted) == (2, 0)
        bookie.health.room = Room.ENOUGH
        await bookie.compact()
        assert bookie.compactor.counts.runs == 3
        assert bookie.compactor.counts.logs_compacted > 0
        await bookie.compact()
        assert bookie.compactor.counts.runs == 3

    on_machine(scenario, settings=settings)
