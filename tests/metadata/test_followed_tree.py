"""A followed part of the metadata is read again after every change, and again and again until it could be read."""

import asyncio

import pytest

from metadata.followed_tree import RETRY_SECONDS, FollowedTree
from metadata.memory import MemoryStore
from metadata.store import StoreUnavailable
from tests.bookkeeper.fake_bookies import FixedClock
from tests.simulation.worlds import World, run


class Reader:
    """Reads the names below /a, and fails as often as `failures` says."""

    def __init__(self) -> None:
        self.store = MemoryStore(FixedClock())
        self.followed = FollowedTree(self.store, "/a", self.refresh, "names")
        self.names: list[list[str]] = []
        self.failures = 0
        self.seconds = 0.0

    async def refresh(self) -> None:
        found = await self.store.children("/a")
        await asyncio.sleep(self.seconds)
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("no answer")
        self.names.append(found)


def test_each_change_at_or_below_the_path_is_read() -> None:
    async def scenario(world: World) -> None:
        reader = Reader()
        await reader.followed.open()
        await reader.store.put("/a/1", b"")
        await asyncio.sleep(1)
        await reader.store.put("/b/2", b"")
        await asyncio.sleep(1)
        assert reader.names == [[], ["1"]]
        await reader.followed.close()

    run(scenario)


def test_changes_during_a_read_are_one_more_read_that_sees_them_all() -> None:
    async def scenario(world: World) -> None:
        reader = Reader()
        await reader.followed.open()
        reader.seconds = 1.0
        for name in ("1", "2", "3"):
            await reader.store.put(f"/a/{name}", b"")
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        assert reader.names == [[], ["1"], ["1", "2", "3"]]
        await reader.followed.close()

    run(scenario)


def test_a_read_that_fails_is_tried_again_without_another_change() -> None:
    async def scenario(world: World) -> None:
        reader = Reader()
        await reader.followed.open()
        reader.failures = 3
        await reader.store.put("/a/1", b"")
        await asyncio.sleep(2.5 * RETRY_SECONDS)
        assert reader.names == [[]]
        await asyncio.sleep(RETRY_SECONDS)
        assert reader.names == [[], ["1"]]
        await reader.followed.close()

    run(scenario)


def test_a_first_read_that_fails_is_an_error_of_the_opener() -> None:
    async def scenario(world: World) -> None:
        reader = Reader()
        reader.failures = 1
        with pytest.raises(StoreUnavailable):
            await reader.followed.open()
        await reader.followed.close()

    run(scenario)


def test_nothing_is_read_after_the_close_which_may_come_twice() -> None:
    async def scenario(world: World) -> None:
        reader = Reader()
        await reader.followed.open()
        await reader.followed.close()
        await reader.followed.close()
        await reader.store.put("/a/1", b"")
        await asyncio.sleep(5)
        assert reader.names == [[]]

    run(scenario)
