"""Sessions that share a tree in memory: nodes end with their session, and each write is answered in order, a little later."""

import asyncio

import pytest

from metadata.memory import MemoryStore, SharedTree
from metadata.store import Change, Notification, StoreClosed
from tests.bookkeeper.fake_bookies import FixedClock
from tests.simulation.worlds import World, run


def test_another_session_sees_a_write_before_it_is_answered() -> None:
    async def scenario(world: World) -> None:
        shared = SharedTree()
        writer = MemoryStore(FixedClock(), shared, alone=False, answer_delay=lambda: 5.0)
        reader = MemoryStore(FixedClock(), shared, alone=False)
        write = asyncio.ensure_future(writer.put("/a", b"1"))
        await asyncio.sleep(1)
        assert await reader.exists("/a")
        assert not write.done()
        await write
        assert world.loop.time() == pytest.approx(5.0, abs=0.1)

    run(scenario)


def test_answers_keep_the_order_of_the_writes_whatever_their_delays() -> None:
    async def scenario(world: World) -> None:
        delays, answered = [3.0, 0.0, 1.0], list[str]()
        store = MemoryStore(FixedClock(), answer_delay=lambda: delays.pop(0))

        async def put(path: str) -> None:
            await store.put(path, b"")
            answered.append(path)

        await asyncio.gather(*map(put, ("/1", "/2", "/3")))
        assert answered == ["/1", "/2", "/3"]

    run(scenario)


def test_ephemeral_nodes_end_with_their_session_and_watchers_of_others_hear_of_it() -> None:
    async def scenario(world: World) -> None:
        shared, heard = SharedTree(), list[Notification]()
        owner, other = (MemoryStore(FixedClock(), shared, alone=False) for _ in range(2))
        await owner.put("/lock", b"", ephemeral=True)
        await owner.put("/kept", b"")
        other.watch("/", heard.append)
        await owner.close()
        await owner.close()
        await asyncio.sleep(0)
        assert heard == [Notification(Change.DELETED, "/lock")]
        assert await other.children("/") == ["kept"]

    run(scenario)


def test_the_only_store_of_a_tree_ends_the_nodes_that_earlier_sessions_left() -> None:
    async def scenario(world: World) -> None:
        shared = SharedTree()
        await MemoryStore(FixedClock(), shared).put("/lock", b"", ephemeral=True)
        assert await MemoryStore(FixedClock(), shared, alone=False).exists("/lock")
        assert not await MemoryStore(FixedClock(), shared).exists("/lock")

    run(scenario)


def test_a_closed_store_answers_nothing() -> None:
    async def scenario(world: World) -> None:
        store = MemoryStore(FixedClock())
        await store.close()
        for call in (store.get("/a"), store.children("/a"), store.exists("/a"), store.put("/a", b""), store.delete("/a")):
            with pytest.raises(StoreClosed):
                await call

    run(scenario)
