"""Fault: what is injected, which check has to name it and how, and the judgement of what the doctor said.

A fault counts as named when the expected check has the expected level and its finding names every thing that is concerned; its
remedy is right when it holds the expected words. A control has no fault: the doctor has to be silent, with exit code 0.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.started_process import ROOT

PULSAR = str(ROOT / "bin" / "pulsar")
DOCTOR_SECONDS_MAX = 120.0
FAIL, WARN = "fail", "warn"
OF_THIS_MACHINE = frozenset(
    [
        "disk-free",
        "disk-inodes",
        "fsync-time",
        "open-files-limit",
        "processes-limit",
        "memory-available",
        "memory-limit",
        "swap-in-use",
        "load",
        "kernels-compiled",
        "clock-plausible",
    ]
)
"""Checks of the machine that the faults are injected on: nothing is expected of them, but by faults of their own."""


@dataclass(frozen=True, slots=True)
class Injected:
    """Arguments of the doctor while the fault is there, and the names that its finding has to hold."""

    words: Sequence[str | Path]
    things: Sequence[str | Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: Sequence[str] = ()
    """Before the command, such as a shell that lowers a limit."""


Inject = Callable[[Path], AbstractContextManager[Injected]]
"""Given a directory of its own."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`check` is empty for a control. `remedy`: words that the remedy has to hold, each of them."""

    name: str
    inject: Inject
    check: str = ""
    level: str = FAIL
    remedy: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DoctorAnswer:
    """Answer of the doctor: its findings by check, and its exit code."""

    findings: Mapping[str, Mapping[str, str]]
    exit_code: int

    def wrong(self) -> list[str]:
        """Checks that warn or fail, but those of the machine."""
        return [name for name, each in self.findings.items() if each["level"] in (FAIL, WARN) and name not in OF_THIS_MACHINE]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`beside`: what else the doctor found, which may be a consequence of the fault. `error`: it could not be injected."""

    fault: Fault
    is_named: bool = False
    is_remedy_right: bool = False
    evidence: str = ""
    remedy: str = ""
    beside: Sequence[str] = ()
    error: str = ""

    @property
    def is_right(self) -> bool:
        return self.is_named and self.is_remedy_right


def doctor_answer(injected: Injected, scratch: Path) -> DoctorAnswer:
    """The real command. Credentials and addresses of this machine's client.conf are kept out of it."""
    client = scratch / "client.conf"
    if not client.exists():
        client.parent.mkdir(parents=True, exist_ok=True)
        client.write_text("")
    environment = {**os.environ, "PULSAR_CLIENT_CONF": str(client), **injected.environment}
    command = [*injected.prefix, PULSAR, "doctor", "--json", *map(str, injected.words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=DOCTOR_SECONDS_MAX, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(f"exit code {done.returncode}: {done.stderr[-2000:]}")
    document: Mapping[str, Any] = json.loads(done.stdout)
    return DoctorAnswer({each["id"]: each for each in document["checks"]}, done.returncode)


def judged(fault: Fault, injected: Injected, told: DoctorAnswer) -> Outcome:
    """Pure."""
    fails = any(each["level"] == FAIL for each in told.findings.values())
    is_code_right = told.exit_code == int(fails)
    wrong = told.wrong()
    if not fault.check:
        texts = "; ".join(f"{name}: {told.findings[name]['evidence']}" for name in wrong)
        return Outcome(fault, is_code_right and not wrong, not wrong, texts, beside=wrong)
    finding = told.findings.get(fault.check, {"level": "", "evidence": f"no check {fault.check}", "remedy": ""})
    text = f"{finding['evidence']} {finding['remedy']}"
    named = finding["level"] == fault.level and all(str(thing) in text for thing in injected.things) and is_code_right
    right = all(words in finding["remedy"] for words in fault.remedy)
    beside = [name for name in wrong if name != fault.check]
    return Outcome(fault, named, right, finding["evidence"], finding["remedy"], beside)


def outcomes(faults: Sequence[Fault], scratch: Path, tell: Callable[[Outcome], None]) -> Iterator[Outcome]:
    """One after the other; one that cannot be injected counts as not named."""
    for number, fault in enumerate(faults):
        own = scratch / f"{number:03}"
        own.mkdir(parents=True)
        try:
            with fault.inject(own) as injected:
                outcome = judged(fault, injected, doctor_answer(injected, own))
        except Exception as error:  # noqa: BLE001 - any: the other faults are injected all the same, and this one counts as not named
            outcome = Outcome(fault, error=f"{type(error).__name__}: {str(error)[:300]}")
        tell(outcome)
        yield outcome
