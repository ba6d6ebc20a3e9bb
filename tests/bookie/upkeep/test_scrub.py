"""Bit rot in entries that nobody reads is found, reported and healed from the other replicas before they are needed."""

import asyncio
import dataclasses
import errno
from collections.abc import Iterable

import pytest

from bookie.bookie import Bookie
from bookie.errors import StorageDamaged
from bookie.storage.block_v1 import LOG_ALIGNMENT
from bookie.storage.span import Span
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError
from wire.kernels.entries import first_damaged
from wire.run import EntryRun

LOG = f"{SMALL.ledger_directory}/00000001.log"
ROTTEN = 4
"""The entry of ledger 1 that `rot` damages."""
CHECKED = dataclasses.replace(SMALL, local_consistency_check_on_startup=True)


async def stored(machine: Machine) -> Bookie:
    """Entries 0 to 9 of two ledgers, each of them in one block of one log."""
    bookie = await machine.start()
    for entry_id in range(10):
        for ledger_id in (1, 2):
            await bookie.add(sealed(ledger_id, entry_id, 1, 1000), KEY)
    await bookie.flush()
    return bookie


def rot(machine: Machine) -> None:
    """A bit of an entry of ledger 1."""
    machine.disk.contents(LOG).flip_bit(LOG_ALIGNMENT + 5000, 2)


class Twin:
    """Another replica with these entries, or one that is away."""

    def __init__(self, *held: int, is_there: bool = True) -> None:
        self._held = held
        self._is_there = is_there

    async def fetch(self, ledger_id: int, first_entry_id: int, last_entry_id: int) -> Iterable[EntryRun]:
        self._need()
        asked = range(first_entry_id, last_entry_id + 1)
        return [sealed(ledger_id, entry_id, 1, 1000) for entry_id in asked if entry_id in self._held]

    async def sound(self, run: EntryRun) -> Iterable[EntryRun]:
        self._need()
        entries = [run.entries(entry_id, 1) for entry_id in range(run.first_entry_id, run.last_entry_id + 1)]
        return [entry for entry in entries if first_damaged(entry) < 0]

    def _need(self) -> None:
        if not self._is_there:
            raise BookieError(BookieCode.EIO, 1, "nobody can say")


async def unread(bookie: Bookie) -> list[int]:
    """Entries of ledger 1 for which the bookie answers EIO; all others are what was written."""
    refused = []
    for entry_id in range(10):
        try:
            assert entries_of(await bookie.read(1, entry_id, 1, 1)) == entries_of(sealed(1, entry_id, 1, 1000))
        except BookieError as error:
            refused.append((entry_id, error.code))
    assert all(code is BookieCode.EIO for _, code in refused)
    return [entry_id for entry_id, _ in refused]


def test_a_round_over_good_blocks_finds_nothing() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await stored(machine)
        assert await bookie.scrub.run_round() == []
        assert (bookie.scrub.counts.blocks_read, bookie.scrub.counts.rounds) == (2, 1)

    on_machine(scenario)


def test_a_flipped_bit_is_found_and_without_a_replica_told() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await stored(machine)
        rot(machine)
        for twin in (None, Twin(is_there=False)):
            bookie.scrub.replicas = twin
            (damage,) = await bookie.scrub.run_round()
            assert (damage.ledger_id, damage.first_entry_id, damage.last_entry_id) == (1, 0, 9)
            assert "checksum" in damage.place

    on_machine(scenario)


def test_a_flipped_bit_is_healed_from_another_replica_for_good() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await stored(machine)
        await bookie.fence(1, KEY)
        rot(machine)
        bookie.scrub.replicas = Twin(*range(10))
        assert await bookie.scrub.run_round() == []
        assert bookie.scrub.counts.entries_repaired == 10
        for _ in range(3):
            for entry_id in range(10):
                assert entries_of(await bookie.read(1, entry_id, 1, 1)) == entries_of(sealed(1, entry_id, 1, 1000))
            machine.crash(power_cut=True)
            bookie = await machine.start()
            await bookie.flush()
        assert await bookie.scrub.run_round() == []

    on_machine(scenario)


