"""A writer that rests tells its bookies the last add confirmed, and no timer is left once all is told."""

import asyncio

from bookkeeper.ports import BookieClient
from bookkeeper.write.explicit_lac import ExplicitLac
from tests.bookkeeper.fake_bookies import FakeBookie
from tests.simulation.worlds import World, run
from wire.bookie.codes import BookieCode, BookieError

KEY = bytes(20)


class Told(FakeBookie):
    """A bookie of version 3 that notes what it is told, and refuses as often as `refusals` says."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[int, bytes]] = []
        self.refusals = 0

    async def write_lac(self, ledger_id: int, last_add_confirmed: int, master_key: bytes, record: bytes) -> None:
        if self.refusals:
            self.refusals -= 1
            raise BookieError(BookieCode.EREADONLY, ledger_id)
        self.told.append((last_add_confirmed, record))

    add_deferred = force = read_lac = wait_lac = disk_space = list_entries = write_lac


class Writer:
    """Confirms what a test says, and tells it every ten seconds."""

    def __init__(self, *bookies: BookieClient) -> None:
        self.confirmed = -1
        self.bookies: list[BookieClient] = list(bookies)
        self.lac = ExplicitLac(7, KEY, 10.0, lambda: self.confirmed, lambda: self.bookies, lambda last: b"record %d" % last)


def test_bookies_are_told_after_the_interval_and_once() -> None:
    async def scenario(world: World) -> None:
        bookie = Told()
        writer = Writer(bookie, FakeBookie())
        writer.lac.appended(3)
        writer.confirmed = 3
        await asyncio.sleep(9)
        assert bookie.told == []
        await asyncio.sleep(50)
        assert bookie.told == [(3, b"record 3")]

    run(scenario)


def test_entries_that_are_confirmed_later_are_told_at_a_later_turn() -> None:
    async def scenario(world: World) -> None:
        bookie = Told()
        writer = Writer(bookie)
        writer.lac.appended(5)
        writer.confirmed = 3
        await asyncio.sleep(11)
        writer.confirmed = 5
        await asyncio.sleep(30)
        assert [last for last, _ in bookie.told] == [3, 5]
        writer.lac.appended(6)
        writer.confirmed = 6
        await asyncio.sleep(30)
        assert [last for last, _ in bookie.told] == [3, 5, 6]

    run(scenario)


def test_a_bookie_that_refuses_is_told_again() -> None:
    async def scenario(world: World) -> None:
        bookie = Told()
        bookie.refusals = 2
        writer = Writer(bookie)
        writer.lac.appended(0)
        writer.confirmed = 0
        await asyncio.sleep(31)
        assert [last for last, _ in bookie.told] == [0]

    run(scenario)


def test_nothing_is_told_after_the_stop_or_without_bookies() -> None:
    async def scenario(world: World) -> None:
        stopped, released = Told(), Told()
        for bookie in (stopped, released):
            writer = Writer(bookie)
            writer.lac.appended(0)
            writer.confirmed = 0
            if bookie is stopped:
                writer.lac.stop()
                writer.lac.stop()
            else:
                writer.bookies = []
        await asyncio.sleep(30)
        assert (stopped.told, released.told) == ([], [])

    run(scenario)
