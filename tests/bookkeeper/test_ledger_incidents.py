"""Incidents of Apache's ledger client, each under its number: a test shows that our client does not have it.

Incidents of the bookie are in tests/bookie/test_bookie_incidents.py, of repair in tests/bookkeeper/repair, and others of the
client beside their subject: 1067 in test_recovery_reads_ahead.py, 1591 and 4812 with a metadata store that waits in
test_ledger_ensembles.py, 3005 and 4194 against a naive twin in test_ensemble_change.py.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import LedgerState
from bookkeeper.ledgers import LedgerError, LedgerFenced, LedgerReader, LedgerUnreadable, LedgerWriter
from bookkeeper.write import counted_adds
from tests.bookkeeper.fake_bookies import Cluster, FakeBookie, batch, payloads_of, run, settle
from tests.bookkeeper.write.test_ledger_ensembles import check_copies, members, metadata_of, spare
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

Scenario = Callable[[Cluster, BookKeeper, LedgerWriter], Awaitable[None]]


def on_cluster(scenario: Scenario, sizes: tuple[int, int, int], spares: int = 0) -> None:
    """With a ledger that is open."""

    async def with_writer() -> None:
        cluster = Cluster(*sizes, bookies=sizes[0] + spares)
        client = cluster.client()
        await client.initialise()
        await scenario(cluster, client, await client.create({}))

    run(with_writer())


async def all_of(reader: LedgerReader) -> list[bytes]:
    found: list[bytes] = []
    while len(found) <= reader.last_entry_id:
        found += payloads_of(await reader.read(len(found), 100, 1 << 20))
    return found


def losing_fences(bookie: FakeBookie, count: int) -> None:
    """Bookie that its first fences never reach: the request is lost, and the connection with it."""
    real, lost = bookie.fence, iter(range(count))

    async def fence(ledger_id: int, master_key: bytes) -> bytes:
        if next(lost, None) is not None:
            raise BookieError(BookieCode.ETOOMANYREQUESTS, ledger_id, "the connection was lost")
        return await real(ledger_id, master_key)

    bookie.fence = fence  # type: ignore[method-assign]  # one bookie of the test's own


def delaying_adds(bookie: FakeBookie) -> list[Callable[[], None]]:
    """Bookie whose adds are on their way until these are called, in order."""
    real, on_their_way = bookie.add, list[Callable[[], None]]()

    def add(run: EntryRun, master_key: bytes, *, recovery: bool = False) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        if recovery:
            return real(run, master_key, recovery=True)
        on_their_way.append(lambda: real(run, master_key).add_done_callback(lambda done: copy(done, future)))
        return future

    bookie.add = add  # type: ignore[method-assign]  # one bookie of the test's own
    return on_their_way


def copy(done: "asyncio.Future[None]", to: "asyncio.Future[None]") -> None:
    error = done.exception()
    if error is None:
        to.set_result(None)
    else:
        to.set_exception(error)


def test_bookkeeper_2614_an_add_that_arrives_where_the_fence_was_lost_is_not_acknowledged_after_the_end() -> None:
    """TLA+ (issue 2614). An entry is on one bookie, and on its way to a fenced one and to a third, whose fence was lost.
    Were that one believed without a fence when it says that it has no such entry, two would say so: the end. Then it takes the
    add, and with the first one makes an ack quorum."""

    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        first, second, third = members(cluster, writer.ledger_id)
        await writer.append(batch(b"confirmed"))
        to_second, to_third = delaying_adds(second), delaying_adds(third)
        late = writer.append(batch(b"late"))
        first.failures["read"] = BookieCode.ETOOMANYREQUESTS
        losing_fences(third, 1)
        reader = await cluster.client().open(writer.ledger_id)
        assert third.ledgers[writer.ledger_id].fenced
        to_third[0]()
        await settle()
        to_second[0]()
        with pytest.raises(LedgerFenced):
            await late
        assert reader.last_entry_id == 0

    on_cluster(scenario, (3, 3, 2))


def test_bookkeeper_2615_a_recovery_begins_with_the_last_segment_however_old_the_bookies_think_the_ledger_is() -> None:
    """A new segment whose bookies have nothing yet: the last add confirmed that they tell is before it (-1)."""

    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        for number in range(3):
            await writer.append(batch(b"%d" % number))
        one, two = members(cluster, writer.ledger_id)
        one.failures["add"] = two.failures["add"] = BookieCode.EIO
        for bookie in cluster.all:
            if bookie not in (one, two):
                bookie.hangs.add("add")
        late = writer.append(batch(b"late"))
        await settle()
        segments = metadata_of(cluster, writer.ledger_id).segments
        assert [segment.first_entry_id for segment in segments] == [0, 3]
        for bookie in cluster.all:
            bookie.failures.clear()
            bookie.hangs.clear()
        reader = await cluster.client().open(writer.ledger_id)
        closed = metadata_of(cluster, writer.ledger_id)
        assert reader.last_entry_id == 2
        assert [segment.first_entry_id for segment in closed.segments] == [0, 3]
        assert not any(bookie.recovery_added for bookie in cluster.all), "older segments are not read again"
        assert await all_of(reader) == [b"0", b"1", b"2"]
        late.cancel()

    on_cluster(scenario, (2, 2, 2), spares=2)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2), (2, 2, 2)])
def test_bookkeeper_2612_and_4812_an_add_that_a_new_bookie_takes_after_the_recovery_is_not_acknowledged(
    sizes: tuple[int, int, int],
) -> None:
    """The old writer's change of the ensemble comes after the recovery has closed the ledger below what it adds."""

    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        await writer.append(batch(b"first"))
        bookies, other = members(cluster, writer.ledger_id), spare(cluster, writer.ledger_id)
        reader = await cluster.client().open(writer.ledger_id)
        for bookie in bookies:
            bookie.failures["add"] = BookieCode.EIO  # it hears of no fence
        with pytest.raises(LedgerError):
            await writer.append(batch(b"late"))
        assert other.added == []
        closed = metadata_of(cluster, writer.ledger_id)
        assert (closed.state, closed.last_entry_id, reader.last_entry_id) == (LedgerState.CLOSED, 0, 0)

    on_cluster(scenario, sizes, spares=1)


