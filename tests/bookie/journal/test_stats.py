"""Statistics of the journal: each entry of a write waited as long as the write's first one, and each write was synced once."""

import pytest

from bookie.journal.format_v1 import LedgerFenced, MasterKeySet, Record
from bookie.journal.stats import WRITES_MAX, JournalStats
from tests.bookie.runs import KEY, mixed, sealed


def test_each_entry_of_a_write_is_an_add_and_each_other_record_too() -> None:
    stats = JournalStats()
    records: list[Record] = [sealed(1, 0, 3), mixed([sealed(2, 0), sealed(3, 0)]), MasterKeySet(4, KEY), LedgerFenced(4)]
    stats.wrote(records, 1.0, 1.5, 1.75, has_failed=False)
    assert (stats.queued.succeeded.count, stats.added.succeeded.count, stats.synced.succeeded.count) == (7, 7, 1)


def test_the_times_are_of_the_wait_of_the_write_and_of_both() -> None:
    stats = JournalStats()
    stats.wrote([sealed(1, 0, 2)], 1.0, 1.5, 1.75, has_failed=False)
    seconds = stats.queued.succeeded.seconds, stats.synced.succeeded.seconds, stats.added.succeeded.seconds
    assert seconds == pytest.approx((2 * 0.5, 0.25, 2 * 0.75))


def test_a_write_that_failed_counts_as_failed_but_for_the_wait_before_it() -> None:
    stats = JournalStats()
    stats.wrote([sealed(1, 0)], 1.0, 1.5, 1.75, has_failed=True)
    assert (stats.queued.succeeded.count, stats.queued.failed.count) == (1, 0)
    assert (stats.synced.failed.count, stats.added.failed.count, stats.added.succeeded.count) == (1, 1, 0)


@pytest.mark.parametrize("writes", [WRITES_MAX - 1, WRITES_MAX, 3 * WRITES_MAX + 1])
def test_no_write_is_lost_or_counted_twice_however_many_come_between_two_looks(writes: int) -> None:
    stats = JournalStats()
    for _ in range(writes):
        stats.wrote([sealed(1, 0)], 0.0, 0.0, 0.0, has_failed=False)
    assert (stats.added.succeeded.count, stats.synced.succeeded.count) == (writes, writes)


def test_records_of_a_write_may_be_changed_after_it() -> None:
    """The journal gives its list away and fills it again before the statistics are read."""
    stats, records = JournalStats(), [sealed(1, 0, 5)]
    stats.wrote(records, 0.0, 0.0, 0.0, has_failed=False)
    records.clear()
    assert stats.added.succeeded.count == 5
