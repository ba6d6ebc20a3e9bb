"""The cookie of a bookie's directories: whose they are, whether they are whole, first starts cut off anywhere."""

import asyncio

import pytest

from bookie.bookie import Bookie
from bookie.errors import WrongDirectory
from bookie.start.cookie import Cookie, decode_cookie, encode_cookie
from tests.bookie.machines import SMALL, Machine, SimClock, on_machine
from tests.bookie.runs import KEY, sealed

JOURNAL, LEDGERS = SMALL.journal_directory, SMALL.ledger_directory


async def use(machine: Machine) -> None:
    bookie = await machine.start()
    await bookie.add(sealed(1, 0), KEY)
    await bookie.stop()
    machine.crash(power_cut=True)


async def empty(machine: Machine, directory: str) -> None:
    for path in machine.disk.paths():
        if path.startswith(directory):
            await machine.disk.remove(path)


def test_a_cookie_is_read_back_and_unknown_versions_are_refused() -> None:
    cookie = Cookie("some instance", b"\x01\xff" * 8)
    data = encode_cookie(cookie)
    assert decode_cookie(data, "x") == cookie
    for bad in (data.replace(b"version=1", b"version=2"), b"", b"version=1\n", data.replace(b"secret=", b"secret=zz")):
        with pytest.raises(WrongDirectory):
            decode_cookie(bad, "x")


@pytest.mark.parametrize("directory", [JOURNAL, LEDGERS])
def test_an_emptied_directory_is_refused(directory: str) -> None:
    async def scenario(machine: Machine) -> None:
        await use(machine)
        await empty(machine, directory)
        with pytest.raises(WrongDirectory) as caught:
            await machine.start()
        assert JOURNAL in str(caught.value) or LEDGERS in str(caught.value)

    on_machine(scenario)


def test_a_lost_checkpoint_does_not_make_it_a_new_bookie() -> None:
    async def scenario(machine: Machine) -> None:
        await use(machine)
        await machine.disk.remove(f"{LEDGERS}/checkpoint")
        with pytest.raises(WrongDirectory, match="not empty"):
            await machine.start()

    on_machine(scenario)


def test_the_directory_of_another_bookie_or_instance_is_refused() -> None:
    async def scenario(machine: Machine) -> None:
        await use(machine)
        other = encode_cookie(Cookie("", b"x" * 16))
        machine.disk.contents(f"{JOURNAL}/VERSION").write(0, other)
        with pytest.raises(WrongDirectory, match="different bookies"):
            await machine.start()
        machine.crash(power_cut=False)
        machine.disk.contents(f"{LEDGERS}/VERSION").write(0, other)
        await machine.start()
        machine.crash(power_cut=False)
        bookie = Bookie(machine.disk, SMALL, SimClock(machine.loop), machine.disk.rng, instance_id="another")
        with pytest.raises(WrongDirectory, match="belongs to instance"):
            await bookie.start()

    on_machine(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_a_first_start_that_is_cut_off_anywhere_is_made_good(seed: int) -> None:
    async def scenario(machine: Machine) -> None:
        for at in range(1, 60):
            cut = machine.loop.create_future()
            start = machine.disk.steps

            def on_step(step: int, at: int = at, start: int = start, cut: object = cut) -> None:
                if step == start + at:
                    machine.loop.call_soon(cut.set_result, None)  # type: ignore[attr-defined]

            machine.disk.on_step = on_step
            ready = machine.launch()
            await asyncio.wait([cut, ready], return_when=asyncio.FIRST_COMPLETED)
            machine.crash(power_cut=at % 2 == 0)
            if ready.done():
                assert ready.exception() is None
        machine.disk.on_step = lambda step: None
        await use(machine)

    on_machine(scenario, seed)