@pytest.mark.parametrize(
    "code", [BookieCode.EIO, BookieCode.EUNKNOWNLEDGERSTATE, BookieCode.ETOOMANYREQUESTS, BookieCode.EBADREQ]
)
def test_bookkeeper_2908_what_cannot_be_read_is_not_the_end_of_a_ledger(code: BookieCode) -> None:
    """Damage (EIO), limbo after an unclean start (EUNKNOWNLEDGERSTATE, BP-46), a bookie that is away."""

    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        await asyncio.gather(*(writer.append(batch(b"%d" % number)) for number in range(4)))
        bookies = members(cluster, writer.ledger_id)
        bookies[0].lose(writer.ledger_id, 3)
        for bookie in bookies[1:]:
            bookie.failures["read"] = code
        with pytest.raises(LedgerUnreadable, match="neither readable nor certainly absent"):
            await cluster.client().open(writer.ledger_id)
        assert metadata_of(cluster, writer.ledger_id).state == LedgerState.IN_RECOVERY
        for bookie in bookies[1:]:
            bookie.failures.clear()
        assert await all_of(await cluster.client().open(writer.ledger_id)) == [b"0", b"1", b"2", b"3"]

    on_cluster(scenario, (3, 3, 2))


def test_bookkeeper_3005_and_4097_acknowledged_entries_are_where_the_metadata_says_after_a_change_with_much_under_way() -> None:
    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        for bookie in cluster.all:
            bookie.hold = True
        appended = [writer.append(batch(b"%d" % number)) for number in range(30)]
        one, two, _ = members(cluster, writer.ledger_id)
        one.release(20)
        two.release(10)
        await settle()
        assert writer.last_add_confirmed == 9
        one.failures["add"] = BookieCode.EIO
        one.hold = False
        appended.append(writer.append(batch(b"30")))
        await settle()
        assert len(metadata_of(cluster, writer.ledger_id).segments) == 2
        two.release(10)
        await settle()
        assert writer.last_add_confirmed == 9, "what the first one acknowledged is not on two that the metadata names"
        for bookie in cluster.all:
            bookie.hold = False
            bookie.release()
        await asyncio.gather(*appended)
        metadata = metadata_of(cluster, writer.ledger_id)
        check_copies(cluster, writer.ledger_id, dataclasses.replace(metadata, last_entry_id=30))
        await writer.close()

    on_cluster(scenario, (3, 3, 2), spares=1)


@pytest.mark.parametrize("seed", range(20))
def test_bookkeeper_4651_segments_stay_in_order_and_name_nobody_twice_however_often_bookies_fail(seed: int) -> None:
    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        rng = Random(seed)
        appended = []
        for number in range(60):
            for bookie in cluster.all:
                bookie.failures.clear()
            for bookie in rng.sample(cluster.all, rng.randrange(3)):
                bookie.failures["add"] = rng.choice([BookieCode.EIO, BookieCode.EREADONLY, BookieCode.ETOOMANYREQUESTS])
            appended.append(writer.append(batch(b"%d" % number)))
            if rng.random() < 0.7:
                await settle()
        await asyncio.gather(*appended, return_exceptions=True)
        metadata = metadata_of(cluster, writer.ledger_id)
        firsts = [segment.first_entry_id for segment in metadata.segments]
        assert firsts == sorted(set(firsts))
        assert len(firsts) > 3, "it was changed often"
        assert all(len(set(segment.bookies)) == 3 for segment in metadata.segments)
        check_copies(cluster, writer.ledger_id, dataclasses.replace(metadata, last_entry_id=writer.last_add_confirmed))

    on_cluster(scenario, (3, 3, 2), spares=4)


