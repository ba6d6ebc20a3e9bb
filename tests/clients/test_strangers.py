"""Tests of `python -m benchmarks.strangers`: how a suite's outcomes are judged."""

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.strangers import python_suite
from benchmarks.strangers.secured_standalone import Places
from benchmarks.strangers.verdicts import FAILED, PASSED, SKIPPED, Report, Verdict, with_those_that_did_not_run

OUTCOMES = """
import unittest

class Some(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self): self.fail("on purpose")
    @unittest.skip("a reason")
    def test_skips(self): pass
    def test_has_a_part_that_fails(self):
        with self.subTest("a part"): self.fail("in part")
    def test_z_ends_the_process(self): import os; os._exit(1)
    def test_zz_is_never_begun(self): pass

class Other(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("wants something")
    def test_one(self): pass
"""


def test_a_listed_test_without_an_outcome_has_failed() -> None:
    verdicts = with_those_that_did_not_run([Verdict("a", PASSED)], ["a", "b"])
    assert verdicts == (Verdict("a", PASSED), Verdict("b", FAILED, "did not run"))


def test_a_failure_is_expected_with_its_reason_alone_and_a_known_one_that_passes_is_not() -> None:
    failed, passed = Verdict("a", FAILED, "its note"), Verdict("a", PASSED)
    assert not Report("s", (failed,), {}).is_as_expected
    assert Report("s", (failed,), {"a": "why"}).is_as_expected
    assert not Report("s", (passed,), {"a": "why"}).is_as_expected
    assert all(Report("s", (each,), {}, {"a": "why"}).is_as_expected for each in (failed, passed))
    assert not Report("s", (), {}).is_as_expected


def test_outcomes_of_a_file_of_unittest_outlive_its_process(tmp_path: Path) -> None:
    (tmp_path / "some_test.py").write_text(OUTCOMES)
    command = [sys.executable, str(python_suite.EVENTS), str(tmp_path / "events"), "some_test"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": ""})
    assert ended.returncode == 1
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    found = {each.test.partition(".test_")[2]: each for each in python_suite.verdicts(events)}
    assert {name: (each.outcome, each.note) for name, each in found.items()} == {
        "one": (SKIPPED, "wants something"),
        "passes": (PASSED, ""),
        "fails": (FAILED, "AssertionError('on purpose')"),
        "skips": (SKIPPED, "a reason"),
        "has_a_part_that_fails": (FAILED, "AssertionError('in part')"),
        "z_ends_the_process": (FAILED, "did not end"),
        "zz_is_never_begun": (FAILED, "did not run"),
    }


def test_addresses_of_a_strangers_files_are_moved_to_the_standalones_ports() -> None:
    places = Places(("1", "2", "3", "4"))
    assert places.moved("pulsar://localhost:6650 https://127.0.0.1:8443 6650 :16650") == (
        "pulsar://localhost:1 https://127.0.0.1:4 6650 :16650"
    )
