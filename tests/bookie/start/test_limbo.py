"""A bookie that lost its journal, or came back empty under its old name, says "unknown" and never "no such entry" (BP-46)."""

import asyncio
import dataclasses

import pytest

from bookie.bookie import Bookie
from bookie.errors import WrongDirectory
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError

ALLOWED = dataclasses.replace(SMALL, data_integrity_checking=True, data_integrity_stamp_missing_cookies=True)
JOURNAL, LEDGERS = SMALL.journal_directory, SMALL.ledger_directory


class LostMachine(Machine):
    """Machine whose bookie is known to the cluster."""

    was_known = True


def on_lost_machine(scenario: object, seed: int = 0) -> None:
    machine = LostMachine(seed, SMALL)
    try:
        machine.loop.run_until_complete(scenario(machine))  # type: ignore[operator]
    finally:
        machine.loop.finish()


async def code(awaitable: object) -> BookieCode:
    with pytest.raises(BookieError) as caught:
        await awaitable  # type: ignore[misc]
    return caught.value.code


async def lose(machine: Machine, *directories: str) -> None:
    """Ledger 1: entries 0 to 4 in an entry log, 5 to 9 in the journal only, fenced there; then what is below is emptied."""
    bookie = await machine.start()
    for entry_id in range(10):
        await bookie.add(sealed(1, entry_id), KEY)
        if entry_id == 4:
            await bookie.flush()
    await bookie.fence(1, KEY)
    machine.crash(power_cut=True)
    for path in machine.disk.paths():
        if path.startswith(directories):
            await machine.disk.remove(path)
    for directory in directories:
        await machine.disk.sync_directory(directory)
    machine.settings = ALLOWED


async def check_limbo(bookie: Bookie, held: range) -> None:
    assert bookie.read_only_reason == ""
    for entry_id in range(12):
        if entry_id in held:
            assert entries_of(await bookie.read(1, entry_id, 1, 1)) == entries_of(sealed(1, entry_id))
        else:
            assert await code(bookie.read(1, entry_id, 1, 1)) is BookieCode.EUNKNOWNLEDGERSTATE
    assert await code(bookie.last_entry_id(1)) is BookieCode.EUNKNOWNLEDGERSTATE
    assert await code(bookie.fence(1, KEY)) is BookieCode.EUNKNOWNLEDGERSTATE
    with pytest.raises(BookieError):
        bookie.entry_ranges(1)
    assert await code(bookie.add(sealed(1, 10), KEY)) is BookieCode.EFENCED
    assert await code(bookie.read(99, 0, 1, 1)) is BookieCode.ENOLEDGER


@pytest.mark.parametrize("directories", [(JOURNAL,), (JOURNAL, LEDGERS)], ids=["journal", "everything"])
def test_lost_entries_are_unknown_until_they_are_here_again(directories: tuple[str, ...]) -> None:
    async def scenario(machine: Machine) -> None:
        await lose(machine, *directories)
        held = range(5) if len(directories) == 1 else range(0)
        bookie = await machine.start()
        assert bookie.needs_limbo
        assert await code(bookie.read(7, 0, 1, 1)) is BookieCode.EUNKNOWNLEDGERSTATE
        assert await code(bookie.add(sealed(7, 0), KEY)) is BookieCode.EREADONLY
        await bookie.enter_limbo([1])
        for _ in range(3):
            await check_limbo(bookie, held)
            machine.crash(power_cut=True)
            bookie = await machine.start()
            assert not bookie.needs_limbo
        for entry_id in range(held.stop, 10):
            await bookie.add(sealed(1, entry_id), KEY, recovery=True)
        await bookie.leave_limbo([1])
        for _ in range(2):
            assert bookie.entry_ranges(1) == [(0, 9)]
            assert await code(bookie.read(1, 10, 1, 1)) is BookieCode.ENOENTRY
            assert await code(bookie.add(sealed(1, 10), KEY)) is BookieCode.EFENCED
            await bookie.add(sealed(2, 0), KEY)
            machine.crash(power_cut=True)
            bookie = await machine.start()

    on_lost_machine(scenario)


def test_without_the_settings_it_does_not_start() -> None:
    async def scenario(machine: Machine) -> None:
        await lose(machine, JOURNAL)
        machine.settings = dataclasses.replace(ALLOWED, data_integrity_stamp_missing_cookies=False)
        with pytest.raises(WrongDirectory):
            await machine.start()

    on_lost_machine(scenario)


def test_a_new_bookie_with_the_settings_is_just_new() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        assert not bookie.needs_limbo
        await bookie.add(sealed(1, 0), KEY)

    on_machine(scenario, settings=ALLOWED)


@pytest.mark.parametrize("directories", [(JOURNAL,), (JOURNAL, LEDGERS)], ids=["journal", "everything"])
def test_a_start_into_limbo_that_is_cut_off_anywhere_begins_with_it_again(directories: tuple[str, ...]) -> None:
    async def scenario(machine: Machine, at: int) -> None:
        await lose(machine, *directories)
        cut = machine.loop.create_future()
        begin = machine.disk.steps

        def on_step(step: int) -> None:
            if step == begin + at:
                machine.loop.call_soon(cut.set_result, None)

        async def begin_limbo() -> None:
            bookie = await machine.start()
            if bookie.needs_limbo:
                await bookie.enter_limbo([1])

        machine.disk.on_step = on_step
        life = machine.loop.create_task(begin_limbo())
        await asyncio.wait([cut, life], return_when=asyncio.FIRST_COMPLETED)
        life.cancel()
        machine.crash(power_cut=at % 2 == 0)
        machine.disk.on_step = lambda step: None
        await begin_limbo()
        await check_limbo(machine.bookie, range(5) if len(directories) == 1 else range(0))

    for at in range(1, 60):
        on_lost_machine(lambda machine, at=at: scenario(machine, at), seed=at)
