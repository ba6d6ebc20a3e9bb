"""Findings of doctor on several processes behind the port that it asked."""

from cli.doctor.check import FAIL, OK, WARN
from cli.doctor.checks.cluster import Process, processes_serve


def test_a_process_that_waits_for_its_next_start_is_a_warning_by_its_number() -> None:
    found = processes_serve((Process(1, "serving", 1), Process(2, "waiting", 4)))
    assert (found.level, found.evidence) == (WARN, "1 of 2 do not serve: process 2 is waiting (started 4 times)")


def test_a_process_that_is_given_up_is_a_failure() -> None:
    assert processes_serve((Process(1, "waiting", 4), Process(2, "given up", 11))).level == FAIL


def test_all_serve_and_one_process_alone_is_well() -> None:
    found = processes_serve((Process(1, "serving", 1), Process(2, "serving", 3)))
    assert (found.level, found.evidence) == (OK, "2 processes serve, which were started again 2 times")
    assert processes_serve(()).level == OK
