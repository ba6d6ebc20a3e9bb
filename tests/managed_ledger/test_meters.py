"""Meters of managed ledgers: by run, in Apache's buckets, and rates over the time since they were last taken."""

from managed_ledger.meters import LATENCY_BUCKETS_MS, SIZE_BUCKETS, LedgerMeters, SharedMeters

from .ledger_world import World, append_each, read_all, run


def test_a_run_counts_with_all_its_entries_in_the_bucket_that_it_belongs_to() -> None:
    meters = LedgerMeters(SharedMeters(), 0.0)
    meters.stored(0.0005, 3, 3 * 128)
    meters.stored(0.00051, 1, 129)
    meters.stored(2.0, 2, 4 << 20)
    assert list(meters.append_latencies) == [3, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert list(meters.entry_sizes) == [3, 1, 0, 0, 0, 0, 0, 0, 2]
    assert (meters.entries, meters.payload_bytes) == (6, 3 * 128 + 129 + (4 << 20))
    assert len(meters.append_latencies) == len(LATENCY_BUCKETS_MS) + 1
    assert len(meters.entry_sizes) == len(SIZE_BUCKETS) + 1


def test_ledgers_that_stored_nothing_share_their_empty_buckets() -> None:
    one, other = LedgerMeters(SharedMeters(), 0.0), LedgerMeters(SharedMeters(), 0.0)
    assert one.append_latencies is other.append_latencies
    one.stored(0.001, 1, 1)
    assert sum(other.append_latencies) == 0


def test_hits_and_misses_are_counted_for_one_and_for_all() -> None:
    shared = SharedMeters()
    one, other = LedgerMeters(shared, 0.0), LedgerMeters(shared, 0.0)
    one.hit(3, 30)
    other.missed(2, 20)
    assert (shared.hits, shared.hit_bytes, shared.misses, shared.missed_bytes) == (3, 30, 2, 20)
    assert (one.read_entries, one.missed_entries, other.read_entries, other.missed_entries) == (3, 0, 2, 2)


def test_rates_are_of_the_time_since_they_were_taken_and_are_not_taken_too_soon() -> None:
    meters = LedgerMeters(SharedMeters(), 100.0)
    meters.stored(0.001, 50, 50)
    meters.sample(109.0, 10.0)
    assert meters.write_rate == 0.0
    meters.sample(110.0, 10.0)
    assert meters.write_rate == 5.0
    meters.sample(120.0, 10.0)
    assert meters.write_rate == 0.0


def test_every_append_and_every_read_of_a_ledger_is_counted_over_its_ledgers() -> None:
    async def scenario() -> None:
        world = World()
        ledger = await world.open()
        await append_each(ledger, 35)
        meters = world.ledgers.meters_of(ledger.name)
        assert meters is not None
        assert (meters.entries, sum(meters.append_latencies), sum(meters.entry_sizes)) == (35, 35, 35)
        await read_all(ledger)
        assert meters.read_entries == 35
        assert world.ledgers.meters_of("t/n/persistent/other") is None

    run(scenario())
