"""Ledgers made while a bookie is away: they name it, take entries by an ack quorum, and are marked for autorecovery."""

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import LedgerMetadata, decode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.underreplication.made_without import COOKIES, KEY, made_without
from bookkeeper.repair.underreplication.store import UnderreplicationStore
from metadata.memory import MemoryStore
from tests.bookkeeper.fake_bookies import Cluster, FixedClock, batch, payloads_of, run


async def with_one_away(
    ensemble: int = 3, write: int = 3, ack: int = 2, *, members: int = 3, away: int = 1
) -> tuple[Cluster, BookKeeper, list[str]]:
    """Cluster of so many members; a client, and the bookie that is away."""
    cluster = Cluster(ensemble, write, ack, members)
    store = MemoryStore(FixedClock(), cluster.shared, alone=False)
    names = list(cluster.bookies)
    for name in names:
        await store.put(f"{COOKIES}/{name}", b"")
    for name in names[:away]:
        del cluster.bookies[name]
    client = cluster.client()
    await client.initialise()
    return cluster, client, names[:away]


def metadata_of(cluster: Cluster, ledger_id: int) -> LedgerMetadata:
    found = cluster.shared.tree.get(ledger_path(ledger_id))
    assert found is not None
    return decode_ledger_metadata(found.value)


async def marked(cluster: Cluster, ledger_id: int) -> tuple[str, ...]:
    marks = UnderreplicationStore(MemoryStore(FixedClock(), cluster.shared, alone=False), FixedClock(), "")
    found = await marks.marked(ledger_id)
    return () if found is None else tuple(found.missing_replicas)


def test_a_ledger_is_made_and_written_while_one_of_three_bookies_is_away() -> None:
    async def scenario() -> None:
        cluster, client, away = await with_one_away()
        writer = await client.create({"application": b"pulsar"})
        assert payloads_of(await writer.append(batch(b"m0"))) == [b"m0"]
        metadata = metadata_of(cluster, writer.ledger_id)
        assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == (3, 3, 2)
        assert set(away) < set(metadata.segments[0].bookies)
        assert made_without(metadata.custom_metadata) == tuple(away)
        assert metadata.custom_metadata["application"] == b"pulsar"
        assert not await marked(cluster, writer.ledger_id), "autorecovery would fence its writer"
        await writer.close()
        assert await marked(cluster, writer.ledger_id) == tuple(away)

    run(scenario())


def test_recovery_marks_a_ledger_that_a_dead_writer_made_without_a_bookie() -> None:
    async def scenario() -> None:
        cluster, client, away = await with_one_away()
        writer = await client.create({})
        await writer.append(batch(b"m0"))
        reader = await cluster.client().open(writer.ledger_id)
        assert reader.last_entry_id == 0
        assert await marked(cluster, writer.ledger_id) == tuple(away)

    run(scenario())


def test_an_empty_one_is_not_marked() -> None:
    async def scenario() -> None:
        cluster, client, _ = await with_one_away()
        writer = await client.create({})
        await writer.close()
        assert not await marked(cluster, writer.ledger_id)

    run(scenario())


@pytest.mark.parametrize(
    ("sizes", "members", "away"),
    [((3, 3, 3), 3, 1), ((3, 3, 2), 3, 2), ((3, 2, 2), 3, 1), ((4, 3, 2), 4, 2)],
    ids=["ack quorum of all", "two away", "striped", "striped, two away"],
)
def test_none_is_made_where_an_entry_would_have_no_ack_quorum(sizes: tuple[int, int, int], members: int, away: int) -> None:
    async def scenario() -> None:
        _, client, _ = await with_one_away(*sizes, members=members, away=away)
        with pytest.raises(LedgerError, match="needs"):
            await client.create({})

    run(scenario())


def test_a_bookie_that_left_the_cluster_for_good_is_not_named() -> None:
    async def scenario() -> None:
        cluster, client, away = await with_one_away()
        await MemoryStore(FixedClock(), cluster.shared, alone=False).delete(f"{COOKIES}/{away[0]}")
        with pytest.raises(LedgerError, match="needs 3 bookies, and there are 2"):
            await client.create({})

    run(scenario())


def test_with_enough_bookies_nobody_who_is_away_is_named() -> None:
    async def scenario() -> None:
        cluster, client, away = await with_one_away(members=4)
        writer = await client.create({})
        metadata = metadata_of(cluster, writer.ledger_id)
        assert KEY not in metadata.custom_metadata
        assert not set(away) & set(metadata.segments[0].bookies)

    run(scenario())
