"""Buckets of delayed messages: what ours are made of, and what is made of those that others wrote, or that are damaged."""

from array import array
from collections.abc import Coroutine
from typing import Any

import pytest
from pyroaring import BitMap

from bookkeeper.ledgers import NoSuchLedger
from broker.dispatchers.contract import Event, IndexFound
from broker.dispatchers.delays.delay_buckets import START
from broker.dispatchers.delays.delays import Delays
from broker.topic.delayed.loading import IndexLoader
from broker.topic.delayed.storage import BucketContent, DamagedBucket, StoredBucket, open_bucket
from simulation.world.loop import SimLoop
from simulation.world.rng import stream
from simulation.world.trace import Trace
from tests.broker.topic.memory_ledger import MemoryLedger
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore, batch
from wire.generated.delayed_index_pb2 import SnapshotMetadata, SnapshotSegment
from wire.position import Position

NOW_MS = 1_700_000_000_000
END = Position(1 << 40, 0)
KEY = "#pulsar.internal.delayed.bucket_3_4"


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    loop = SimLoop(stream(0, "loop"), Trace(None))
    try:
        return loop.run_until_complete(scenario)
    finally:
        loop.finish()


def held() -> Delays:
    """Ledgers 3 and 4, every message a second later than the one before, the later ledger first."""
    delays = Delays(100)
    for ledger_id in (3, 4):
        times = array("q", (NOW_MS + 1000 * (200 - 100 * (ledger_id - 3) + index) for index in range(100)))
        delays.add(ledger_id, 0, times, array("I", range(100)), NOW_MS)
    return delays


async def written(ledgers: FakeLedgerStore, delays: Delays, segment_count: int = 30) -> int:
    content = BucketContent(delays.part(START, END), segment_count)
    await content.gather()
    writer = await ledgers.create({})
    await content.write(writer)
    await writer.close()
    return writer.ledger_id


async def all_facts(bucket: StoredBucket, until_ms: int | None = None) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    while (facts := await bucket.next_facts(until_ms)) is not None:
        found += zip(*facts, strict=True)
    return found


