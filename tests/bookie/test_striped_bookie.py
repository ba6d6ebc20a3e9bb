"""Several journal and ledger directories: each ledger on one pair of them, and none of them missing, moved or emptied."""

import asyncio
import dataclasses
import errno
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bookie.errors import WrongDirectory
from bookie.settings import BookieSettings
from bookie.striped_bookie import StripedBookie, is_in_use, make_bookie
from bookie.stripes import stripe_settings
from simulation.disks.disk import SimDisk
from simulation.world.loop import SimLoop
from simulation.world.network import SimNetwork
from simulation.world.process import SimProcess
from simulation.world.rng import stream
from simulation.world.trace import Trace
from tests.bookie.machines import SMALL, SimClock, StepDisk
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError


def on(journals: tuple[str, ...], ledgers: tuple[str, ...]) -> BookieSettings:
    return dataclasses.replace(SMALL, journal_directories=journals, ledger_directories=ledgers)


TWO = on(("/j0", "/j1"), ("/l0", "/l1"))
LEDGERS = (1, 2, 3, 4)


class Host:
    """A machine with one striped bookie, whose directories may be given in another way at each start."""

    def __init__(self, seed: int) -> None:
        self.loop = SimLoop(stream(seed, "loop"), Trace(None))
        self.disk = StepDisk(self.loop, stream(seed, "disk"))
        self.bookie: StripedBookie
        self._settings = TWO
        self._rng = stream(seed, "bookie")
        self._ready: asyncio.Future[None]
        self._process = SimProcess(self.loop, SimNetwork(self.loop, stream(seed, "net")), "host", self.disk, self._main)

    def launch(self, settings: BookieSettings = TWO) -> "asyncio.Future[None]":
        self._settings = settings
        self._ready = self.loop.create_future()
        self._process.start()
        return self._ready

    async def start(self, settings: BookieSettings = TWO) -> StripedBookie:
        await self.launch(settings)
        return self.bookie

    def crash(self, *, power_cut: bool = True) -> None:
        if power_cut:
            self._process.cut_power()
        else:
            self._process.kill()

    async def refused(self, settings: BookieSettings, why: str) -> None:
        with pytest.raises(WrongDirectory, match=why):
            await self.start(settings)
        self.crash()

    async def _main(self) -> None:
        self.bookie = StripedBookie(self.disk, self._settings, SimClock(self.loop), self._rng)
        try:
            await self.bookie.start()
        except (WrongDirectory, OSError) as error:
            self._ready.set_exception(error)
            return
        self._ready.set_result(None)
        await self.loop.create_future()


def on_host(scenario: Callable[[Host], Coroutine[Any, Any, Any]], seed: int = 0) -> None:
    host = Host(seed)
    try:
        host.loop.run_until_complete(scenario(host))
    finally:
        host.loop.finish()


async def use(host: Host, settings: BookieSettings = TWO) -> StripedBookie:
    bookie = await host.start(settings)
    for ledger_id in LEDGERS:
        for entry_id in range(3):
            await bookie.add(sealed(ledger_id, entry_id, 1, 1000), KEY)
    return bookie


async def check(bookie: StripedBookie) -> None:
    assert bookie.ledger_ids() == list(LEDGERS)
    for ledger_id in LEDGERS:
        assert bookie.entry_ranges(ledger_id) == [(0, 2)]
        for entry_id in range(3):
            assert entries_of(await bookie.read(ledger_id, entry_id, 1, 1)) == entries_of(sealed(ledger_id, entry_id, 1, 1000))


async def empty(disk: SimDisk, *directories: str) -> None:
    for path in disk.paths():
        if path.startswith(directories):
            await disk.remove(path)


@pytest.mark.parametrize(("journals", "ledgers"), [(1, 1), (2, 2), (1, 3), (3, 1), (2, 3), (3, 2)])
def test_each_stripe_has_a_journal_and_a_ledger_directory_of_its_own(journals: int, ledgers: int) -> None:
    settings = on(tuple(f"/j{number}" for number in range(journals)), tuple(f"/l{number}" for number in range(ledgers)))
    parts = stripe_settings(settings)
    assert len(parts) == max(journals, ledgers)
    assert len({part.journal_directory for part in parts}) == len({part.ledger_directory for part in parts}) == len(parts)
    for given in (*settings.journal_directories, *settings.ledger_directories):
        assert any(part.journal_directory.startswith(given) or part.ledger_directory.startswith(given) for part in parts)
    assert sum(part.db_storage_write_cache_max_size_mb for part in parts) <= max(len(parts), 1)


