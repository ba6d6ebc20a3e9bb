"""Delayed messages whose index is stored, in simulation: none is early, none is lost, none comes after its acknowledgement.

Buckets are small here, so that a few hundred messages have several of them. Entries read from the log after the restart are
counted: the stored index is to save these reads.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from bookkeeper.ledger_metadata.paths import ledger_path
from broker.topic.contract import SubscriptionType
from managed_ledger.contract import EARLIEST
from managed_ledger.cursor.properties import APACHE_BUCKET, bucket_ledgers
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from metadata.store import Delete
from simulation.checks.history import Stop
from wire.picked_runs import Picked, Picks
from wire.position import Position
from wire.run import EntryRun

from ..served import Served, Session
from ..worlds import World, run

STRICT = {"isDelayedDeliveryDeliverAtTimeStrict": "true"}
SMALL_BUCKETS = {
    **STRICT,
    "delayedDeliveryMinIndexCountPerBucket": "40",
    "delayedDeliveryMaxIndexesPerBucketSnapshotSegment": "16",
    "delayedDeliveryMaxNumBuckets": "8",
}
SMALL_LEDGERS = {"managedLedgerMaxEntriesPerLedger": "150", "managedLedgerMinLedgerRolloverTimeMinutes": "0"}
KINDS = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)
MANY = 400
HOUR_MS = 3_600_000


class ReadEntries:
    """Counts of entries read from topics' logs: in stretches, and one by one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read, pick = StoredManagedLedger.read, StoredManagedLedger.pick

        async def counted_read(log: StoredManagedLedger, position: Position, entries: int, size: int) -> EntryRun | None:
            run = await read(log, position, entries, size)
            self.count += 0 if run is None else run.count
            return run

        async def counted_pick(log: StoredManagedLedger, wanted: Picks, size: int) -> Picked:
            self.count += sum(len(entry_ids) for _, entry_ids in wanted)
            return await pick(log, wanted, size)

        monkeypatch.setattr(StoredManagedLedger, "read", counted_read)
        monkeypatch.setattr(StoredManagedLedger, "pick", counted_pick)


@pytest.fixture
def read_entries(monkeypatch: pytest.MonkeyPatch) -> ReadEntries:
    return ReadEntries(monkeypatch)


def texts(number: int) -> tuple[bytes]:
    return (b"%d" % number,)


def names(served: Served) -> dict[str, int]:
    return bucket_ledgers(served.cursor("sub").cursor_properties)


def index_stats(served: Served) -> dict[str, float]:
    """Stats of the index by Apache's keys."""
    found = served.topic().stats().subscriptions["sub"].delayed_index
    return {each.key.removeprefix("pulsar_delayed_message_index"): each.value for each in found}


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_kill_what_is_due_comes_though_the_backlog_is_not_read_again(
    kind: SubscriptionType, read_entries: ReadEntries
) -> None:
    far_ms, soon_ms = 3_600_000, 20_000

    async def before(client: Session) -> None:
        await client.subscribe(kind=kind)
        now_ms = client.served.now_ms()
        times = [now_ms + (soon_ms if number % 40 == 7 else far_ms + number) for number in range(MANY)]
        positions = await client.publish(*map(texts, range(MANY)), deliver_at_ms=times)
        await client.acknowledge(positions[3])
        await client.receive(10)
        assert client.deliveries == 0
        assert names(client.served)
        told = index_stats(client.served)
        assert told["_bucket_total"] == len(names(client.served)) == told["_bucket_op_countstate_succeed_type_create"]
        assert told["_loaded"] == MANY - 1
        assert told["_bucket_snapshot_size_bytes"] > 0

    async def after(client: Session) -> None:
        read_entries.count = 0
        await client.subscribe(kind=kind)
        came = await client.receive(30)
        assert sorted(text for texts in came.values() for text in texts) == sorted(b"%d" % n for n in range(7, MANY, 40))
        assert client.deliveries == MANY // 40
        assert read_entries.count < MANY // 4
        assert client.served.delayed("sub") == MANY - 1 - MANY // 40
        told = index_stats(client.served)
        assert told["_bucket_op_countstate_succeed_type_load"] == told["_bucket_op_latency_ms_counttype_load"] > 0

    async def scenario(world: World) -> None:
        served = Served(world, SMALL_BUCKETS)
        await served.server.start()
        await served.client(before)
        await served.restart(Stop.KILL)
        await served.client(after)

    run(scenario)


