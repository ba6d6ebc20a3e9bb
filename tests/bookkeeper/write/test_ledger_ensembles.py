"""A writer and a recovery whose bookies fail while there are others: what the metadata says, and what was sent where."""

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import (
    LedgerMetadata,
    LedgerState,
    decode_ledger_metadata,
)
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerError, LedgerFenced
from bookkeeper.settings import BookKeeperSettings
from bookkeeper.write.replicated_adds import ReplicatedAdds
from metadata.memory import MemoryStore
from metadata.store import ANY_VERSION, OutcomeUnknown, Stat
from tests.bookkeeper.fake_bookies import Cluster, FakeBookie, FixedClock, batch, payloads_of, run, settle
from tests.invariants import checked_after_each_step
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

checked_machines = checked_after_each_step(ReplicatedAdds)


def metadata_of(cluster: Cluster, ledger_id: int) -> LedgerMetadata:
    found = cluster.shared.tree.get(ledger_path(ledger_id))
    assert found is not None
    return decode_ledger_metadata(found.value)


def members(cluster: Cluster, ledger_id: int) -> list[FakeBookie]:
    """Members of the last ensemble, in its order."""
    return [cluster.bookies[name] for name in metadata_of(cluster, ledger_id).segments[-1].bookies]


def spare(cluster: Cluster, ledger_id: int) -> FakeBookie:
    names = metadata_of(cluster, ledger_id).segments[-1].bookies
    (found,) = (bookie for name, bookie in cluster.bookies.items() if name not in names)
    return found


