"""The layout of ledgers in the metadata store."""

import asyncio
from random import Random

import pytest

from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.ledgers import LedgerError
from metadata.memory import MemoryStore, SharedTree
from tests.bookkeeper.fake_bookies import FixedClock, run


def store_on(shared: SharedTree) -> MemoryStore:
    return MemoryStore(FixedClock(), shared, alone=False)


def test_the_layout_is_made_once_and_checked_afterwards() -> None:
    async def scenario() -> None:
        shared = SharedTree()
        await asyncio.gather(*(LedgerRegistry(store_on(shared), Random(seed)).initialise() for seed in range(2)))
        assert shared.tree.children("/ledgers") == ["INSTANCEID", "LAYOUT", "available"]
        assert shared.tree.children("/ledgers/available") == ["readonly"]
        instance = shared.tree.get("/ledgers/INSTANCEID")
        assert instance is not None
        assert instance.stat.version == 0
        assert len(instance.value) == 36
        await store_on(shared).put("/ledgers/LAYOUT", b"1\nflat:1")
        with pytest.raises(LedgerError, match="layout"):
            await LedgerRegistry(store_on(shared), Random(3)).initialise()

    run(scenario())
