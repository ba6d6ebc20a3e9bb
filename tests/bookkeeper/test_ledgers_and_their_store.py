"""A ledger client whose metadata store is away, loses answers, or says that another process has moved the copies."""

from dataclasses import replace
from random import Random

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import Segment, decode_ledger_metadata, encode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerError, LedgerUnreadable
from metadata.memory import MemoryStore
from metadata.store import ANY_VERSION, BadVersion, MetadataError, Stat, StoreClosed, StoreUnavailable
from tests.bookkeeper.fake_bookies import Cluster, FixedClock, batch, payloads_of, run
from tests.bookkeeper.write.test_ledger_ensembles import Held, members, metadata_of
from wire.bookie.codes import BookieCode


class Refusing(Held):
    """Puts fail, so many of them."""

    def __init__(self, cluster: Cluster, failure: type[MetadataError]) -> None:
        super().__init__(cluster)
        self.failure = failure
        self.refusals = 0

    async def put(
        self,
        path: str,
        value: bytes,
        expected_version: int = ANY_VERSION,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> Stat:
        if self.refusals:
            self.refusals -= 1
            raise self.failure(path)
        return await super().put(path, value, expected_version, ephemeral=ephemeral, sequential=sequential)


@pytest.mark.parametrize(
    ("failure", "refusals", "error"),
    [
        (BadVersion, 1000, "metadata changed"),
        (StoreUnavailable, 1000, "/ledgers/00"),
        (StoreUnavailable, 2, ""),
        (StoreClosed, 1, "/ledgers/00"),
    ],
)
def test_a_change_waits_for_a_store_that_is_away_for_a_while_and_what_it_refuses_fails_the_writer(
    failure: type[MetadataError], refusals: int, error: str
) -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, bookies=3)
        store = Refusing(cluster, failure)
        writer = await cluster.writer(store)
        members(cluster, writer.ledger_id)[0].failures["add"] = BookieCode.EIO
        store.refusals = refusals
        appended = writer.append(batch(b"a"))
        if not error:
            await appended
            return
        with pytest.raises(LedgerError, match=error):
            await appended

    run(scenario())


def test_a_ledger_whose_making_was_not_answered_is_known_by_its_token() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        store = Held(cluster)
        client = BookKeeper(cluster.bookies, store, cluster.settings, Random(1))
        await client.initialise()
        store.lost_answers = 1
        writer = await client.create({})
        await writer.append(batch(b"a"))
        await writer.close()
        assert (await cluster.client().open(writer.ledger_id)).last_entry_id == 0
        assert cluster.shared.tree.children("/ledgers/00/0000") == [f"L{writer.ledger_id:04d}"], "none was left behind"
        await client.close()

    run(scenario())


@pytest.mark.parametrize("is_closed", [True, False])
def test_entries_whose_copies_a_repair_has_moved_are_found_by_those_who_opened_the_ledger_before(is_closed: bool) -> None:
    async def scenario() -> None:
        cluster = Cluster(1, 1, 1, bookies=2)
        writer = await cluster.writer()
        await writer.append(batch(b"a"))
        if is_closed:
            await writer.close()
        reader = await cluster.client().open(writer.ledger_id) if is_closed else writer
        (old,) = metadata_of(cluster, writer.ledger_id).segments[0].bookies
        (new,) = cluster.bookies.keys() - {old}
        found = cluster.shared.tree.get(ledger_path(writer.ledger_id))
        assert found is not None
        cluster.bookies[new].ledgers = cluster.bookies.pop(old).ledgers
        with pytest.raises(LedgerUnreadable):
            await reader.read(0, 1, 100)
        moved = replace(decode_ledger_metadata(found.value), segments=(Segment(0, (new,)),))
        await client_store(cluster).put(ledger_path(writer.ledger_id), encode_ledger_metadata(moved))
        assert payloads_of(await reader.read(0, 1, 100)) == [b"a"]
        await client_store(cluster).delete(ledger_path(writer.ledger_id))
        cluster.bookies[new].lose(writer.ledger_id, 0)
        with pytest.raises(LedgerUnreadable):
            await reader.read(0, 1, 100)

    run(scenario())


def client_store(cluster: Cluster) -> MemoryStore:
    return MemoryStore(FixedClock(), cluster.shared, alone=False)
