"""Entries that the journal refused or lost are not read any more; those acknowledged before are."""

import asyncio
import errno
import itertools
import random
from contextlib import suppress

import pytest

from bookie.bookie import Bookie
from tests.bookie.machines import Machine, on_machine
from tests.bookie.runs import KEY, entries_of, mixed, sealed
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun


async def refused(awaitable: object) -> BookieCode:
    with pytest.raises(BookieError) as caught:
        await awaitable  # type: ignore[misc]
    return caught.value.code


async def lose(machine: Machine, *lost: EntryRun) -> None:
    machine.disk.fail("write", errno.ENOSPC, "", times=1000)
    adds = [machine.bookie.add(run, KEY) for run in lost]
    assert [await refused(add) for add in adds] == [BookieCode.EREADONLY] * len(lost)


def test_entries_lost_by_the_journal_are_absent_until_they_are_added_durably_again() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        lost = sealed(1, 1)
        await lose(machine, lost, sealed(1, 2), sealed(2, 0))
        assert (await bookie.last_entry_id(1), await bookie.last_entry_id(2)) == (0, -1)
        await bookie.add(sealed(1, 0), KEY, recovery=True)
        assert await refused(bookie.add(lost, KEY, recovery=True)) is BookieCode.EREADONLY
        machine.disk.heal()
        await asyncio.sleep(5)
        await bookie.add(lost, KEY, recovery=True)
        for power_cut in (False, True):
            machine.crash(power_cut=power_cut)
            assert await (await machine.start()).last_entry_id(1) == 1
            assert 2 not in machine.bookie.ledger_ids()

    on_machine(scenario)


def test_a_lost_replacement_of_an_entry_stays_and_is_acknowledged_only_once_durable() -> None:
    """The replaced entry is in no memtable any more, and may have been acknowledged."""

    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        again = sealed(1, 1)
        await bookie.add(sealed(1, 0, 2), KEY)
        await lose(machine, again)
        assert await bookie.last_entry_id(1) == 1
        assert await refused(bookie.add(again, KEY, recovery=True)) is BookieCode.EREADONLY
        machine.disk.heal()
        await asyncio.sleep(5)
        await bookie.add(again, KEY, recovery=True)
        machine.crash(power_cut=True)
        assert await (await machine.start()).last_entry_id(1) == 1

    on_machine(scenario)


class Acknowledged:
    """Entries that a bookie said it has; None for an entry: one of those that were added, as a later one was refused."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._made = rng, itertools.count(1)
        self._entries: dict[tuple[int, int], bytes | None] = {}

    def _runs(self) -> list[EntryRun]:
        rng = self._rng
        return [
            sealed(ledger_id, rng.randrange(6), rng.randint(1, 3), rng.choice((10, 3000)), fill=next(self._made) % 256)
            for ledger_id in rng.sample((1, 2, 3), rng.randint(1, 3))
        ]

    async def add(self, bookie: Bookie) -> None:
        runs = self._runs()
        if self._rng.random() < 0.3 and all(run.ledger_id in bookie.writable_ledgers for run in runs):
            answers = [(await asyncio.gather(bookie.add_mix(mixed(runs), KEY), return_exceptions=True))[0]] * len(runs)
        else:
            answers = await asyncio.gather(*[bookie.add(run, KEY) for run in runs], return_exceptions=True)
        for run, answer in zip(runs, answers, strict=True):
            for entry_id, entry in entries_of(run).items():
                if answer is None or (run.ledger_id, entry_id) in self._entries:
                    self._entries[run.ledger_id, entry_id] = entry if answer is None else None

    async def check(self, bookie: Bookie) -> None:
        for (ledger_id, entry_id), entry in self._entries.items():
            found = entries_of(await bookie.read(ledger_id, entry_id, 1, 1))[entry_id]
            assert entry is None or found == entry, (ledger_id, entry_id)


@pytest.mark.parametrize("seed", range(60))
def test_acknowledged_entries_are_read_whatever_the_journal_loses(seed: int) -> None:
    """Entries of some ledgers, again and again, alone and mixed, over flushes, disks without room, kills and power cuts."""

    async def scenario(machine: Machine) -> None:
        rng = random.Random(seed)
        acknowledged = Acknowledged(rng)
        await machine.start()
        for _ in range(30):
            if rng.random() < 0.3:
                machine.disk.fail("write", errno.ENOSPC, ".journal", times=rng.randint(1, 3))
            await acknowledged.add(machine.bookie)
            await asyncio.sleep(rng.choice((0, 0, 0.1, 3)))
            if rng.random() < 0.2:
                with suppress(OSError):
                    await machine.bookie.flush()
            if rng.random() < 0.1:
                machine.crash(power_cut=rng.random() < 0.5)
                machine.disk.heal()
                await machine.start()
            await acknowledged.check(machine.bookie)

    on_machine(scenario)
