"""Runs are scanned once for all subscriptions, and the memory of that is bounded."""

from array import array

from broker.topic.dispatch.scanned_runs import ScannedRuns
from tests.broker.topic.topic_world import payload, send_run
from wire.kernels.metadata import key_hashes, scan
from wire.run import EntryRun


def stored(first_entry_id: int, *payloads: bytes) -> EntryRun:
    entries = send_run(range(len(payloads)), payloads).entries
    return EntryRun(3, first_entry_id, entries.buffer, entries.offsets)


def test_a_run_is_scanned_once() -> None:
    scanned = ScannedRuns()
    run = stored(0, payload(batch=3), payload(key="k"))
    again = EntryRun(3, 0, run.buffer, array("I", run.offsets))
    assert scanned.metadata(run) == scan(run)
    assert scanned.metadata(again) is scanned.metadata(run)
    assert scanned.key_hashes(again) == key_hashes(run)


def test_another_part_of_the_same_run_is_something_else() -> None:
    scanned = ScannedRuns()
    run = stored(0, payload(batch=3), payload(batch=5))
    assert list(scanned.metadata(run).message_counts) == [3, 5]
    assert list(scanned.metadata(run.entries(1, 1)).message_counts) == [5]
    assert list(scanned.metadata(run.entries(0, 1)).message_counts) == [3]


def test_only_the_latest_runs_are_kept() -> None:
    scanned = ScannedRuns()
    for first in range(100):
        scanned.metadata(stored(first, payload()))
    assert len(scanned._metadata._known) == 16