def test_a_bucket_is_segments_by_time_and_before_them_what_is_in_each() -> None:
    async def scenario() -> None:
        ledgers = FakeLedgerStore(FakeLedgers())
        ledger_id = await written(ledgers, held())
        reader = await ledgers.open(ledger_id)
        entries = [bytes((await reader.read(number, 1, 1)).payload(number)) for number in range(reader.last_entry_id + 1)]
        described = SnapshotMetadata.FromString(entries[0]).metadata_list
        segments = [SnapshotSegment.FromString(entry).indexes for entry in entries[1:]]
        assert [len(each) for each in segments] == [30, 30, 30, 30, 30, 30, 20]
        wanted = [(NOW_MS + 1000 * (100 + index), 4 - index // 100, index % 100) for index in range(200)]
        assert [(each.timestamp, each.ledger_id, each.entry_id) for indexes in segments for each in indexes] == wanted
        for about, indexes in zip(described, segments, strict=True):
            assert about.min_schedule_timestamp == indexes[0].timestamp
            assert about.max_schedule_timestamp == indexes[-1].timestamp
            named = {
                (number, entry) for number, ids in about.delayed_index_bit_map.items() for entry in BitMap.deserialize(ids)
            }
            assert named == {(each.ledger_id, each.entry_id) for each in indexes}

    run(scenario())


def test_the_segments_that_have_something_due_are_read_first_and_each_once() -> None:
    async def scenario() -> None:
        ledgers = FakeLedgerStore(FakeLedgers())
        bucket = await open_bucket(ledgers, KEY, await written(ledgers, held()))
        assert bucket.is_whole
        due = await all_facts(bucket, NOW_MS + 1000 * 135)
        assert len(due) == 60
        rest = await all_facts(bucket)
        assert len(rest) == 140
        assert sorted(due + rest) == due + rest

    run(scenario())


def test_an_unfinished_bucket_is_readable_but_not_whole() -> None:
    async def scenario() -> None:
        shared = FakeLedgers()
        ledgers = FakeLedgerStore(shared)
        ledger_id = await written(ledgers, held())
        found = shared.ledgers[ledger_id]
        found.runs, found.last_entry_id = [found.runs[0].entries(0, 3)], 2
        bucket = await open_bucket(ledgers, KEY, ledger_id)
        assert not bucket.is_whole
        assert len(await all_facts(bucket)) == 60

    run(scenario())


@pytest.mark.parametrize("entries", [[], [b"\x0a\x05"], [b"\xff"]])
def test_a_ledger_that_does_not_begin_as_a_bucket_is_damaged(entries: list[bytes]) -> None:
    async def scenario() -> None:
        ledgers = FakeLedgerStore(FakeLedgers())
        writer = await ledgers.create({})
        if entries:
            await writer.append(batch(*entries))
        await writer.close()
        with pytest.raises(DamagedBucket):
            await open_bucket(ledgers, KEY, writer.ledger_id)
        with pytest.raises(NoSuchLedger):
            await open_bucket(ledgers, KEY, writer.ledger_id + 1)

    run(scenario())


class Loading:
    """A loader of two buckets, with what it hands on."""

    def __init__(self, shared: FakeLedgers) -> None:
        log = MemoryLedger()
        self.found: list[Event] = []
        place = log.open_non_durable_cursor("s", Position(-1, -1))
        store = FakeLedgerStore(shared)
        self.loader = IndexLoader(store, log, place, self.found.append, lambda: NOW_MS, "t s")

    @property
    def entries(self) -> set[tuple[int, int]]:
        events = [event for event in self.found if isinstance(event, IndexFound)]
        return {(ledger_id, entry) for event in events for ledger_id, facts in event.found.items() for entry in facts[0]}


@pytest.mark.parametrize("harm", ["none", "gone", "damaged", "away", "lost"])
def test_a_bucket_that_cannot_be_read_is_done_without_and_only_what_stays_so_is_deleted(harm: str) -> None:
    async def scenario() -> None:
        shared = FakeLedgers()
        ledgers = FakeLedgerStore(shared)
        first, second = await written(ledgers, waits(3)), await written(ledgers, waits(4))
        if harm == "gone":
            await ledgers.delete(first)
        elif harm == "damaged":
            writer = await ledgers.create({})
            await writer.append(batch(bytes(shared.ledgers[first].runs[0].payload(0)), b"\x0a\x02\x08"))
            await writer.close()
            first = writer.ledger_id
        elif harm == "away":
            shared.ledgers[first].is_away = True
        elif harm == "lost":
            shared.ledgers[first].lost.add(1)
        loading = Loading(shared)
        await loading.loader.load({"a": first, "b": second})
        wanted = {(4, entry) for entry in range(20)} | ({(3, entry) for entry in range(20)} if harm == "none" else set())
        assert loading.entries == wanted
        assert [bucket.key for bucket in loading.loader.good] == (["a", "b"] if harm == "none" else ["b"])
        assert loading.loader.useless == ({"a": first} if harm in ("gone", "damaged") else {})
        assert loading.loader.end == Position(4, 20)

    run(scenario())


def waits(ledger_id: int) -> Delays:
    delays = Delays(100)
    delays.add(ledger_id, 0, array("q", [NOW_MS + 60_000]) * 20, array("I", range(20)), NOW_MS)
    return delays


def test_bookies_that_do_not_answer_hold_a_subscription_up_for_a_minute_at_most() -> None:
    async def scenario() -> None:
        shared = FakeLedgers()
        ledgers = FakeLedgerStore(shared)
        names = {str(number): await written(ledgers, waits(number)) for number in range(3, 13)}
        loading = Loading(shared)
        shared.step_s = 1000.0
        await loading.loader.load(names)
        assert (loading.entries, loading.loader.good, loading.loader.useless) == (set(), [], {})

    loop = SimLoop(stream(0, "loop"), Trace(None))
    try:
        loop.run_until_complete(scenario())
        assert loop.time() < 100
    finally:
        loop.finish()
