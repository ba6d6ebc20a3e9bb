"""The tests of the Rust client (crate `pulsar`), out of crates.io, against a standalone with the settings of their CI.

The crate's copy gets other ports; nothing else in it is changed. The examples in its documentation are not compiled.
Never in here: verdicts (verdicts.py).
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.strangers.secured_standalone import Places, free_places
from benchmarks.strangers.verdicts import FAILED, PASSED, SKIPPED, Report, Verdict, with_those_that_did_not_run
from tests.clients.server_process import ServerProcess
from tests.started_process import ROOT
from tests.toolchain import FETCH_SECONDS_MAX, run_tool

OURS = ROOT / "tests" / "clients" / "rust"
"""The project that pins the crate's version, and the protobuf compiler for its build."""
CARGO_TEST = ("cargo", "test", "--locked", "--lib")
SETTINGS = ("topicLevelPoliciesEnabled=true", "transactionCoordinatorEnabled=true", "bindAddress=127.0.0.1")
_OUTCOMES = {"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED}
_BEGAN = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. ", re.MULTILINE)
_OUTCOME = re.compile(r"\b(ok|FAILED|ignored)$", re.MULTILINE)
_PANIC = re.compile(r"^thread '(\S+)'.* panicked at (.*)\n(.*)$", re.MULTILINE)

KNOWN: dict[str, str] = {}
"""Tests that fail on every machine."""


def run(scratch: Path, pattern: str, seconds_max: float) -> Report:
    """Run the tests whose names match the pattern, all when it is empty."""
    places = free_places()
    crate, version = _crate(scratch, places)
    environment = {
        "PROTOC": str(OURS / "protoc"),
        "CARGO_TARGET_DIR": str(Path.home() / ".cache" / "interpulse" / "strangers-rust"),
    }
    told = run_tool([*CARGO_TEST, "--", "--list"], crate, FETCH_SECONDS_MAX, environment)
    listed = [name for name in re.findall(r"^(\S+): test$", told, re.MULTILINE) if re.search(pattern, name)]
    with ServerProcess(scratch / "server", (*places.settings()[:2], *SETTINGS)) as server:
        server.ports = ()
        server.start()
        output = _tested(crate, listed, seconds_max, {**os.environ, **environment}, scratch / "rust.log")
    return Report(f"crate pulsar {version}", with_those_that_did_not_run(verdicts(output), listed), KNOWN)


def _crate(scratch: Path, places: Places) -> tuple[Path, str]:
    """Copy the crate out of cargo's registry; its tests get our ports."""
    told = run_tool(["cargo", "metadata", "--locked", "--format-version", "1"], OURS, FETCH_SECONDS_MAX)
    metadata = json.loads(told[told.index('{"packages"') :].splitlines()[0])
    package = next(each for each in metadata["packages"] if each["name"] == "pulsar")
    crate = scratch / "pulsar"
    shutil.copytree(Path(package["manifest_path"]).parent, crate)
    for path in (crate / "src").rglob("*.rs"):
        path.write_text(places.moved(path.read_text()))
    return crate, package["version"]


def _tested(crate: Path, names: list[str], seconds_max: float, environment: dict[str, str], log: Path) -> str:
    command = [*CARGO_TEST, "--", "--test-threads=1", "--exact", *names]
    with log.open("w") as out:
        tests = subprocess.Popen(command, cwd=crate, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):  # what has no outcome by then has failed
                tests.wait(seconds_max)
        finally:
            tests.kill()
            tests.wait()
    return log.read_text(errors="replace")


def verdicts(output: str) -> Iterator[Verdict]:
    """One for each test that began. The output of a test stands between its name and its outcome."""
    panics = {name: f"{where} {what}" for name, where, what in _PANIC.findall(output)}
    begins = list(_BEGAN.finditer(output))
    for begin, after in zip(begins, [*begins[1:], None], strict=True):
        found = _OUTCOME.search(output, begin.end(), after.start() if after else len(output))
        outcome = _OUTCOMES[found[1]] if found else FAILED
        yield Verdict(begin[1], outcome, panics.get(begin[1], "did not end") if outcome == FAILED else "")
