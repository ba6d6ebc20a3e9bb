"""The tests of Apache's Node.js client, out of its repository at a release, against a standalone with the settings of their CI.

The tests get other ports; nothing else in them is changed. Their certificates and standalone.conf are used. The client's native
part is the one that its authors publish, or is compiled against an installed C++ client (`--cpp-client`, a prefix with include/
and lib/libpulsar.so) where that one cannot be fetched. Each file of tests runs in a process of its own.
Never in here: verdicts (verdicts.py).
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.strangers.go_suite import has_docker
from benchmarks.strangers.secured_standalone import Places, free_places, standalone
from benchmarks.strangers.verdicts import FAILED, PASSED, SKIPPED, Report, Verdict
from tests.toolchain import FETCH_SECONDS_MAX, run_bounded, run_tool

REPOSITORY = "https://github.com/apache/pulsar-client-node"
RELEASE = "1.18.0"
WANT_DOCKER = ("failover_client_test.test.js",)
"""Files whose tests start Apache's own broker in containers."""
_OUTCOMES = {"passed": PASSED, "failed": FAILED, "pending": SKIPPED, "todo": SKIPPED}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

KNOWN: dict[str, str] = {}
"""Tests that fail on every machine."""


def run(scratch: Path, repository: str, cpp_client: Path | None, pattern: str, seconds_max: float) -> Report:
    """Run the files of tests whose names match the pattern, all when it is empty."""
    places = free_places()
    clone = scratch / "pulsar-client-node"
    quiet = ["-c", "advice.detachedHead=false"]
    run_tool(["git", *quiet, "clone", "-q", "--branch", f"v{RELEASE}", repository, str(clone)], scratch, FETCH_SECONDS_MAX)
    environment = _built(clone, cpp_client)
    for path in (clone / "tests").glob("*.js"):
        path.write_text(places.moved(path.read_text()))
    found: list[Verdict] = []
    deadline = time.monotonic() + seconds_max
    with _server(scratch / "server", clone / "tests", places):
        for name in sorted(path.name for path in (clone / "tests").glob("*.test.js") if re.search(pattern, path.name)):
            if name in WANT_DOCKER and not has_docker():
                found.append(Verdict(name, SKIPPED, "wants Docker, which is not here"))
            else:
                found += _tested(clone, name, environment, max(1.0, deadline - time.monotonic()))
    return Report(f"pulsar-client-node {RELEASE}", tuple(found), KNOWN)


def _built(clone: Path, cpp_client: Path | None) -> Mapping[str, str]:
    """Install the client's libraries and its native part. Return the environment in which Node.js loads that part."""
    if cpp_client is None:
        run_tool(["npm", "install", "--no-audit", "--no-fund"], clone, FETCH_SECONDS_MAX)
        return os.environ
    run_tool(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], clone, FETCH_SECONDS_MAX)
    library = str(cpp_client / "lib")
    environment = {
        "CPLUS_INCLUDE_PATH": str(cpp_client / "include"),
        "LIBRARY_PATH": library,
        "LD_LIBRARY_PATH": os.pathsep.join([library, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]),
    }
    headers = Path(shutil.which("node") or "/usr/bin/node").resolve().parent.parent
    for step in ("configure", "build"):
        run_tool(["npx", "node-pre-gyp", step, f"--nodedir={headers}"], clone, FETCH_SECONDS_MAX, environment)
    run_tool(["node", "GenCertFile.js"], clone, FETCH_SECONDS_MAX, environment)
    return {**os.environ, **environment}


def _server(directory: Path, tests: Path, places: Places) -> AbstractContextManager[None]:
    text = places.moved((tests / "conf" / "standalone.conf").read_text())
    text = text.replace("/pulsar/test-conf/", f"{tests}/certificate/")
    return standalone(directory, text, places, ())


def _tested(clone: Path, name: str, environment: Mapping[str, str], seconds_max: float) -> list[Verdict]:
    """Verdicts of one file of tests; its output stays beside. A file without a report counts as a test that failed."""
    report = clone / f"{name}.json"
    jest = ["node", "node_modules/jest/bin/jest.js", "--verbose", "--forceExit"]
    command = [*jest, "--json", f"--outputFile={report}", f"tests/{name}"]
    run_bounded(command, clone, clone / f"{name}.log", seconds_max, environment)
    if not report.exists():
        return [Verdict(name, FAILED, f"wrote no report, see {name}.log")]
    return list(verdicts(name, report.read_text()))


def verdicts(file: str, report: str) -> Iterator[Verdict]:
    """One for each test of jest's report. A file that could not be loaded counts as a test that failed."""
    for suite in json.loads(report)["testResults"]:
        if not suite["assertionResults"]:
            yield Verdict(file, FAILED, _plain(suite["message"]))
        for test in suite["assertionResults"]:
            note = "" if test["status"] == "passed" else _plain(" ".join(test["failureMessages"]))
            yield Verdict(f"{file.partition('.')[0]}: {test['fullName']}", _OUTCOMES[test["status"]], note)


def _plain(text: str) -> str:
    return _COLOURS.sub("", text)
