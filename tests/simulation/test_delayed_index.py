"""Delayed messages whose index is stored, in simulation: none is early, none is lost, none comes after its acknowledgement.

Buckets are small here, so that a few hundred messages have several of them. What was read from the log after the restart is
counted: that is what the stored index is for.
"""

import pytest
from pyroaring import BitMap

from broker.topic.contract import SubscriptionType
from managed_ledger.cursor.properties import bucket_ledgers
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from simulation.history import Stop
from wire.position import Position
from wire.run import EntryRun

from .served import Served, Session
from .worlds import World, run

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


class ReadEntries:
    """How many entries topics' logs were asked for: in stretches, and one by one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read, pick = StoredManagedLedger.read, StoredManagedLedger.pick

        async def counted_read(log: StoredManagedLedger, position: Position, entries: int, size: int) -> EntryRun | None:
            run = await read(log, position, entries, size)
            self.count += 0 if run is None else run.count
            return run

        async def counted_pick(log: StoredManagedLedger, ledger_id: int, wanted: BitMap, size: int) -> EntryRun | None:
            self.count += len(wanted)
            return await pick(log, ledger_id, wanted, size)

        monkeypatch.setattr(StoredManagedLedger, "read", counted_read)
        monkeypatch.setattr(StoredManagedLedger, "pick", counted_pick)


@pytest.fixture
def read_entries(monkeypatch: pytest.MonkeyPatch) -> ReadEntries:
    return ReadEntries(monkeypatch)


def texts(number: int) -> tuple[bytes]:
    return (b"%d" % number,)


def names(served: Served) -> dict[str, int]:
    return bucket_ledgers(served.cursor("sub").cursor_properties)


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

    async def after(client: Session) -> None:
        read_entries.count = 0
        await client.subscribe(kind=kind)
        came = await client.receive(30)
        assert sorted(text for texts in came.values() for text in texts) == sorted(b"%d" % n for n in range(7, MANY, 40))
        assert client.deliveries == MANY // 40
        assert read_entries.count < MANY // 4
        assert client.served.delayed("sub") == MANY - 1 - MANY // 40

    async def scenario(world: World) -> None:
        served = Served(world, SMALL_BUCKETS)
        await served.server.start()
        await served.client(before)
        await served.restart(Stop.KILL)
        await served.client(after)

    run(scenario)
