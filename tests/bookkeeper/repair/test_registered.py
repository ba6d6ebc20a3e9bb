"""Registered bookies: a read-only one is present and takes nothing; a cookie is deleted once."""

from bookkeeper.repair.registered import delete_cookie, registered_bookies
from metadata.memory import MemoryStore
from tests.bookkeeper.fake_bookies import FixedClock
from tests.simulation.worlds import World, run


def test_a_read_only_bookie_is_present_and_not_writable_also_while_it_is_named_as_both() -> None:
    """A bookie that turns read-only registers the second node before it deletes the first."""

    async def scenario(world: World) -> None:
        store = MemoryStore(FixedClock())
        for name in ("a:1", "b:2", "readonly/b:2", "readonly/c:3"):
            await store.put(f"/ledgers/available/{name}", b"")
        found = await registered_bookies(store)
        assert found.writable == {"a:1"}
        assert found.read_only == {"b:2", "c:3"}
        assert found.all == {"a:1", "b:2", "c:3"}

    run(scenario)


def test_a_cluster_without_bookies_has_none() -> None:
    async def scenario(world: World) -> None:
        store = MemoryStore(FixedClock())
        assert (await registered_bookies(store)).all == frozenset()
        await store.put("/ledgers/available/readonly", b"")
        assert (await registered_bookies(store)).all == frozenset(), "the parent of read-only bookies is none"

    run(scenario)


def test_a_cookie_is_deleted_once() -> None:
    async def scenario(world: World) -> None:
        store = MemoryStore(FixedClock())
        await store.put("/ledgers/cookies/a:1", b"")
        assert [await delete_cookie(store, "a:1") for _ in range(2)] == [True, False]

    run(scenario)