async def hold_back(client: Session, kind: SubscriptionType = SubscriptionType.SHARED) -> list[Position]:
    """All wait for an hour, and are stored."""
    await client.subscribe(kind=kind)
    positions = await client.publish(*map(texts, range(MANY)), deliver_at_ms=client.served.now_ms() + HOUR_MS)
    await client.receive(5)
    assert client.deliveries == 0
    assert there(client.served, names(client.served)) == len(names(client.served)) > 0
    return positions


def there(served: Served, buckets: dict[str, int]) -> int:
    """Count of these buckets that have a ledger."""
    return sum(served.server.tree.exists(ledger_path(ledger_id)) for ledger_id in buckets.values())


async def at_the_broker(served: Served, work: Coroutine[Any, Any, Any]) -> None:
    await served.server.process.spawn(work)


@pytest.mark.parametrize("how", ["subscription", "topic"])
def test_a_deleted_subscription_or_topic_takes_its_buckets_with_it(how: str) -> None:
    async def scenario(world: World) -> None:
        served = Served(world, SMALL_BUCKETS)
        await served.server.start()
        await served.client(hold_back)
        buckets = names(served)
        topic = served.topic()
        if how == "subscription":
            await at_the_broker(served, topic.delete_subscription("sub", force=True))
        else:
            await at_the_broker(served, topic.delete(force=True))
        assert there(served, buckets) == 0

    run(scenario)


def test_clearing_the_backlog_deletes_its_buckets() -> None:
    async def scenario(world: World) -> None:
        served = Served(world, SMALL_BUCKETS)
        await served.server.start()
        await served.client(hold_back)
        buckets = names(served)
        await at_the_broker(served, served.topic().operations.clear_backlog("sub"))
        await asyncio.sleep(3)
        assert names(served) == {}
        assert there(served, buckets) == 0

    run(scenario)


def test_a_subscription_that_becomes_exclusive_gets_all_at_once_and_stores_nothing_any_more() -> None:
    async def after(client: Session) -> None:
        buckets = names(client.served)
        await client.subscribe(kind=SubscriptionType.EXCLUSIVE)
        await client.receive(3)
        assert client.deliveries == MANY
        assert names(client.served) == {}
        assert there(client.served, buckets) == 0

    async def scenario(world: World) -> None:
        served = Served(world, SMALL_BUCKETS)
        await served.server.start()
        await served.client(hold_back)
        await served.client(after)

    run(scenario)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["unload", "stop", "kill"])
