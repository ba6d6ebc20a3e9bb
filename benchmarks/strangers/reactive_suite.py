"""The integration tests of Apache's reactive client, out of its repository, against a standalone.

They start a container through one class of theirs; `reactive/SingletonPulsarContainer.java` stands in its place. Nothing else
is changed. `ClosedTooSoon` beside it is ours: it shows on any broker how often a pipeline is closed before its last
acknowledgement.
Never in here: verdicts (verdicts.py).
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.strangers.verdicts import FAILED, PASSED, SKIPPED, Report, Verdict
from tests.clients.server_process import ServerProcess
from tests.toolchain import FETCH_SECONDS_MAX, QUICK_JAVA, maven_classpath, run_tool

REPOSITORY = "https://github.com/apache/pulsar-client-reactive"
TAG = "v0.6.0"
HERE = Path(__file__).resolve().parent / "reactive"
TESTS = "pulsar-client-reactive-adapter/src/intTest/java/org/apache/pulsar/reactive/client/adapter"
ROUNDS = 40


def run(scratch: Path, repository: str, against: tuple[str, str] | None, pattern: str, seconds_max: float) -> Report:
    """Run the classes whose names match the pattern, against the broker and web addresses, else a standalone of its own."""
    classpath = maven_classpath(HERE / "pom.xml", scratch)
    classes = _compiled(scratch, repository, pattern, classpath)
    with _server(scratch, against) as (broker_url, web_url):
        java = ["java", *QUICK_JAVA, f"-Dstrangers.broker={broker_url}", f"-Dstrangers.web={web_url}"]
        console = next(each for each in classpath.split(os.pathsep) if "console-standalone" in each)
        chosen = ["--scan-classpath", str(classes), "--include-classname", ".*E2ETests", "--reports-dir", str(scratch)]
        command = [*java, "-jar", console, "execute", "--disable-banner", "-cp", f"{classes}{os.pathsep}{classpath}", *chosen]
        run_tool(["/bin/sh", "-c", '"$@" || true', "sh", *command], scratch, seconds_max)
        for way in ("close", "wait"):
            program = [
                *java,
                "-cp",
                f"{classes}{os.pathsep}{classpath}",
                "ClosedTooSoon",
                broker_url,
                web_url,
                str(ROUNDS),
                way,
            ]
            print(f"A batch whose pipeline was closed, {way}:", run_tool(program, scratch, seconds_max).strip())
    return Report(f"pulsar-client-reactive {TAG[1:]}", tuple(verdicts(scratch / "TEST-junit-jupiter.xml")), {})


def _compiled(scratch: Path, repository: str, pattern: str, classpath: str) -> Path:
    clone, sources = scratch / "repository", scratch / "sources"
    quiet = ["-c", "advice.detachedHead=false"]
    run_tool(["git", *quiet, "clone", "-q", "--branch", TAG, repository, str(clone)], scratch, FETCH_SECONDS_MAX)
    sources.mkdir()
    theirs = [path for path in (clone / TESTS).glob("*E2ETests.java") if re.search(pattern, path.stem)]
    for path in (*theirs, *HERE.glob("*.java")):
        shutil.copy(path, sources)
    files = sorted(str(path) for path in sources.glob("*.java"))
    classes = scratch / "classes"
    run_tool(["javac", "-nowarn", "-d", str(classes), "-cp", classpath, *files], scratch, FETCH_SECONDS_MAX)
    return classes


@contextmanager
def _server(scratch: Path, against: tuple[str, str] | None) -> Iterator[tuple[str, str]]:
    if against is not None:
        yield against
        return
    with ServerProcess(scratch / "server") as server:
        ready = server.start()
        yield ready.broker_url, ready.web_url


def verdicts(report: Path) -> Iterator[Verdict]:
    """One for each test of JUnit's report, each of its parameters on its own."""
    for at, case in enumerate(ElementTree.parse(report).iter("testcase")):
        trouble = case.find("failure") if case.find("failure") is not None else case.find("error")
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}#{at}"
        if trouble is not None:
            yield Verdict(name, FAILED, trouble.get("message") or trouble.get("type") or "")
        else:
            yield Verdict(name, SKIPPED if case.find("skipped") is not None else PASSED)
