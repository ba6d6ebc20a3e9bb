"""New ledger ids."""

import asyncio
from random import Random

from bookkeeper.ledger_metadata.ledger_ids import LedgerIds
from metadata.memory import MemoryStore, SharedTree
from metadata.store import StoreUnavailable
from tests.bookkeeper.fake_bookies import FixedClock, run, settle


def store_on(shared: SharedTree) -> MemoryStore:
    return MemoryStore(FixedClock(), shared, alone=False)


def test_ids_are_apaches_next_numbers_and_nobodys_twice() -> None:
    async def scenario() -> None:
        shared = SharedTree()
        store = store_on(shared)
        clients = [LedgerIds(store_on(shared)) for _ in range(2)]
        taken = list(await asyncio.gather(*(clients[number % 2].take() for number in range(500))))
        apaches = await store.put("/ledgers/idgen/ID-", b"", ephemeral=True, sequential=True)
        taken.append(int(apaches.path[-10:]))
        taken += await asyncio.gather(*(clients[number % 2].take() for number in range(500)))
        assert len(set(taken)) == 1001
        assert max(taken) == 1000
        for client in clients:
            await client.close()
        assert shared.tree.children("/ledgers/idgen") == [apaches.path.rpartition("/")[2]]

    run(scenario())


def test_an_id_is_above_all_that_anybody_had_when_it_was_asked_for() -> None:
    """A log goes from one broker to another and back: its ledgers' ids have to grow."""

    async def scenario() -> None:
        shared = SharedTree()
        clients = [LedgerIds(store_on(shared)) for _ in range(2)]
        had: list[int] = []
        asked: list[tuple[int, asyncio.Task[int]]] = []
        for turn in range(200):
            above = max(had, default=-1)
            task = asyncio.create_task(clients[Random(turn).randrange(2)].take())
            task.add_done_callback(lambda done: had.append(done.result()))
            asked.append((above, task))
            for _ in range(turn % 5):
                await asyncio.sleep(0)
        for above, task in asked:
            assert await task > above
        assert sorted(had) == list(range(200))
        for client in clients:
            await client.close()

    run(scenario())


def test_concurrent_requests_for_an_id_share_one_failure_and_the_next_begins_anew() -> None:
    async def scenario() -> None:
        store = CountingStore(FixedClock())
        ids = LedgerIds(store)
        store.failures = 1
        results = await asyncio.gather(*(ids.take() for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [StoreUnavailable] * 3
        assert [*await asyncio.gather(ids.take(), ids.take())] == [0, 1]
        await ids.close()

    run(scenario())


class CountingStore(MemoryStore):
    failures = 0
    commits = 0

    async def commit(self, operations):  # type: ignore[no-untyped-def]
        self.commits += 1
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("not now")
        return await super().commit(operations)


def test_a_thousand_ids_cost_a_handful_of_commits() -> None:
    async def scenario() -> None:
        store = CountingStore(FixedClock())
        ids = LedgerIds(store)
        await asyncio.gather(*(ids.take() for _ in range(1000)))
        assert store.commits <= 6
        await settle()

    run(scenario())


def test_ids_past_31_bits_come_from_the_long_generator_for_good() -> None:
    async def scenario() -> None:
        shared = SharedTree()
        store = store_on(shared)
        await store.put("/ledgers/idgen", b"")
        shared.tree._counters["/ledgers/idgen"] = (1 << 31) - 3
        ids = LedgerIds(store)
        assert [await ids.take() for _ in range(4)] == [(1 << 31) - 3, (1 << 31) - 2, 1 << 32, (1 << 32) + 1]
        assert await LedgerIds(store_on(shared)).take() > 1 << 32
        for high in (2, 3, 4, 5):
            shared.tree._counters[f"/ledgers/idgen-long/HOB-{high - 1:010d}"] = (1 << 31) - 1
            assert await LedgerIds(store).take() == high << 32
            await settle()
        assert shared.tree.children("/ledgers/idgen-long") == ["HOB-0000000003", "HOB-0000000004", "HOB-0000000005"]
        await ids.close()

    run(scenario())
