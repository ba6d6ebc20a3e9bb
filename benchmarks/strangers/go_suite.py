"""The tests of Apache's Go client, out of the Go module proxy, against a standalone with the settings of their own CI.

The module's copy gets other ports; nothing else in it is changed. Its certificates, tokens, passwords and standalone.conf
are used.
Never in here: verdicts (verdicts.py), and why a test is known to fail (go_known.py).
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.strangers.go_known import KNOWN, MAY_FAIL, WANT_DOCKER
from benchmarks.strangers.secured_standalone import Places, Preparation, free_places, standalone
from benchmarks.strangers.verdicts import FAILED, PASSED, SKIPPED, Report, Verdict, with_those_that_did_not_run
from tests.toolchain import FETCH_SECONDS_MAX, run_tool

MODULE = "github.com/apache/pulsar-client-go@v0.19.0"
PACKAGES = "./pulsar/..."
GO_TEST = ("go", "test", "-trimpath", "-vet=off")
"""Without paths, so that what is compiled in one directory serves for the next."""
OUTCOMES = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}
NOTE_LINES_MAX = 3
DOCKER_SECONDS_MAX = 30.0
ROUNDS_MAX = 10
_TROUBLE = re.compile(r"Error:|Error Trace|panic:|_test\.go:\d+:|skip", re.IGNORECASE)
_PREPARATION = (
    "tenants update public -r anonymous",
    "namespaces grant-permission public/default --actions produce,consume --role anonymous",
    "tenants create private",
    "namespaces create private/auth",
    "namespaces grant-permission private/auth --actions produce,consume --role token-principal",
)
"""Commands of scripts/pulsar-test-service-start.sh of the module."""


def run(scratch: Path, pattern: str, seconds_max: float, packages: str = PACKAGES) -> Report:
    """Run the tests whose names match the pattern, all when it is empty."""
    places = free_places()
    module = _module(scratch, places)
    listed = _listed(module, pattern, packages)
    without_docker = () if has_docker() else tuple(test for test in WANT_DOCKER if test in listed)
    with _server(scratch / "server", module, places):
        command = [*GO_TEST, "-json", "-count=1", "-p=1", packages, *(["-run", pattern] if pattern else [])]
        events = _tested(module, command, without_docker, seconds_max, scratch / "go-test.json")
    left_out = (Verdict(test, SKIPPED, "wants Docker, which is not here") for test in without_docker)
    verdicts = with_those_that_did_not_run((*_verdicts(events), *left_out), listed)
    return Report(f"pulsar-client-go {MODULE.rpartition('@')[2]}", verdicts, KNOWN, MAY_FAIL)


def fetch(scratch: Path) -> Path:
    """Return the module in Go's cache, with all that its tests import. AssertionError when Go cannot fetch one of them."""
    found = json.loads(run_tool(["go", "mod", "download", "-json", MODULE], scratch, FETCH_SECONDS_MAX))
    module = Path(found["Dir"])
    run_tool(["go", "list", "-deps", "-test", PACKAGES], module, FETCH_SECONDS_MAX)
    return module


def _module(scratch: Path, places: Places) -> Path:
    """Copy the module out of the cache, whose files are read-only; its tests and the default of its admin get our ports."""
    module = scratch / "pulsar-client-go"
    shutil.copytree(fetch(scratch), module, copy_function=shutil.copyfile)
    for path in (module, *(each for each in module.rglob("*") if each.is_dir())):
        path.chmod(0o755)
    for path in (*(module / "pulsar").glob("*_test.go"), *(module / "pulsaradmin").rglob("*.go")):
        path.write_text(places.moved(path.read_text()))
    return module


def has_docker() -> bool:
    """Tell whether a daemon answers: the command alone may be there without one."""
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "version"], capture_output=True, timeout=DOCKER_SECONDS_MAX, check=False)
    return asked.returncode == 0


def _listed(module: Path, pattern: str, packages: str) -> list[str]:
    """Names of all tests that the pattern chooses, as Go itself tells them. Compiles the tests when the cache is empty."""
    told = run_tool([*GO_TEST, "-list", pattern or ".", packages], module, FETCH_SECONDS_MAX)
    names = re.findall(r"^(Test\w+)$", told, re.MULTILINE)
    assert len(names) == len(set(names)), "two packages have a test of one name: verdicts must tell them apart"
    return names


def _server(directory: Path, module: Path, places: Places) -> AbstractContextManager[None]:
    theirs = module / "integration-tests"
    text = (theirs / "conf" / "standalone.conf").read_text()
    text = text.replace("/pulsar/certs", f"{theirs}/certs").replace("/pulsar/tokens", f"{theirs}/tokens")
    token = (theirs / "tokens" / "admin-token").read_text().strip()
    passwords = f"basicAuthConf=file://{theirs}/conf/.htpasswd"
    return standalone(directory, text, places, (passwords,), Preparation(token, _PREPARATION))


def _tested(module: Path, command: list[str], left_out: tuple[str, ...], seconds_max: float, log: Path) -> list[dict[str, str]]:
    """Events of `go test -json`. A panic ends all tests of its package: what it left is run again without what has been run."""
    events: list[dict[str, str]] = []
    deadline = time.monotonic() + seconds_max
    for _ in range(ROUNDS_MAX):
        seen = {event["Test"].partition("/")[0] for event in events if "Test" in event}
        found = _round(module, command, seen.union(left_out), max(1.0, deadline - time.monotonic()), log)
        events += found
        if not any("panic:" in event.get("Output", "") for event in found) or time.monotonic() > deadline:
            break
    return events


def _round(module: Path, command: list[str], left_out: set[str], seconds_max: float, log: Path) -> list[dict[str, str]]:
    """Events of one run, which the log keeps too. Go ends its tests itself; twice the time is for compiling."""
    skipped = ["-skip", f"^({'|'.join(sorted(left_out))})$"] if left_out else []
    bounded = [*command, f"-timeout={seconds_max:.0f}s", *skipped]
    with log.open("a") as out:
        began = out.tell()
        tests = subprocess.Popen(bounded, cwd=module, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):  # what has no outcome by then has failed
                tests.wait(2 * seconds_max)
        finally:
            if tests.poll() is None:
                os.killpg(tests.pid, signal.SIGKILL)
                tests.wait()
    return [json.loads(line) for line in log.read_bytes()[began:].decode().splitlines() if line.startswith("{")]


def _verdicts(events: list[dict[str, str]]) -> Iterator[Verdict]:
    """One for each test, not for its parts. A test that began and never ended has failed."""
    notes: dict[str, list[str]] = {}
    outcomes: dict[str, str] = {}
    for event in events:
        if "Test" not in event:
            continue
        name = event["Test"].partition("/")[0]
        outcomes.setdefault(name, FAILED)
        if event["Action"] == "output" and _TROUBLE.search(event["Output"]):
            notes.setdefault(name, []).append(event["Output"].strip())
        elif event["Action"] in OUTCOMES and event["Test"] == name:
            outcomes[name] = OUTCOMES[event["Action"]]
    for name, outcome in outcomes.items():
        note = "; ".join(notes.get(name, ["did not end"])[-NOTE_LINES_MAX:])
        yield Verdict(name, outcome, "" if outcome == PASSED else note)
