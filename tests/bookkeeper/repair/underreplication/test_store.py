"""The under-replication tree: what is written for Apache's to read, locks that end with their session, marks that none lose."""

import asyncio

import pytest

from bookkeeper.repair.errors import IncompatibleUnderreplication
from bookkeeper.repair.underreplication.store import UnderreplicationStore
from metadata.memory import MemoryStore, SharedTree
from tests.bookkeeper.fake_bookies import FixedClock, run

NODE = "/ledgers/underreplication/ledgers/0000/0000/0000/0007/urL0000000007"
LOCK = "/ledgers/underreplication/locks/urL0000000007"


class Marks:
    """A shared tree, and one client of it after another."""

    def __init__(self) -> None:
        self.shared = SharedTree()

    def session(self) -> MemoryStore:
        return MemoryStore(FixedClock(), self.shared, alone=False)

    def open(self, owner: str = "b1:3181", session: MemoryStore | None = None) -> UnderreplicationStore:
        return UnderreplicationStore(session or self.session(), FixedClock(), owner)

    def value(self, path: str) -> bytes | None:
        found = self.shared.tree.get(path)
        return None if found is None else found.value


def test_marks_locks_and_layout_are_the_bytes_that_apache_writes() -> None:
    async def scenario() -> None:
        marks = Marks()
        store = marks.open()
        await store.initialise()
        assert marks.value("/ledgers/underreplication/LAYOUT") == b'type: "BASIC"\nversion: 1\n'
        await store.mark_missing(7, ["b1:3181"])
        assert marks.value(NODE) == b'replica: "b1:3181"\nctime: 1700000000000\n'
        await store.mark_missing(7, ["b2:3181", "b1:3181"])
        assert marks.value(NODE) == b'replica: "b1:3181"\nreplica: "b2:3181"\nctime: 1700000000000\n'
        assert [ledger_id async for ledger_id in store.ledger_ids()] == [7]
        held = await store.take(7)
        assert held is not None
        assert held.missing_replicas == ("b1:3181", "b2:3181")
        assert marks.value(LOCK) == b'bookieId: "b1:3181"\n'
        assert await store.lock_owner(7) == "b1:3181"
        assert await store.mark_replicated(held)
        assert marks.shared.tree.children("/ledgers/underreplication/ledgers") == []
        assert await store.locked_ids() == frozenset()

    run(scenario())


def test_a_lock_is_had_by_one_and_ends_with_its_session() -> None:
    async def scenario() -> None:
        marks = Marks()
        session = marks.session()
        one, two = marks.open("one", session), marks.open("two")
        await one.initialise()
        await one.mark_missing(7, ["b1:3181"])
        assert await one.take(7) is not None
        assert await two.take(7) is None
        await session.close()
        assert await two.take(7) is not None
        assert await two.take(8) is None, "nobody marked it"
        assert await two.locked_ids() == {7}
        await two.release(7)
        await two.release(7)
        assert await two.locked_ids() == frozenset()

    run(scenario())


def test_a_mark_made_after_the_lock_was_taken_is_not_lost_even_when_it_says_the_same() -> None:
    async def scenario() -> None:
        marks = Marks()
        worker, auditor = marks.open("worker"), marks.open("auditor")
        await auditor.mark_missing(7, ["b1:3181"])
        held = await worker.take(7)
        assert held is not None
        await auditor.mark_missing(7, ["b1:3181"])
        assert not await worker.mark_replicated(held)
        assert marks.value(NODE) is not None
        assert await worker.locked_ids() == frozenset()
        again = await worker.take(7)
        assert again is not None
        assert await worker.mark_replicated(again)
        assert await worker.mark_replicated(again), "somebody has done it before: that is fine"

    run(scenario())


def test_nodes_above_a_mark_stay_as_long_as_another_needs_them() -> None:
    async def scenario() -> None:
        marks = Marks()
        store = marks.open()
        for ledger_id in (7, 8, 1 << 40):
            await store.mark_missing(ledger_id, ["b1:3181"])
        assert [ledger_id async for ledger_id in store.ledger_ids()] == [7, 8, 1 << 40]
        for ledger_id, left in ((7, [8, 1 << 40]), (1 << 40, [8]), (8, [])):
            held = await store.take(ledger_id)
            assert held is not None
            await store.mark_replicated(held)
            assert [each async for each in store.ledger_ids()] == left
        assert marks.shared.tree.children("/ledgers/underreplication/ledgers") == []

    run(scenario())


def test_many_auditors_mark_one_ledger_at_once_and_none_is_forgotten() -> None:
    async def scenario() -> None:
        marks = Marks()
        await asyncio.gather(*(marks.open().mark_missing(7, [f"b{number}:3181"]) for number in range(20)))
        found = await marks.open().marked(7)
        assert found is not None
        assert sorted(found.missing_replicas) == sorted(f"b{number}:3181" for number in range(20))

    run(scenario())


def test_repair_is_disabled_and_enabled_and_the_delay_is_kept_by_whoever_says_it_first() -> None:
    async def scenario() -> None:
        store = Marks().open()
        assert await store.is_enabled()
        await store.disable()
        await store.disable()
        assert not await store.is_enabled()
        await store.enable()
        await store.enable()
        assert await store.is_enabled()
        assert await store.lost_bookie_recovery_delay() is None
        await store.initialise_lost_bookie_recovery_delay(30)
        await store.initialise_lost_bookie_recovery_delay(60)
        assert await store.lost_bookie_recovery_delay() == 30
        await store.set_lost_bookie_recovery_delay(90)
        assert await store.lost_bookie_recovery_delay() == 90

    run(scenario())


def test_a_layout_of_another_version_is_refused_and_a_damaged_mark_is_a_mark() -> None:
    async def scenario() -> None:
        marks = Marks()
        session = marks.session()
        await session.put("/ledgers/underreplication/LAYOUT", b'type: "BASIC"\nversion: 2\n')
        with pytest.raises(IncompatibleUnderreplication, match="BASIC 2"):
            await marks.open().initialise()
        await session.put(NODE, b"\xff nonsense")
        held = await marks.open().take(7)
        assert held is not None
        assert held.missing_replicas == ()

    run(scenario())