@pytest.mark.parametrize(
    "settings", [TWO, on(("/j0",), ("/l0", "/l1", "/l2")), on(("/j0", "/j1"), ("/l0",))], ids=["2x2", "1x3", "2x1"]
)
def test_acknowledged_entries_of_all_stripes_survive_power_cuts_and_a_clean_stop(settings: BookieSettings) -> None:
    async def scenario(host: Host) -> None:
        bookie = await use(host, settings)
        for number in range(4):
            await check(bookie)
            if number == 1:
                await bookie.flush()
            if number == 2:
                await bookie.stop()
            host.crash()
            bookie = await host.start(settings)
        await check(bookie)
        await bookie.fence(2, KEY)
        with pytest.raises(BookieError) as caught:
            await bookie.add(sealed(2, 3), KEY)
        assert caught.value.code is BookieCode.EFENCED
        await bookie.delete([2, 3])
        assert bookie.ledger_ids() == [1, 4]

    on_host(scenario)


@pytest.mark.parametrize("number", [0, 1])
def test_bookkeeper_544_a_pair_of_directories_that_was_emptied_is_refused(number: int) -> None:
    async def scenario(host: Host) -> None:
        await use(host)
        host.crash()
        await empty(host.disk, f"/j{number}", f"/l{number}")
        await host.refused(TWO, "were never used|holds ledgers|were they emptied")

    on_host(scenario)


@pytest.mark.parametrize(
    "settings",
    [
        on(("/j1", "/j0"), ("/l1", "/l0")),
        on(("/j0", "/j1"), ("/l1", "/l0")),
        on(("/j0", "/j1", "/j2"), ("/l0", "/l1", "/l2")),
        on(("/j0", "/j1"), ("/l0",)),
        on(("/j0", "/new"), ("/l0", "/other")),
    ],
    ids=["swapped", "crossed", "one more", "one less", "another"],
)
def test_directories_keep_their_number_and_their_order(settings: BookieSettings) -> None:
    async def scenario(host: Host) -> None:
        await use(host)
        host.crash()
        await host.refused(settings, "keep their number|different bookies|never used|not empty|no VERSION")
        await check(await host.start())

    on_host(scenario)


@pytest.mark.parametrize("seed", range(2))
def test_a_first_start_that_is_cut_off_anywhere_is_made_good(seed: int) -> None:
    async def scenario(host: Host) -> None:
        for at in range(1, 110, 3):
            cut = host.loop.create_future()
            begin = host.disk.steps

            def on_step(step: int, at: int = at, begin: int = begin, cut: "asyncio.Future[None]" = cut) -> None:
                if step == begin + at:
                    host.loop.call_soon(cut.set_result, None)

            host.disk.on_step = on_step
            ready = host.launch()
            await asyncio.wait([cut, ready], return_when=asyncio.FIRST_COMPLETED)
            host.crash(power_cut=at % 2 == 0)
            if ready.done():
                assert ready.exception() is None
        host.disk.on_step = lambda step: None
        await check(await use(host))

    on_host(scenario, seed)


def test_bookkeeper_3329_a_flush_of_one_directory_says_nothing_of_the_journal_of_another() -> None:
    """There a start took the greatest of several marks, and skipped what only a lesser one had covered."""

    async def scenario(host: Host) -> None:
        bookie = await use(host)
        await bookie.stripes[1].flush()
        host.disk.fail("write", errno.EIO, "/l0", times=1000)
        for _ in range(5):
            await bookie.add(sealed(1, 2, 1, 1000), KEY, recovery=True)
            await bookie.stripes[1].flush()
        host.crash()
        host.disk.heal()
        await check(await host.start())

    on_host(scenario)


def test_one_failing_disk_makes_the_bookie_read_only_and_the_others_go_on() -> None:
    async def scenario(host: Host) -> None:
        bookie = await use(host)
        assert bookie.read_only_reason == ""
        host.disk.fail("write", errno.EIO, "/j0")
        with pytest.raises(BookieError) as caught:
            await bookie.add(sealed(2, 3), KEY)
        assert caught.value.code is BookieCode.EREADONLY
        assert "journal" in bookie.read_only_reason
        await bookie.add(sealed(1, 3), KEY)
        assert (await bookie.read(2, 0, 1, 1)).count == 1

    on_host(scenario)


def test_one_pair_of_directories_needs_no_stripes() -> None:
    async def scenario(host: Host) -> None:
        assert not await is_in_use(host.disk, TWO)
        one = make_bookie(host.disk, SMALL, SimClock(host.loop), host.disk.rng)
        assert one.stripes == (one,)
        assert isinstance(make_bookie(host.disk, TWO, SimClock(host.loop), host.disk.rng), StripedBookie)
        await use(host)
        assert await is_in_use(host.disk, TWO)
        assert not await is_in_use(host.disk, SMALL)

    on_host(scenario)
