"""A ledger is made with the quorums that it is asked for, and with the settings' where nothing is asked."""

import pytest

from bookkeeper.ledgers import DEFAULT_QUORUMS, LedgerError, Quorums
from tests.bookkeeper.fake_bookies import Cluster, batch, payloads_of, run
from tests.bookkeeper.repair.underreplication.test_made_without import metadata_of


@pytest.mark.parametrize(
    ("asked", "found"),
    [(DEFAULT_QUORUMS, (2, 2, 2)), (Quorums(3, 2, 1), (3, 2, 1)), (Quorums(4, 3, 2), (4, 3, 2)), (Quorums(1, 1, 1), (1, 1, 1))],
)
def test_each_ledger_by_the_quorums_asked_for(asked: Quorums, found: tuple[int, int, int]) -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, 4)
        client = cluster.client()
        await client.initialise()
        writer = await client.create({}, asked)
        metadata = metadata_of(cluster, writer.ledger_id)
        assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == found
        assert len(metadata.segments[0].bookies) == found[0]
        assert payloads_of(await writer.append(batch(b"m"))) == [b"m"]
        await writer.close()

    run(scenario())


def test_more_bookies_than_there_are_is_an_error() -> None:
    async def scenario() -> None:
        client = Cluster(2, 2, 2, 3).client()
        await client.initialise()
        with pytest.raises(LedgerError):
            await client.create({}, Quorums(4, 2, 2))

    run(scenario())
