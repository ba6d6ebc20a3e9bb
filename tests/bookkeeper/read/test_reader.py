"""Replicas asked for an entry: the first, the time of the next, and those left alone."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.client import BookKeeper, ClosedLedger
from bookkeeper.ledgers import EntryLost, LedgerReader, LedgerUnreadable, LedgerWriter
from bookkeeper.read.reader import EntryReader, ReadPolicy
from bookkeeper.read.replica_read import ReplicaRead, read_sequence
from metadata.memory import MemoryStore
from tests.bookkeeper.fake_bookies import Cluster, FakeBookie, FixedClock, batch, payloads_of, run
from tests.bookkeeper.write.test_ledger_ensembles import metadata_of
from tests.invariants import checked_after_each_step
from tests.simulation.worlds import run as on_loop
from wire.bookie.codes import BookieCode
from wire.run import EntryRun

checked_machines = checked_after_each_step(ReplicaRead)


@given(st.lists(st.sampled_from(["late", "fail"]), max_size=20), st.integers(1, 5))
def test_a_read_asks_everybody_at_most_once_and_is_over_when_all_have_failed(steps: list[str], count: int) -> None:
    read = ReplicaRead(range(count))
    asked = list(read.start())
    open_ = list(asked)
    for step in steps:
        if step == "late":
            new = read.on_late()
        elif open_:
            new = read.on_failed(open_.pop(0), "no", is_lost=False)
        else:
            break
        asked += new
        open_ += new
        assert open_ or read.is_over, "somebody is asked as long as there is anybody"
    assert asked == list(range(len(asked)))


def test_the_order_of_a_read_begins_at_the_sticky_index_and_ends_with_the_doubtful() -> None:
    assert read_sequence([1, 2, 0], None) == [1, 2, 0]
    assert read_sequence([1, 2, 0], 0) == [0, 1, 2]
    assert read_sequence([1, 2, 0], 0, [0, 1]) == [2, 0, 1]


class Counting(FakeBookie):
    """Counts its reads."""

    reads: ClassVar["Counter[FakeBookie]"] = Counter()

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        self.reads[self] += 1
        return await super().read(ledger_id, first_entry_id, count_max, bytes_max)


async def written(cluster: Cluster, policy: ReadPolicy) -> tuple[EntryReader, list[Counting]]:
    """Ten entries, each a run, on counting bookies in the order of the ensemble."""
    Counting.reads = Counter()
    cluster.bookies.update({name: Counting() for name in cluster.bookies})
    client = cluster.client()
    await client.initialise()
    writer = await client.create({})
    for number in range(10):
        await writer.append(batch(b"%d" % number))
    await writer.close()
    await client.close()
    metadata = metadata_of(cluster, writer.ledger_id)
    ensemble = [cluster.bookies[name] for name in metadata.segments[0].bookies]
    return EntryReader(writer.ledger_id, metadata, cluster.bookies, policy), [
        bookie for bookie in ensemble if isinstance(bookie, Counting)
    ]


def test_sticky_reads_stay_with_one_bookie_until_it_fails() -> None:
    async def scenario() -> None:
        reader, ensemble = await written(Cluster(3, 3, 2), ReadPolicy(1))
        for number in range(5):
            assert payloads_of(await reader.read(number, 1, 100)) == [b"%d" % number]
        assert Counting.reads == {ensemble[1]: 5}
        ensemble[1].failures["read"] = BookieCode.EIO
        for number in range(5):
            assert payloads_of(await reader.read(number, 1, 100)) == [b"%d" % number]
        assert Counting.reads == {ensemble[1]: 6, ensemble[2]: 5}

    run(scenario())


def test_a_speculative_read_takes_the_first_answer_and_leaves_a_hanging_bookie_behind() -> None:
    async def scenario() -> None:
        reader, ensemble = await written(Cluster(3, 3, 2), ReadPolicy(0, speculative_seconds=0.01))
        ensemble[0].hangs.add("read")
        assert payloads_of(await reader.read(3, 1, 100)) == [b"3"]
        ensemble[1].failures["read"] = BookieCode.EIO  # beside one that hangs
        assert payloads_of(await reader.read(3, 1, 100)) == [b"3"]
        ensemble[0].hangs.clear()
        for bookie in ensemble:
            bookie.failures["read"] = BookieCode.ETOOMANYREQUESTS
        with pytest.raises(LedgerUnreadable):
            await reader.read(3, 1, 100)
        assert len(asyncio.all_tasks()) == 1, "nothing is left running"

    run(scenario())


@pytest.mark.parametrize("speculative_seconds", [0.0, 0.5])
def test_a_read_that_nobody_answers_in_time_fails_says_which_setting_and_leaves_nothing_running(
    speculative_seconds: float,
) -> None:
    async def scenario() -> None:
        policy = ReadPolicy(0, speculative_seconds=speculative_seconds, timeout_seconds=2.0)
        reader, ensemble = await written(Cluster(2, 2, 1), policy)
        for bookie in ensemble:
            bookie.hangs.add("read")
        began = asyncio.get_running_loop().time()
        with pytest.raises(LedgerUnreadable, match=r"not read within 2 s \(managedLedgerRead") as caught:
            await reader.read(3, 1, 100)
        assert not isinstance(caught.value, EntryLost)
        assert asyncio.get_running_loop().time() == pytest.approx(began + 2, abs=0.1)
        assert len(asyncio.all_tasks()) == 1
        ensemble[0].hangs.clear()
        assert payloads_of(await reader.read(3, 1, 100)) == [b"3"]

    on_loop(lambda _: scenario())


def test_the_time_limit_of_a_read_comes_from_its_key() -> None:
    async def scenario() -> None:
        cluster = Cluster(2, 2, 1)
        settings = dataclasses.replace(cluster.settings, managed_ledger_read_entry_timeout_seconds=3)
        client = BookKeeper(cluster.bookies, MemoryStore(FixedClock(), cluster.shared, alone=False), settings, Random(1))
        await client.initialise()
        writer = await client.create({})
        await writer.append(batch(b"a"))
        await writer.close()
        reader = await client.open(writer.ledger_id)
        for bookie in cluster.all:
            bookie.hangs.add("read")
        with pytest.raises(LedgerUnreadable, match="not read within 3 s"):
            await reader.read(0, 1, 100)
        await client.close()

    on_loop(lambda _: scenario())


def test_a_cancelled_speculative_read_leaves_nothing_running() -> None:
    async def scenario() -> None:
        reader, ensemble = await written(Cluster(2, 2, 1), ReadPolicy(0, speculative_seconds=0.01))
        for bookie in ensemble:
            bookie.hangs.add("read")
        read = asyncio.ensure_future(reader.read(0, 1, 100))
        await asyncio.wait([read], timeout=0.05)
        read.cancel()
        await asyncio.wait([read])
        assert len(asyncio.all_tasks()) == 1

    run(scenario())


class Picking(FakeBookie):
    """Reads far apart in one go, too."""

    async def pick(self, wanted: Sequence[tuple[int, Sequence[int]]], bytes_max: int) -> list[EntryRun]:
        await self._may_hang("pick")
        return [await self.read(ledger_id, entry_id, 1, bytes_max) for ledger_id, entry_ids in wanted for entry_id in entry_ids]


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 2, 2)])
def test_picked_entries_are_verified_and_damaged_or_slow_ones_are_left_out(
    sizes: tuple[int, int, int],
) -> None:
    async def scenario() -> None:
        cluster = Cluster(*sizes)
        cluster.bookies.update({name: Picking() for name in cluster.bookies})
        cluster.settings = dataclasses.replace(cluster.settings, managed_ledger_read_entry_timeout_seconds=1)
        client = cluster.client()
        await client.initialise()
        writers = [await client.create({}), await client.create({})]
        for writer in writers:
            for number in range(10):
                await writer.append(batch(b"%d" % number))
        await writers[0].close()
        closed = await client.open(writers[0].ledger_id)
        wanted: list[tuple[LedgerReader | LedgerWriter, list[int]]] = [(closed, [0, 3, 8]), (writers[1], [2, 9])]

        async def picked() -> list[tuple[int, int]]:
            runs = await client.pick(wanted, 1 << 20)
            assert all(payloads_of(run) == [b"%d" % run.first_entry_id] for run in runs)
            return sorted((run.ledger_id, run.first_entry_id) for run in runs)

        every = sorted((source.ledger_id, entry_id) for source, entry_ids in wanted for entry_id in entry_ids)
        assert await picked() == every
        assert isinstance(closed, ClosedLedger)
        cluster.bookies[next(iter(closed.entries.asked_first([3])))].rot(writers[0].ledger_id, 3)
        assert await picked() == [each for each in every if each != (writers[0].ledger_id, 3)]
        for bookie in cluster.bookies.values():
            bookie.hangs.add("pick")
        assert await picked() == []
        await client.close()

    run(scenario())
