"""Closed ledgers that are open for reading: each is opened once, and only so many stay open."""

from typing import Any

import pytest

from bookkeeper.ledgers import LedgerReader
from managed_ledger.read import handles
from managed_ledger.read.handles import LedgerHandles

from ..fake_ledgers import FakeLedger, FakeLedgers, FakeLedgerStore
from ..ledger_world import World, append_each, numbers, read_all, run


class CountedStore(FakeLedgerStore):
    """Knows which ledgers were opened, in order."""

    def __init__(self, shared: FakeLedgers) -> None:
        super().__init__(shared)
        self.opened: list[int] = []

    async def open(self, ledger_id: int) -> LedgerReader:
        self.opened.append(ledger_id)
        return await super().open(ledger_id)


def store_of(*ledger_ids: int) -> CountedStore:
    shared = FakeLedgers()
    shared.ledgers = {ledger_id: FakeLedger(ledger_id, {}) for ledger_id in ledger_ids}
    return CountedStore(shared)


def test_a_ledger_is_opened_once_for_all_who_read_it() -> None:
    async def scenario() -> None:
        store = store_of(1)
        found = LedgerHandles(store, lambda _: None)
        assert await found.get(1) is await found.get(1)
        assert store.opened == [1]

    run(scenario())


def test_the_least_recently_used_ledger_handle_is_released_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "HANDLES_MAX", 2)

    async def scenario() -> None:
        store = store_of(1, 2, 3)
        found = LedgerHandles(store, lambda _: None)
        for ledger_id in (1, 2, 1, 3, 1):
            await found.get(ledger_id)
        assert store.opened == [1, 2, 3]
        await found.get(2)
        assert store.opened == [1, 2, 3, 2]

    run(scenario())


def test_handles_that_were_taken_are_not_given_out_again() -> None:
    async def scenario() -> None:
        store = store_of(1)
        found = LedgerHandles(store, lambda _: None)
        reader = await found.get(1)
        assert [handle.result() for handle in found.take_all()] == [reader]
        assert found.take_all() == []

    run(scenario())


def test_a_ledger_that_was_recovered_when_its_topic_was_opened_is_read_without_being_opened_again() -> None:
    class Counted(World):
        def start(self) -> None:
            super().start()
            self.counted = CountedStore(self.shared)
            self.ledger_store: Any = self.counted
            self.ledgers = self.factory()

    async def scenario() -> None:
        world = Counted()
        await append_each(await world.open(), 3)
        ledger = await world.reopen()
        assert await read_all(ledger) == numbers(3)
        assert world.counted.opened == [1]

    run(scenario())