class Held(MemoryStore):
    """A store whose puts to a ledger wait, or whose answers are lost."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(FixedClock(), cluster.shared, alone=False)
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.lost_answers = 0

    async def put(
        self,
        path: str,
        value: bytes,
        expected_version: int = ANY_VERSION,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> Stat:
        self.waiting += 1
        await self.gate.wait()
        stat = await super().put(path, value, expected_version, ephemeral=ephemeral, sequential=sequential)
        if self.lost_answers:
            self.lost_answers -= 1
            raise OutcomeUnknown(path)
        return stat


def test_a_bookie_that_fails_is_replaced_from_the_first_unconfirmed_entry_on_and_the_ledger_reads_whole() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2, bookies=4)
        writer = await cluster.writer()
        await writer.append(batch(b"0", b"1"))
        await settle()
        two, other = members(cluster, writer.ledger_id)[1], spare(cluster, writer.ledger_id)
        two.failures["add"] = BookieCode.EIO
        for number in range(2, 6):
            await writer.append(batch(b"%d" % number))
        await settle()
        first, second = metadata_of(cluster, writer.ledger_id).segments
        assert (first.first_entry_id, second.first_entry_id) == (0, 2) or second.first_entry_id == 3
        assert [one == other for one, other in zip(first.bookies, second.bookies, strict=True)] == [True, False, True]
        assert sorted(other.ledgers[writer.ledger_id].entries) == list(range(second.first_entry_id, 6))
        await writer.close()
        reader = await cluster.client().open(writer.ledger_id)
        read: list[bytes] = []
        while len(read) < 6:
            read += payloads_of(await reader.read(len(read), 10, 1 << 20))
        assert read == [b"%d" % number for number in range(6)]

    run(scenario())


def test_incident_1591_nothing_is_sent_to_the_new_bookie_or_confirmed_before_the_metadata_names_it() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 1, bookies=3)
        store = Held(cluster)
        writer = await cluster.writer(store)
        one, two = members(cluster, writer.ledger_id)
        other = spare(cluster, writer.ledger_id)
        one.failures["add"] = BookieCode.EIO
        two.hold = True
        store.gate.clear()
        appended = [writer.append(batch(b"%d" % number)) for number in range(3)]
        await settle()
        two.release()
        await settle()
        assert other.added == []
        assert not any(future.done() for future in appended)
        assert writer.last_add_confirmed == -1
        store.gate.set()
        await asyncio.gather(*appended)
        await settle()
        assert sorted(other.ledgers[writer.ledger_id].entries) == [0, 1, 2]
        (segment,) = metadata_of(cluster, writer.ledger_id).segments
        assert segment.first_entry_id == 0, "nothing was confirmed: the segment was replaced"
        await writer.close()

    run(scenario())


@pytest.mark.parametrize("state", ["in recovery", "closed"])
def test_incident_4812_a_writer_whose_ledger_was_recovered_meanwhile_is_fenced_and_writes_to_no_new_bookie(state: str) -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, bookies=3)
        writer = await cluster.writer()
        await writer.append(batch(b"a"))
        one, two = members(cluster, writer.ledger_id)
        other = spare(cluster, writer.ledger_id)
        if state == "in recovery":
            one.failures["read"] = two.failures["read"] = BookieCode.EIO
            with pytest.raises(LedgerError):
                await cluster.client().open(writer.ledger_id)
        else:
            await cluster.client().open(writer.ledger_id)
        one.failures["add"] = two.failures["add"] = BookieCode.EIO  # not even the fence is told
        with pytest.raises(LedgerFenced):
            await writer.append(batch(b"late"))
        assert other.added == []
        expected = LedgerState.IN_RECOVERY if state == "in recovery" else LedgerState.CLOSED
        assert metadata_of(cluster, writer.ledger_id).state == expected

    run(scenario())


def test_a_change_whose_answer_was_lost_counts_when_the_metadata_says_so() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, bookies=3)
        store = Held(cluster)
        writer = await cluster.writer(store)
        members(cluster, writer.ledger_id)[0].failures["add"] = BookieCode.EIO
        store.lost_answers = 1
        await writer.append(batch(b"a"))
        await writer.close()
        assert len(metadata_of(cluster, writer.ledger_id).segments) == 1
        assert (await cluster.client().open(writer.ledger_id)).last_entry_id == 0

    run(scenario())


def test_a_replacement_that_fails_too_is_replaced_and_when_all_have_failed_the_writer_says_so() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, bookies=5)
        writer = await cluster.writer()
        await writer.append(batch(b"a"))
        names = metadata_of(cluster, writer.ledger_id).segments[0].bookies
        for name, bookie in cluster.bookies.items():
            if name not in names:
                bookie.failures["add"] = BookieCode.EREADONLY
        cluster.bookies[names[1]].failures["add"] = BookieCode.EIO
        with pytest.raises(LedgerError, match="entry 1"):
            await writer.append(batch(b"b"))
        assert metadata_of(cluster, writer.ledger_id).state == LedgerState.OPEN
        for bookie in cluster.all:
            bookie.failures.clear()
        reader = await cluster.client().open(writer.ledger_id)
        assert reader.last_entry_id in (0, 1)
        assert payloads_of(await reader.read(0, 1, 100)) == [b"a"]

    run(scenario())


def refusing_at_once(bookie: FakeBookie) -> None:
    """Client of a bookie that is known to be down: it fails before the adding turn has ended."""

    def add(run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(BookieError(BookieCode.EIO, run.ledger_id, f"down, {recovery=}"))
        return future

    bookie.add = add  # type: ignore[method-assign]


def test_a_replacement_that_fails_while_the_change_to_it_ends_is_replaced_too() -> None:
    """Without that, nothing of the ledger was confirmed any more: a broker did not stop (benchmarks/cluster/faults.py)."""

    async def scenario() -> None:
        cluster = Cluster(3, 3, 2, bookies=6)
        writer = await cluster.writer()
        await writer.append(batch(b"a"))
        first, *_ = names = metadata_of(cluster, writer.ledger_id).segments[0].bookies
        for name, bookie in cluster.bookies.items():
            if name not in names:
                refusing_at_once(bookie)
        cluster.bookies[first].failures["add"] = BookieCode.EIO
        await writer.append(batch(b"b"))
        await writer.append(batch(b"c"))
        await writer.close()
        assert metadata_of(cluster, writer.ledger_id).last_entry_id == 2

    run(scenario())


def test_a_bookie_that_failed_may_be_taken_again_once_an_entry_was_confirmed() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, bookies=3)
        writer = await cluster.writer()
        first, other = members(cluster, writer.ledger_id)[0], spare(cluster, writer.ledger_id)
        first.failures["add"] = BookieCode.EIO
        await writer.append(batch(b"a"))
        first.failures.clear()
        other.failures["add"] = BookieCode.EIO
        await writer.append(batch(b"b"))
        assert first in members(cluster, writer.ledger_id)
        await writer.close()

    run(scenario())


def test_an_ensemble_that_cannot_be_filled_loses_only_what_has_no_replacement() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2, bookies=4)
        writer = await cluster.writer()
        one, two, _ = members(cluster, writer.ledger_id)
        one.failures["add"] = two.failures["add"] = BookieCode.EIO
        for number in range(3):
            await writer.append(batch(b"%d" % number))
        await writer.close()
        assert (await cluster.client().open(writer.ledger_id)).last_entry_id == 2

    run(scenario())


def test_a_delayed_change_bears_a_failed_bookie_while_the_quorum_stands() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2, bookies=5)
        settings = BookKeeperSettings(3, 3, 2, bookkeeper_delay_ensemble_change=True)
        client = BookKeeper(cluster.bookies, MemoryStore(FixedClock(), cluster.shared, alone=False), settings, Random(1))
        await client.initialise()
        writer = await client.create({})
        one, two, _ = members(cluster, writer.ledger_id)
        one.failures["add"] = BookieCode.EIO
        await writer.append(batch(b"a"))
        await settle()
        assert len(metadata_of(cluster, writer.ledger_id).segments) == 1
        two.failures["add"] = BookieCode.EIO
        await writer.append(batch(b"b"))
        segments = metadata_of(cluster, writer.ledger_id).segments
        assert [segment.first_entry_id for segment in segments] == [0, 1]
        assert len(set(segments[0].bookies) & set(segments[1].bookies)) == 1
        await writer.close()

    run(scenario())


def test_a_close_waits_for_the_change_of_an_ensemble_that_is_under_way() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 1, bookies=3)
        store = Held(cluster)
        writer = await cluster.writer(store)
        members(cluster, writer.ledger_id)[0].failures["add"] = BookieCode.EIO
        store.gate.clear()
        waiting = store.waiting
        appended = writer.append(batch(b"a"))
        await settle()
        assert store.waiting == waiting + 1
        closing = asyncio.ensure_future(writer.close())
        await settle()
        assert not closing.done()
        store.gate.set()
        await closing
        assert appended.done()
        assert metadata_of(cluster, writer.ledger_id).state == LedgerState.CLOSED

    run(scenario())


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 3, 3), (3, 2, 2)])
def test_recovery_over_an_ensemble_that_lost_a_bookie_stores_the_tail_at_another_one(sizes: tuple[int, int, int]) -> None:
    async def scenario() -> None:
        cluster = Cluster(*sizes, bookies=sizes[0] + 1)
        writer = await cluster.writer()
        for bookie in cluster.all:
            bookie.hold = True
        unconfirmed = [writer.append(batch(b"%d" % number)) for number in range(4)]
        for bookie in cluster.all:
            bookie.hold = False
        lost = metadata_of(cluster, writer.ledger_id).segments[0].bookies[-1]
        rest = {name: bookie for name, bookie in cluster.bookies.items() if name != lost}
        cluster.bookies.clear()
        cluster.bookies.update(rest)
        reader = await cluster.client().open(writer.ledger_id)
        closed = metadata_of(cluster, writer.ledger_id)
        assert closed.state == LedgerState.CLOSED
        assert lost not in closed.segments[-1].bookies
        assert reader.last_entry_id == 3
        check_copies(cluster, writer.ledger_id, closed)
        for bookie in cluster.all:
            bookie.release()
        with pytest.raises(LedgerFenced):
            await writer.append(batch(b"late"))
        await asyncio.gather(*unconfirmed, return_exceptions=True)

    run(scenario())


def check_copies(cluster: Cluster, ledger_id: int, metadata: LedgerMetadata) -> None:
    for entry_id in range(metadata.last_entry_id + 1):
        ensemble: Sequence[str] = [each for each in metadata.segments if each.first_entry_id <= entry_id][-1].bookies
        names = [ensemble[(entry_id + step) % metadata.ensemble_size] for step in range(metadata.write_quorum)]
        copies = [
            name for name in names if name in cluster.bookies and entry_id in cluster.bookies[name].ledgers[ledger_id].entries
        ]
        assert len(copies) >= metadata.ack_quorum


def test_a_recovery_that_loses_the_race_changes_nothing_with_the_bookies_that_it_took() -> None:
    """Two recover at once over a lost bookie: the second to close finds the first one's end and ensembles."""

    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, bookies=4)
        writer = await cluster.writer()
        for bookie in cluster.all:
            bookie.hold = True
        unconfirmed = writer.append(batch(b"a"))
        for bookie in cluster.all:
            bookie.hold = False
        del cluster.bookies[metadata_of(cluster, writer.ledger_id).segments[0].bookies[0]]
        readers = await asyncio.gather(*(cluster.client().open(writer.ledger_id) for _ in range(3)))
        assert {reader.last_entry_id for reader in readers} == {0}
        check_copies(cluster, writer.ledger_id, metadata_of(cluster, writer.ledger_id))
        for reader in readers:
            assert payloads_of(await reader.read(0, 1, 100)) == [b"a"]
        unconfirmed.cancel()

    run(scenario())
