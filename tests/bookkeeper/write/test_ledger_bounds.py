"""Bounds of a writer: appends under way, time of an append, and looks for missing bookies."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import LedgerState
from bookkeeper.ledgers import LedgerBusy, LedgerClosed, LedgerError
from bookkeeper.placement.candidates import Candidates
from bookkeeper.write import counted_adds, replicated_adds
from bookkeeper.write.replicated_adds import ReplicatedAdds
from metadata.memory import MemoryStore
from tests.bookkeeper.fake_bookies import Cluster, FakeBookie, FixedClock, batch, payloads_of, run, settle
from tests.bookkeeper.write.test_ledger_ensembles import members, metadata_of
from tests.invariants import checked_after_each_step
from tests.simulation.worlds import run as on_loop
from wire.bookie.codes import BookieCode

checked_machines = checked_after_each_step(ReplicatedAdds)


async def client_of(cluster: Cluster, **changes: Any) -> BookKeeper:
    store = MemoryStore(FixedClock(), cluster.shared, alone=False)
    settings = dataclasses.replace(cluster.settings, **changes)
    client = BookKeeper(cluster.bookies, store, settings, Random(1))
    await client.initialise()
    return client


def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Filled with a bookie for each search for one to replace it."""
    seen: list[str] = []
    real: Callable[..., str | None] = Candidates.replacement

    def counted(self: Candidates, ensemble: tuple[str, ...], index: int, *rest: object) -> str | None:
        seen.append(ensemble[index])
        return real(self, ensemble, index, *rest)

    monkeypatch.setattr(Candidates, "replacement", counted)
    return seen


def test_appends_to_a_failing_bookie_without_a_spare_do_not_each_search_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = searches(monkeypatch)

    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        client = await client_of(cluster)
        writer = await client.create({})
        members(cluster, writer.ledger_id)[0].failures["add"] = BookieCode.EIO
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < began + 100:
            await writer.append(batch(b"a"))
            await asyncio.sleep(0.1)
        assert 5 <= len(seen) <= 9, "after 1 s, 2 s, 4 s ... of a thousand appends"
        cluster.bookies["spare:3181"] = FakeBookie()
        while "spare:3181" not in metadata_of(cluster, writer.ledger_id).segments[-1].bookies:
            await writer.append(batch(b"a"))
            await asyncio.sleep(0.1)
        assert asyncio.get_running_loop().time() < began + 170
        await writer.close()
        await client.close()

    on_loop(lambda _: scenario())


def test_a_quorum_that_breaks_is_healed_by_a_spare_that_came_while_nobody_was_looked_for() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        client = await client_of(cluster)
        writer = await client.create({})
        one, two, _ = members(cluster, writer.ledger_id)
        one.failures["add"] = BookieCode.EIO
        await writer.append(batch(b"a"))
        await settle()
        cluster.bookies["spare:3181"] = FakeBookie()
        two.failures["add"] = BookieCode.EIO
        await writer.append(batch(b"b"))
        await writer.close()
        await client.close()

    run(scenario())


def with_outstanding(monkeypatch: pytest.MonkeyPatch, entries: int, scenario: Callable[[], Awaitable[None]]) -> None:
    monkeypatch.setattr(counted_adds, "OUTSTANDING_ENTRIES_MAX", entries)
    run(scenario())


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 3, 2), (3, 2, 2)])
def test_only_so_many_entries_are_with_the_bookies_before_they_are_confirmed(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int]
) -> None:
    async def scenario() -> None:
        cluster = Cluster(*sizes)
        client = await client_of(cluster)
        writer = await client.create({})
        for bookie in cluster.all:
            bookie.hold = True
        appended = [writer.append(batch(b"%d" % number, b"-")) for number in range(50)]
        large = writer.append(batch(*[b"l"] * 30))
        order: list[int] = []
        for number, future in enumerate([*appended, large]):
            future.add_done_callback(lambda _, number=number: order.append(number))  # type: ignore[misc]  # a default argument
        while not large.done():
            held = {run.first_entry_id + at for bookie in cluster.all for run in bookie.added for at in range(run.count)}
            assert len([each for each in held if each > writer.last_add_confirmed]) <= 30
            for bookie in cluster.all:
                bookie.release(1)
            await settle()
        assert order == list(range(51))
        for bookie in cluster.all:
            bookie.hold = False
        await writer.close()
        reader = await client.open(writer.ledger_id)
        assert reader.last_entry_id == 129
        assert payloads_of(await reader.read(98, 2, 1000))[0] == b"49"
        await client.close()

    with_outstanding(monkeypatch, 10, scenario)


def test_those_that_wait_are_sent_to_the_new_ensemble_when_one_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2, bookies=3)
        client = await client_of(cluster)
        writer = await client.create({})
        members(cluster, writer.ledger_id)[0].failures["add"] = BookieCode.EIO
        await asyncio.gather(*(writer.append(batch(b"%d" % number)) for number in range(50)))
        await writer.close()
        reader = await client.open(writer.ledger_id)
        assert payloads_of(await reader.read(0, 50, 10_000)) == [b"%d" % number for number in range(50)]
        await client.close()

    with_outstanding(monkeypatch, 10, scenario)


def test_an_append_beyond_all_that_may_wait_is_refused_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicated_adds, "WAITING_RUNS_MAX", 3)

    async def scenario() -> None:
        cluster = Cluster()
        client = await client_of(cluster)
        writer = await client.create({})
        cluster.all[0].hold = True
        appended = [writer.append(batch(b"%d" % number)) for number in range(4)]
        with pytest.raises(LedgerBusy):
            await writer.append(batch(b"refused"))
        cluster.all[0].hold = False
        cluster.all[0].release()
        await asyncio.gather(*appended)
        assert (await writer.append(batch(b"4"))).first_entry_id == 4
        await client.close()

    with_outstanding(monkeypatch, 1, scenario)


@pytest.mark.parametrize(
    ("way", "limits"),
    [
        ("hangs", {"bookkeeper_add_entry_quorum_timeout_sec": 5}),
        ("slow", {"bookkeeper_add_entry_quorum_timeout_sec": 5, "managed_ledger_add_entry_timeout_seconds": 9}),
        ("hangs", {"managed_ledger_add_entry_timeout_seconds": 5}),
    ],
)
def test_an_append_that_no_quorum_takes_in_time_ends_the_writer_and_not_the_ledger(way: str, limits: dict[str, int]) -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 2)
        client = await client_of(cluster, **limits)
        writer = await client.create({})
        loop = asyncio.get_running_loop()
        for _ in range(10):
            await writer.append(batch(b"a"))
            await asyncio.sleep(2)
        if way == "hangs":
            cluster.all[0].hangs.add("add")
        else:
            cluster.all[0].hold = True
        began = loop.time()
        with pytest.raises(LedgerError, match=r"entry 10.*no ack quorum in 5 s \(bookkeeper_addEntryQuorumTimeoutSec, "):
            await writer.append(batch(b"late"))
        assert 5 <= loop.time() - began < 5.1
        with pytest.raises(LedgerClosed):
            await writer.append(batch(b"later"))
        assert metadata_of(cluster, writer.ledger_id).state == LedgerState.OPEN
        cluster.all[0].hangs.clear()
        cluster.all[0].hold = False
        reader = await client.open(writer.ledger_id)
        assert reader.last_entry_id in (9, 10)
        await client.close()

    on_loop(lambda _: scenario())
