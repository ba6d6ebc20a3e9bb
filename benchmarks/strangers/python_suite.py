"""The tests of Apache's Python client, out of its repository at the release of the installed wheel, against a standalone.

PyPI's wheel holds no tests, so that the repository is cloned. Its tests get other ports; nothing else in them is changed. Its
certificates, passwords and standalone-ssl.conf are used. Each file of tests runs in a process of its own, as in its CI.
Never in here: verdicts (verdicts.py), and why a test is known to fail (python_known.py).
"""

import json
import re
import sys
import time
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.strangers.python_known import KNOWN, MAY_FAIL
from benchmarks.strangers.secured_standalone import Places, Preparation, free_places, standalone
from benchmarks.strangers.verdicts import FAILED, PASSED, SKIPPED, Report, Verdict, with_those_that_did_not_run
from tests.started_process import ROOT
from tests.toolchain import FETCH_SECONDS_MAX, run_bounded, run_tool

REPOSITORY = "https://github.com/apache/pulsar-client-python"
RELEASE = "3.13.0"
TAG = f"v{RELEASE}-candidate-1"
"""The candidate that became the release."""
NO_END = "did not end"
TOKEN_SECONDS_MAX = 30.0
EVENTS = Path(__file__).with_name("unittest_events.py")
_OUTCOMES = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED}
_FIXTURE = re.compile(r"(?:setUpClass|setUpModule) \((.+)\)")
_PREPARATION = (
    "tenants update public -r anonymous",
    "namespaces grant-permission public/default --actions produce,consume --role anonymous",
    "namespaces create public/default-2",
    "namespaces grant-permission public/default-2 --actions produce,consume --role anonymous",
    "tenants create private",
    "namespaces create private/auth",
    "namespaces grant-permission private/auth --actions produce,consume --role token-principal",
)
"""Commands of build-support/start-test-service-inside-container.sh of the repository."""


def run(scratch: Path, repository: str, pattern: str, seconds_max: float) -> Report:
    """Run the tests whose names match the pattern, all when it is empty."""
    assert version("pulsar-client") == RELEASE, f"the tests of {TAG} want pulsar-client {RELEASE}"
    places = free_places()
    tests = _tests(scratch, repository, places)
    events: list[dict[str, Any]] = []
    deadline = time.monotonic() + seconds_max
    with _server(scratch, tests, places):
        for module in sorted(path.stem for path in tests.glob("*_test.py")):
            events += _tested(tests, module, pattern, max(1.0, deadline - time.monotonic()))
    return Report(f"pulsar-client-python {RELEASE}", verdicts(events), KNOWN, MAY_FAIL)


def _tests(scratch: Path, repository: str, places: Places) -> Path:
    clone = scratch / "pulsar-client-python"
    quiet = ["-c", "advice.detachedHead=false"]
    run_tool(["git", *quiet, "clone", "-q", "--branch", TAG, repository, str(clone)], scratch, FETCH_SECONDS_MAX)
    tests = clone / "tests"
    for path in tests.glob("*_test.py"):
        path.write_text(places.moved(path.read_text()))
    return tests


def _server(scratch: Path, tests: Path, places: Places) -> AbstractContextManager[None]:
    theirs = tests / "test-conf"
    secret = scratch / "secret.key"
    _tokens("create-secret-key", "--output", str(secret))
    (tests / ".test-token.txt").write_text(_token(secret, "token-principal"))
    text = (theirs / "standalone-ssl.conf").read_text()
    text = text.replace("=test-conf/", f"={theirs}/").replace("file:///pulsar/data/tokens/secret.key", f"file://{secret}")
    passwords = f"basicAuthConf=file://{theirs}/.htpasswd"
    return standalone(scratch / "server", text, places, (passwords,), Preparation(_token(secret, "superUser"), _PREPARATION))


def _token(secret: Path, role: str) -> str:
    return _tokens("create", "--subject", role, "--secret-key", f"file://{secret}").strip()


def _tokens(*words: str) -> str:
    return run_tool([str(ROOT / "bin" / "pulsar"), "tokens", *words], ROOT, TOKEN_SECONDS_MAX)


def _tested(tests: Path, module: str, pattern: str, seconds_max: float) -> list[dict[str, Any]]:
    """Events of one file of tests; its output stays beside them. A file that wrote no list counts as a test that failed."""
    written = tests / f"{module}.events"
    command = [sys.executable, str(EVENTS), str(written), module, pattern]
    run_bounded(command, tests, tests / f"{module}.log", seconds_max)
    if not written.exists():
        return [{"event": "listed", "tests": [f"{module}: could not be loaded, see {module}.log"]}]
    return [json.loads(line) for line in written.read_text().splitlines()]


def verdicts(events: list[dict[str, Any]]) -> tuple[Verdict, ...]:
    """Return one for each test. One that did not run or did not end has failed, as has one of which a part failed."""
    listed = [test for event in events if event["event"] == "listed" for test in event["tests"]]
    found: dict[str, Verdict] = {}
    for event in events:
        outcome = _OUTCOMES.get(event["event"])
        for name in _tests_of(event.get("test", ""), listed):
            if event["event"] == "began":
                found[name] = Verdict(name, FAILED, NO_END)
            elif outcome is not None and (name not in found or found[name].note == NO_END):
                found[name] = Verdict(name, outcome, event.get("note", ""))
    return with_those_that_did_not_run(found.values(), listed)


def _tests_of(name: str, listed: list[str]) -> list[str]:
    """Return the test of the name, or all tests of a class or module whose set-up was skipped or failed."""
    fixture = _FIXTURE.fullmatch(name)
    return [test for test in listed if test.startswith(f"{fixture[1]}.")] if fixture else [name]
