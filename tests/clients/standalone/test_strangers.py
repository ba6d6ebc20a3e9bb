"""Tests of `python -m benchmarks.strangers`: how a suite's outcomes are judged."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

from benchmarks.strangers import java_suite, node_suite, python_suite, reactive_suite, rust_suite
from benchmarks.strangers.class_files import without_clusters
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


def test_a_rust_test_that_prints_before_its_outcome_is_told_apart_from_one_that_never_ends() -> None:
    output = (
        "test one::passes ... ok\n"
        "test one::prints ... some line of its own\nok\n"
        "test one::fails ... \nthread 'one::fails' (7) panicked at src/one.rs:3:5:\nleft is not right\nFAILED\n"
        "test one::skipped ... ignored\n"
        "test one::hangs ... "
    )
    assert [(each.test, each.outcome, each.note) for each in rust_suite.verdicts(output)] == [
        ("one::passes", PASSED, ""),
        ("one::prints", PASSED, ""),
        ("one::fails", FAILED, "src/one.rs:3:5: left is not right"),
        ("one::skipped", SKIPPED, ""),
        ("one::hangs", FAILED, "did not end"),
    ]


def test_a_java_test_has_failed_when_one_of_its_runs_failed_or_did_not_end_and_is_skipped_when_all_were() -> None:
    lines = [
        *(f"listed\tT.{name}\t" for name in ("some", "all", "hangs", "inside", "never")),
        *("began\tT.some\t", "passed\tT.some\t", "began\tT.some\t", "failed\tT.some\tits note"),
        *("began\tT.all\t", "passed\tT.all\t", "began\tT.all\t", "skipped\tT.all\twants the inside"),
        *("began\tT.inside\t", "skipped\tT.inside\twants the inside"),
        "began\tT.hangs\t",
    ]
    assert {each.test: (each.outcome, each.note) for each in java_suite.verdicts(lines)} == {
        "T.some": (FAILED, "its note"),
        "T.all": (PASSED, ""),
        "T.inside": (SKIPPED, "wants the inside"),
        "T.hangs": (FAILED, "did not end"),
        "T.never": (FAILED, "did not run"),
    }


def test_each_parameter_of_a_reactive_test_has_a_verdict(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuite><testcase name="one()" classname="a.T"/>'
        '<testcase name="one()" classname="a.T"><failure message="m"/></testcase>'
        '<testcase name="two()" classname="a.T"><skipped/></testcase></testsuite>'
    )
    assert [(each.test, each.outcome, each.note) for each in reactive_suite.verdicts(report)] == [
        ("T.one()#0", PASSED, ""),
        ("T.one()#1", FAILED, "m"),
        ("T.two()#2", SKIPPED, ""),
    ]


def test_names_with_a_cluster_in_a_class_file_become_names_of_the_second_version() -> None:
    def class_file(*texts: bytes) -> bytes:
        constants = b"".join(struct.pack(">BH", 1, len(text)) + text for text in texts)
        long_one = struct.pack(">Bq", 5, 7)  # counts for two
        return struct.pack(">IIH", 0xCAFEBABE, 61, len(texts) + 3) + long_one + constants + b"the rest"

    told = (b"persistent://prop/use/ns/topic", b"my-tenant/test/ns", b"src/test/resources", b"a/b/c")
    wanted = (b"persistent://prop/ns/topic", b"my-tenant/test-ns", b"src/test/resources", b"a/b/c")
    assert without_clusters(class_file(*told)) == class_file(*wanted)


def test_a_node_test_that_failed_has_its_message_and_a_file_that_does_not_load_has_failed() -> None:
    def suite(message: str, *tests: tuple[str, str, list[str]]) -> dict[str, object]:
        results = [{"fullName": name, "status": status, "failureMessages": said} for name, status, said in tests]
        return {"message": message, "assertionResults": results}

    told = suite("", ("a b", "passed", []), ("a c", "failed", ["\x1b[31mnot\x1b[0m so"]), ("a d", "pending", []))
    report = json.dumps({"testResults": [told, suite("cannot be loaded")]})
    assert list(node_suite.verdicts("some.test.js", report)) == [
        Verdict("some: a b", PASSED),
        Verdict("some: a c", FAILED, "not so"),
        Verdict("some: a d", SKIPPED),
        Verdict("some.test.js", FAILED, "cannot be loaded"),
    ]