def test_a_damaged_entry_that_no_replica_has_is_not_served_and_the_others_of_its_block_are() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await stored(machine)
        rot(machine)
        bookie.scrub.replicas = Twin(0, 1)
        for _ in range(2):
            (damage,) = await bookie.scrub.run_round()
            assert (damage.ledger_id, await unread(bookie)) == (1, [ROTTEN])
            await bookie.flush()
        (damage,) = bookie.scrub.damages
        assert (damage.first_entry_id, damage.last_entry_id) == (ROTTEN, ROTTEN)
        bookie.scrub.replicas = Twin(ROTTEN)
        assert await bookie.scrub.run_round() == []
        assert await unread(bookie) == []

    on_machine(scenario)


@pytest.mark.parametrize(("failure", "damaged"), [(errno.EMFILE, 0), (errno.EIO, 2)])
def test_a_block_that_cannot_be_read_just_now_is_no_damage(failure: int, damaged: int) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await stored(machine)
        bookie.scrub.replicas = Twin()
        read = bookie._storage.read_checked

        async def failing(ledger_id: int, span: Span) -> EntryRun:
            raise OSError(failure, "for the moment")

        bookie._storage.read_checked = failing  # type: ignore[method-assign]
        await bookie.scrub.run_round()
        assert bookie.scrub.counts.blocks_damaged == damaged
        bookie._storage.read_checked = read  # type: ignore[method-assign]
        assert await unread(bookie) == []
        assert await bookie.scrub.run_round() == []

    on_machine(scenario)


def test_a_block_that_is_deleted_while_it_is_read_is_no_damage() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for ledger_id in (1, 2):
            for entry_id in range(14):
                await bookie.add(sealed(ledger_id, entry_id, 1, 50_000), KEY)
            await bookie.flush()
        read = bookie._storage.read_checked

        async def deleting(ledger_id: int, span: Span) -> EntryRun:
            await bookie.delete([1])
            return await read(ledger_id, span)

        bookie._storage.read_checked = deleting  # type: ignore[method-assign]
        assert await bookie.scrub.run_round() == []
        assert (bookie.scrub.counts.blocks_damaged, bookie.ledger_ids()) == (0, [2])
        assert bookie.scrub.counts.blocks_read > 1

    on_machine(scenario)


def test_the_scrub_runs_by_itself_at_its_interval_and_at_its_rate() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await stored(machine)
        rot(machine)
        await asyncio.sleep(100)
        assert bookie.scrub.counts.rounds == 0
        await asyncio.sleep(3.5)
        assert (bookie.scrub.counts.blocks_read, bookie.scrub.counts.rounds) == (1, 0)
        await asyncio.sleep(2)
        assert (bookie.scrub.counts.blocks_damaged, bookie.scrub.counts.rounds) == (1, 1)
        await bookie.stop()

    on_machine(scenario, settings=dataclasses.replace(SMALL, local_scrub_interval=100, local_scrub_rate_limit=0.5))


def test_a_ledger_deleted_or_compacted_during_a_scrub_is_no_damage() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for entry_id in range(20):
            for ledger_id in (1, 2, 3):
                await bookie.add(sealed(ledger_id, entry_id, 1, 30_000), KEY)
        await bookie.flush()
        scrub = machine.loop.create_task(bookie.scrub.run_round())
        await asyncio.sleep(0.15)
        await bookie.delete([2])
        assert await bookie.compactor.run("major") > 0
        assert await scrub == []
        assert bookie.scrub.counts.blocks_damaged == 0

    on_machine(scenario, settings=dataclasses.replace(SMALL, compaction_rate_by_bytes=0))


def test_with_a_consistency_check_at_start_a_damaged_bookie_does_not_start() -> None:
    async def scenario(machine: Machine) -> None:
        await stored(machine)
        machine.crash(power_cut=True)
        machine.settings = CHECKED
        await machine.start()
        machine.crash(power_cut=True)
        rot(machine)
        with pytest.raises(StorageDamaged, match="1 blocks are damaged"):
            await machine.start()
        machine.crash(power_cut=True)
        machine.settings = SMALL
        assert (await machine.start()).ledger_ids() == [1, 2]

    on_machine(scenario)
