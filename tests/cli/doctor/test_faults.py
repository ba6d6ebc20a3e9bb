"""A few of the faults of `python -m benchmarks.doctor_faults`, those that need no JVM, and how the script judges."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from benchmarks.doctor_faults import configurations, credentials, directories, servers
from benchmarks.doctor_faults.fault import FAIL, WARN, DoctorAnswer, Fault, Injected, Outcome, judged, outcomes
from benchmarks.doctor_faults.table import is_enough, markdown, summary

OF_FILES = (
    "a standalone that cannot write: quorum 2, one bookie",
    "a port that another process has",
    "control: a certificate, its key and a token that are sound",
    "certificate expired",
    "key of another certificate",
    "dead broker: never started",
)
OF_DIRECTORIES = (
    "control: a standalone that was killed",
    "VERSION missing in both directories",
    "entry log with flipped bytes",
    "journal with flipped bytes",
)
TOPIC = "persistent://public/default/a"


def wrong(faults: list[Fault], names: tuple[str, ...], scratch: Path) -> list[Outcome]:
    chosen = [fault for fault in faults if fault.name in names]
    assert len(chosen) == len(names)
    return [outcome for outcome in outcomes(chosen, scratch, lambda _: None) if not outcome.is_right]


def test_faults_of_files_and_a_dead_broker_are_named_with_the_right_remedy(tmp_path: Path) -> None:
    assert wrong([*configurations.faults(), *credentials.faults(), *servers.faults()], OF_FILES, tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the server's files are compared on Linux")
def test_faults_of_directories_are_named_and_a_killed_standalone_is_sound(tmp_path: Path) -> None:
    stopped = directories.stored(tmp_path / "stopped", killed=False)
    faults = directories.faults(stopped, directories.stored(tmp_path / "killed", killed=True))
    assert wrong(faults, OF_DIRECTORIES, tmp_path / "faults") == []


def told(level: str, evidence: str = TOPIC, remedy: str = "unload it", exit_code: int | None = None) -> DoctorAnswer:
    found = {"topics-answer": {"level": level, "evidence": evidence, "remedy": remedy}}
    return DoctorAnswer(found, int(level == FAIL) if exit_code is None else exit_code)


def test_a_fault_is_named_by_its_check_level_thing_and_exit_code_and_right_by_its_remedy() -> None:
    fault = Fault("a topic", _never, "topics-answer", FAIL, ("unload",))
    injected = Injected((), (TOPIC,))
    assert judged(fault, injected, told(FAIL)).is_right
    assert not judged(fault, injected, told(WARN)).is_named
    assert not judged(fault, injected, told(FAIL, evidence="a topic")).is_named
    assert not judged(fault, injected, told(FAIL, exit_code=0)).is_named
    assert not judged(fault, injected, told(FAIL, remedy="delete it")).is_right


def test_a_control_is_right_when_the_doctor_is_silent_and_one_alarm_is_too_many() -> None:
    control = Fault("sound", _never)
    silent, alarmed = (judged(control, Injected(()), told(level)) for level in ("ok", WARN))
    assert (silent.is_right, alarmed.is_right) == (True, False)
    assert (is_enough([("g", silent)]), is_enough([("g", silent), ("g", alarmed)])) == (True, False)
    assert "**alarm: topics-answer**" in markdown([("g", alarmed)])
    assert summary([("g", silent)], 1.0).endswith("silent in 1 of 1 controls; 1 s")


def _never(own: Path) -> AbstractContextManager[Injected]:
    raise NotImplementedError
