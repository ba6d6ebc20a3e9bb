"""Watchers hear of changes at and below their path, soon and in order, and of none after they ended their watch."""

import asyncio
import contextvars

import pytest

from metadata.memory import MemoryStore
from metadata.store import BadPath, Change, Notification
from metadata.watches import Watches, until
from tests.bookkeeper.fake_bookies import FixedClock
from tests.simulation.worlds import World, run


def made(path: str) -> Notification:
    return Notification(Change.CREATED, path)


def test_a_watcher_hears_of_its_path_and_of_all_below_it_in_order_and_soon() -> None:
    async def scenario(world: World) -> None:
        watches, heard = Watches(), list[str]()
        watches.add("/a", lambda notification: heard.append(notification.path))
        watches.tell(map(made, ("/a", "/ab", "/a/b/c", "/", "/b")))
        assert heard == [], "never inside the write"
        await asyncio.sleep(0)
        assert heard == ["/a", "/a/b/c"]

    run(scenario)


def test_a_watch_that_ended_after_the_change_hears_nothing_and_may_end_twice() -> None:
    async def scenario(world: World) -> None:
        watches, heard = Watches(), list[Notification]()
        end = watches.add("/a", heard.append)
        watches.tell([made("/a")])
        end()
        end()
        await asyncio.sleep(0)
        assert heard == []

    run(scenario)


def test_one_watcher_may_watch_twice_and_ends_each_watch_by_itself() -> None:
    async def scenario(world: World) -> None:
        watches, heard = Watches(), list[Notification]()
        end = watches.add("/a", heard.append)
        watches.add("/a", heard.append)
        end()
        watches.tell([made("/a")])
        await asyncio.sleep(0)
        assert heard == [made("/a")]

    run(scenario)


def test_a_watcher_that_raises_is_told_to_the_loop_and_keeps_no_other_from_its_news() -> None:
    async def scenario() -> None:
        watches, heard, failures = Watches(), list[Notification](), list[str]()
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(str(context["exception"])))

        def broken(notification: Notification) -> None:
            raise ValueError("a watcher failed")

        watches.add("/a", broken)
        watches.add("/a", heard.append)
        watches.tell([made("/a")])
        await asyncio.sleep(0)
        assert (heard, failures) == ([made("/a")], ["a watcher failed"])

    asyncio.run(scenario())


def test_a_watcher_runs_in_the_context_in_which_it_began_to_watch() -> None:
    owner = contextvars.ContextVar("owner", default="nobody")

    async def scenario(world: World) -> None:
        watches, heard = Watches(), list[str]()
        owner.set("watcher")
        watches.add("/a", lambda notification: heard.append(owner.get()))
        owner.set("writer")
        watches.tell([made("/a")])
        await asyncio.sleep(0)
        assert heard == ["watcher"]

    run(scenario)


def test_a_path_that_no_node_can_have_is_not_watched() -> None:
    with pytest.raises(BadPath):
        Watches().add("/a//b", lambda notification: None)


def test_a_condition_is_waited_for_until_a_change_makes_it_true() -> None:
    async def scenario(world: World) -> None:
        store = MemoryStore(FixedClock())

        async def is_there() -> bool:
            return await store.exists("/a/b")

        waiting = asyncio.ensure_future(until(store, "/a", is_there, 60.0))
        await asyncio.sleep(1)
        await store.put("/a", b"")
        await asyncio.sleep(1)
        assert not waiting.done()
        await store.put("/a/b", b"")
        assert await waiting
        assert world.loop.time() < 3

    run(scenario)


def test_a_condition_that_never_holds_is_given_up_when_the_time_is_over() -> None:
    async def scenario(world: World) -> None:
        store = MemoryStore(FixedClock())

        async def never() -> bool:
            return False

        assert not await until(store, "/a", never, 5.0)
        assert world.loop.time() == pytest.approx(5.0, abs=0.1)

    run(scenario)
