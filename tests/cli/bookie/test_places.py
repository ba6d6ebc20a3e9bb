"""Ledgers that a bookie which lost its disks may have held, from the metadata."""

import asyncio

import pytest

from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment, encode_ledger_metadata
from bookkeeper.ledger_metadata.layouts import FLAT, HIERARCHICAL, LedgerLayout
from cli.bookie.places import ledgers_of_bookie
from metadata.memory import MemoryStore
from metadata.store import MetadataError
from ports.clock import RealClock


def metadata(*ensembles: tuple[str, ...]) -> bytes:
    segments = tuple(Segment(10 * index, bookies) for index, bookies in enumerate(ensembles))
    return encode_ledger_metadata(LedgerMetadata(2, 2, 2, segments))


@pytest.mark.parametrize("layout", [HIERARCHICAL, FLAT])
def test_every_ledger_of_which_a_segment_names_it_and_those_that_cannot_be_read(layout: LedgerLayout) -> None:
    async def scenario() -> None:
        store = MemoryStore(RealClock())
        await store.put(layout.path("/ledgers", 3), metadata(("a:1", "b:1")))
        await store.put(layout.path("/ledgers", 70_000), metadata(("b:1", "c:1"), ("a:1", "c:1")))
        await store.put(layout.path("/ledgers", 5), metadata(("b:1", "c:1")))
        await store.put(layout.path("/ledgers", 6), b"nonsense")
        for other in ("available/readonly/a:1", "cookies/a:1", "idgen/ID-0000000001", "underreplication/ledgers/0000/urL3"):
            await store.put(f"/ledgers/{other}", metadata(("a:1", "b:1")))
        assert await ledgers_of_bookie(store, layout, "a:1") == [3, 6, 70_000]

    asyncio.run(scenario())


def test_a_listing_that_fails_gives_no_list() -> None:
    class Failing(MemoryStore):
        async def children(self, path: str) -> list[str]:
            if path.endswith("/00"):
                raise MetadataError("connection loss")
            return await super().children(path)

    async def scenario() -> None:
        store = Failing(RealClock())
        await store.put(HIERARCHICAL.path("/ledgers", 3), metadata(("a:1", "b:1")))
        with pytest.raises(MetadataError):
            await ledgers_of_bookie(store, HIERARCHICAL, "a:1")

    asyncio.run(scenario())