def test_after_a_seek_back_what_had_been_acknowledged_waits_again(kind: SubscriptionType, end: str) -> None:
    """A bucket is as true for it as before."""

    async def before(client: Session) -> None:
        positions = await hold_back(client, kind)
        for position in positions[:50]:
            await client.acknowledge(position)
        assert client.served.delayed("sub") == MANY - 50

    async def after(client: Session) -> None:
        await client.subscribe(kind=kind)
        await client.receive(3)
        assert (client.deliveries, client.served.delayed("sub")) == (0, MANY)
        client.served.server.clock.offset_ms += HOUR_MS
        await client.receive(12)
        assert client.deliveries == MANY
        assert len(client.received) == MANY

    async def scenario(world: World) -> None:
        served = Served(world, SMALL_BUCKETS)
        await served.server.start()
        await served.client(before)
        await at_the_broker(served, served.topic().operations.reset("sub", EARLIEST))
        if end == "unload":
            await served.unload()
        else:
            await served.restart(Stop.CLEAN if end == "stop" else Stop.KILL)
        await served.client(after)

    run(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_without_its_bucket_what_waits_is_read_from_the_log(kind: SubscriptionType) -> None:
    async def after(client: Session) -> None:
        await client.subscribe(kind=kind)
        await client.receive(3)
        assert (client.deliveries, client.served.delayed("sub")) == (0, MANY)
        client.served.server.clock.offset_ms += HOUR_MS
        await client.receive(12)
        assert client.deliveries == MANY

    async def scenario(world: World) -> None:
        served = Served(world, {**SMALL_BUCKETS, **SMALL_LEDGERS})
        await served.server.start()
        await served.client(lambda client: hold_back(client, kind))
        lost = names(served)
        served.server.process.kill()
        deletes = [Delete(ledger_path(ledger_id)) for ledger_id in lost.values()]
        served.server.tree.apply(deletes, 0, served.now_ms())
        await served.server.start()
        await served.client(after)
        assert not lost.keys() & names(served).keys()

    run(scenario)


def test_the_index_of_a_lost_bucket_is_stored_again_and_not_rebuilt_at_every_load(read_entries: ReadEntries) -> None:
    async def load(client: Session) -> None:
        read_entries.count = 0
        await client.subscribe()
        await client.receive(5)
        assert (client.deliveries, client.served.delayed("sub")) == (0, MANY)

    async def scenario(world: World) -> None:
        served = Served(world, {**SMALL_BUCKETS, **SMALL_LEDGERS})
        await served.server.start()
        await served.client(hold_back)
        lost = min(names(served).values())
        assert len(names(served)) > 1, "it is not all that there is"
        served.server.process.kill()
        served.server.tree.apply([Delete(ledger_path(lost))], 0, served.now_ms())
        await served.server.start()
        await served.client(load)
        assert read_entries.count >= 40
        assert lost not in names(served).values()
        await served.restart(Stop.KILL)
        await served.client(load)
        assert read_entries.count < 40

    run(scenario)


@pytest.mark.parametrize("how", ["stopped", "unloaded"])
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_polite_end_nothing_is_read_again(kind: SubscriptionType, how: str, read_entries: ReadEntries) -> None:
    """Messages that had come too lately for a bucket are stored on the way."""

    async def before(client: Session) -> None:
        await client.subscribe(kind=kind)
        await client.publish(*map(texts, range(MANY)), deliver_at_ms=client.served.now_ms() + HOUR_MS)
        assert client.served.delayed("sub") == MANY
        assert not names(client.served), "it is not looked at yet"

    async def after(client: Session) -> None:
        read_entries.count = 0
        await client.subscribe(kind=kind)
        await client.receive(5)
        assert (client.deliveries, client.served.delayed("sub"), read_entries.count) == (0, MANY, 0)

    async def scenario(world: World) -> None:
        served = Served(world, SMALL_BUCKETS)
        await served.server.start()
        await served.client(before)
        await (served.restart(Stop.CLEAN) if how == "stopped" else served.unload())
        await served.client(after)

    run(scenario)


def test_a_bucket_about_whole_ledgers_has_the_name_that_apache_gives_it() -> None:
    async def work(client: Session) -> None:
        positions = await hold_back(client)
        first, *_, open_one = sorted({position.ledger_id for position in positions})
        whole, part = sorted(names(client.served))
        assert whole.startswith(f"{APACHE_BUCKET}_{first}_")
        assert int(whole.rpartition("_")[2]) < open_one
        assert not part.startswith(APACHE_BUCKET), "it is about the ledger that is still written"

    async def scenario(world: World) -> None:
        served = Served(world, {**SMALL_BUCKETS, **SMALL_LEDGERS})
        await served.server.start()
        await served.client(work)

    run(scenario)
