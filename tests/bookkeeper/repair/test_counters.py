"""Counters of repair under Apache's names."""

from dataclasses import fields

from bookkeeper.repair.counters import RepairCounters


def test_names_are_apaches_scope_and_the_counter_in_capitals() -> None:
    values = RepairCounters(auditor_num_under_replicated_ledgers=3, replication_worker_num_bytes_read=7).values()
    assert values["auditor_NUM_UNDER_REPLICATED_LEDGERS"] == 3
    assert values["replication_worker_NUM_BYTES_READ"] == 7


def test_every_field_is_a_counter_that_begins_at_zero() -> None:
    values = RepairCounters().values()
    assert len(values) == len(fields(RepairCounters))
    assert set(values.values()) == {0}