def test_bookkeeper_4163_a_recovery_writes_to_bookies_on_which_it_fenced_the_ledger() -> None:
    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        bookies = members(cluster, writer.ledger_id)
        for bookie in bookies[1:]:
            bookie.hangs.add("add")
        unconfirmed = writer.append(batch(b"tail"))
        for bookie in bookies:
            bookie.hangs.clear()
        reader = await cluster.client().open(writer.ledger_id)
        assert all(bookie.ledgers[writer.ledger_id].fenced for bookie in bookies)
        assert all(0 in bookie.ledgers[writer.ledger_id].entries for bookie in bookies)
        assert await all_of(reader) == [b"tail"]
        unconfirmed.cancel()

    on_cluster(scenario, (3, 3, 2))


def test_pulsar_22906_and_bookkeeper_4196_every_copy_of_an_entry_has_the_same_bytes() -> None:
    """Also one that was sent again to another bookie, after more had been confirmed, and one that a recovery wrote."""

    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        one, two, _ = members(cluster, writer.ledger_id)
        for number in range(5):
            await writer.append(batch(b"%d" % number))
        two.hold = True
        one.hold = True
        appended = [writer.append(batch(b"%d" % number)) for number in range(5, 10)]
        one.release(2)
        one.failures["add"] = BookieCode.EIO
        appended.append(writer.append(batch(b"10")))
        await settle()
        for bookie in (one, two):
            bookie.hold = False
            bookie.release()
        await asyncio.gather(*appended)
        await cluster.client().open(writer.ledger_id)
        copies: dict[int, set[bytes]] = {}
        for bookie in cluster.all:
            for entry_id, entry in bookie.ledgers[writer.ledger_id].entries.items():
                copies.setdefault(entry_id, set()).add(entry)
        assert sorted(copies) == list(range(11))
        assert [len(different) for different in copies.values()] == [1] * 11

    on_cluster(scenario, (3, 3, 2), spares=1)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2), (2, 2, 1)])
def test_bookkeeper_3466_an_empty_ledger_is_closed_while_a_bookie_is_away(sizes: tuple[int, int, int]) -> None:
    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        away = members(cluster, writer.ledger_id)[0]
        away.failures |= dict.fromkeys(("fence", "read", "add"), BookieCode.ETOOMANYREQUESTS)
        if sizes == (2, 2, 1):
            with pytest.raises(LedgerError, match="too few bookies could be fenced"):
                await cluster.client().open(writer.ledger_id)
            away.failures.clear()
        reader = await cluster.client().open(writer.ledger_id)
        assert (reader.last_entry_id, reader.length_bytes) == (-1, 0)
        away.failures.clear()
        with pytest.raises(LedgerFenced):
            await writer.append(batch(b"late"))

    on_cluster(scenario, sizes)


def test_bookkeeper_3408_and_2269_a_bookie_that_takes_nothing_is_not_sent_without_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counted_adds, "OUTSTANDING_BYTES_MAX", 10_000)

    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        for bookie in cluster.all:
            bookie.hold = True
        appended = [writer.append(batch(bytes(1000))) for _ in range(100)]
        await settle()
        for bookie in cluster.all:
            assert sum(run.size_bytes for run in bookie.added) <= 10_000
            bookie.hold = False
            bookie.release()
        await asyncio.gather(*appended)
        assert copies_everywhere(cluster, writer) == 100

    on_cluster(scenario, (3, 3, 3))


def copies_everywhere(cluster: Cluster, writer: LedgerWriter) -> int:
    return min(len(bookie.ledgers[writer.ledger_id].entries) for bookie in cluster.all)


def test_bookkeeper_719_two_clients_that_recover_and_write_the_same_entry_again_agree() -> None:
    """Version 2 names no request: several adds of one entry are under way at once."""

    async def scenario(cluster: Cluster, client: BookKeeper, writer: LedgerWriter) -> None:
        for bookie in members(cluster, writer.ledger_id)[1:]:
            bookie.hangs.add("add")
        tail: list[asyncio.Future[EntryRun]] = [writer.append(batch(b"%d" % number)) for number in range(20)]
        for bookie in cluster.all:
            bookie.hangs.clear()
        readers = await asyncio.gather(*(cluster.client().open(writer.ledger_id) for _ in range(4)))
        assert {(reader.last_entry_id, reader.length_bytes) for reader in readers} == {(19, 30)}
        for future in tail:
            future.cancel()

    on_cluster(scenario, (3, 3, 2))
