"""A metered store answers as the store below it, and counts each operation by kind and by whether it succeeded."""

import pytest

from metadata.memory import MemoryStore, SharedTree
from metadata.metered_store import MeteredStore
from metadata.store import MUST_NOT_EXIST, BadVersion, Delete, NoNode, Notification, Put
from tests.bookkeeper.fake_bookies import FixedClock
from tests.simulation.worlds import World, run


def counted(store: MeteredStore) -> dict[tuple[str, str], int]:
    return {key: found.count for key, found in store.meters.latencies.items() if found.count}


def test_reads_writes_and_deletions_are_counted_and_lists_are_not() -> None:
    async def scenario(world: World) -> None:
        store = MeteredStore(MemoryStore(FixedClock()))
        await store.put("/a", b"12345")
        found = await store.get("/a")
        assert found is not None
        assert (found.value, await store.children("/"), await store.exists("/a")) == (b"12345", ["a"], True)
        await store.delete("/a")
        assert counted(store) == {("put", "success"): 1, ("get", "success"): 1, ("del", "success"): 1}
        assert store.meters.put_bytes == 5

    run(scenario)


def test_a_refusal_counts_as_failed_and_its_bytes_are_not_counted() -> None:
    async def scenario(world: World) -> None:
        store = MeteredStore(MemoryStore(FixedClock()))
        await store.put("/a", b"1")
        with pytest.raises(BadVersion):
            await store.put("/a", b"12345", MUST_NOT_EXIST)
        with pytest.raises(NoNode):
            await store.delete("/b")
        assert counted(store) == {("put", "success"): 1, ("put", "fail"): 1, ("del", "fail"): 1}
        assert store.meters.put_bytes == 1

    run(scenario)


def test_each_operation_of_a_commit_counts_with_the_time_of_all() -> None:
    async def scenario(world: World) -> None:
        store = MeteredStore(MemoryStore(FixedClock(), answer_delay=lambda: 0.2))
        await store.commit([Put("/a", b"12"), Put("/b", b"345"), Delete("/a")])
        assert counted(store) == {("put", "success"): 2, ("del", "success"): 1}
        assert store.meters.put_bytes == 5
        assert store.meters.latencies["put", "success"].total == pytest.approx(2 * 200, rel=0.01)

    run(scenario)


def test_options_of_a_put_reach_the_store_below_and_so_do_watches_and_the_close() -> None:
    async def scenario(world: World) -> None:
        shared, heard = SharedTree(), list[Notification]()
        inner, other = (MemoryStore(FixedClock(), shared, alone=False) for _ in range(2))
        store = MeteredStore(inner)
        end = store.watch("/a", heard.append)
        stat = await store.put("/a/n", b"", sequential=True, ephemeral=True)
        assert await inner.exists(stat.path)
        assert stat.path != "/a/n"
        end()
        assert len(heard) == 2, "the parent and the node"
        await store.close()
        assert not await other.exists(stat.path), "the node ended with the session"

    run(scenario)
