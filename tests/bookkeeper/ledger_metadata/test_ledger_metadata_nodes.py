"""Paths, layout, ids and metadata bytes against what Apache's own jars (4.17.3) write."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from bookkeeper.ledger_metadata.codec import (
    LedgerMetadata,
    LedgerState,
    MalformedLedgerMetadata,
    Segment,
    decode_ledger_metadata,
    encode_ledger_metadata,
    master_key,
)
from bookkeeper.ledger_metadata.ledger_ids import LedgerIds
from bookkeeper.ledger_metadata.paths import ledger_path, parents_of
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.ledgers import LedgerError
from metadata.memory import MemoryStore, SharedTree
from metadata.store import StoreUnavailable
from tests.bookkeeper.fake_bookies import FixedClock, run, settle
from wire.bookie.digests import DigestType

CLOSED = LedgerMetadata(
    ensemble_size=2,
    write_quorum=2,
    ack_quorum=1,
    segments=(Segment(0, ("b1:3181", "b2:3181")), Segment(10, ("b1:3181", "b3:3181"))),
    state=LedgerState.CLOSED,
    last_entry_id=19,
    length_bytes=500,
    password=b"pw",
    custom_metadata={"k": b"v"},
    created_ms=1000,
)
CLOSED_BYTES = bytes.fromhex(
    "426f6f6b69654d65746164617461466f726d617456657273696f6e09330a4c0802100218f4032013280332140a0762313a333138310a0762323a3331"
    "3831100032140a0762313a333138310a0762333a33313831100a380342027077480150e8075a060a016b120176"
)
OPEN_BYTES = bytes.fromhex(
    "426f6f6b69654d65746164617461466f726d617456657273696f6e09330a3108021002180020ffffffffffffffffff01280132140a0762313a333138"
    "310a0762323a333138311000380342004802"
)


def test_closed_metadata_has_the_bytes_of_apache() -> None:
    token = b"\x60\x2a"  # cToken 42
    data = encode_ledger_metadata(replace(CLOSED, creation_token=42))
    assert data == CLOSED_BYTES + token
    assert decode_ledger_metadata(data) == replace(CLOSED, creation_token=42)


def test_open_metadata_has_the_bytes_of_apache() -> None:
    metadata = LedgerMetadata(2, 2, 2, (Segment(0, ("b1:3181", "b2:3181")),), creation_token=42)
    assert encode_ledger_metadata(metadata) == OPEN_BYTES + b"\x60\x2a"
    assert decode_ledger_metadata(OPEN_BYTES + b"\x60\x2a") == metadata
    assert metadata.digest_type == DigestType.CRC32C


def test_fields_of_a_later_version_are_written_back() -> None:
    body = CLOSED_BYTES[31:] + bytes.fromhex("f8062a")  # field 111 is 42
    data = CLOSED_BYTES[:30] + bytes([len(body)]) + body
    metadata = decode_ledger_metadata(data)
    assert metadata.last_entry_id == 19
    assert encode_ledger_metadata(metadata) == data
    assert decode_ledger_metadata(encode_ledger_metadata(metadata.in_recovery())).unknown_fields == body[-3:]


@pytest.mark.parametrize("data", [b"", b"BookieMetadataFormatVersion\t9\n", CLOSED_BYTES[:40], b"\xff" * 40])
def test_bytes_that_are_no_metadata_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedLedgerMetadata):
        decode_ledger_metadata(data)


@pytest.mark.parametrize(
    ("ledger_id", "path"),
    [
        (0, "/00/0000/L0000"),
        (7, "/00/0000/L0007"),
        (1234567890, "/12/3456/L7890"),
        (2147483646, "/21/4748/L3646"),
        (2147483647, "/000/0000/0021/4748/L3647"),
        (2147483648, "/000/0000/0021/4748/L3648"),
        (9223372036854775807, "/922/3372/0368/5477/L5807"),
    ],
)
def test_ledgers_are_where_apache_has_them(ledger_id: int, path: str) -> None:
    assert ledger_path(ledger_id) == "/ledgers" + path


def test_the_parents_of_a_ledger_are_told_deepest_first() -> None:
    assert parents_of(7) == ["/ledgers/00/0000", "/ledgers/00"]


def test_master_keys_are_those_of_apache() -> None:
    assert master_key(b"").hex() == "850bf1071c5e3d8c24235676f8816ae0cbe2f14f"
    assert master_key(b"pw").hex() == "2aa226ba095b6969a64871977693b14671710d76"


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


def test_who_asked_together_hears_of_the_failure_together_and_the_next_begins_anew() -> None:
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
