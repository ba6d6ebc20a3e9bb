"""Apache's own tests of its broker and Java client, out of the tests jar of pulsar-broker, against standalones of ours.

Those tests start a broker in their own process through one class, `MockedPulsarServiceBaseTest`. Ours in `java/` stands before
it on the class path: each test gets a standalone in a process of its own, with the configuration that the test wrote. A test
that asks for the insides of a broker (`pulsar.getBrokerService()`) cannot run so; it is skipped, with the method it wanted.
Names of topics with a cluster in them are changed (class_files.py): ours refuses them (docs/differences.md).
Never in here: verdicts (verdicts.py), and why a test is known to fail (java_known.py).
"""

import os
import re
import subprocess
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.strangers.class_files import without_clusters
from benchmarks.strangers.java_known import CLASSES, KNOWN, MAY_FAIL
from benchmarks.strangers.verdicts import FAILED, PASSED, SKIPPED, Report, Verdict, with_those_that_did_not_run
from tests.started_process import ROOT
from tests.toolchain import FETCH_SECONDS_MAX, maven_classpath, run_tool

HERE = Path(__file__).resolve().parent / "java"
MAIN = "interpulse.strangers.Told"
HEAP = "-Xmx768m"
OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.nio",
    "java.base/java.net",
    "java.base/java.io",
    "java.base/jdk.internal.misc",
    "java.base/sun.net",
    "java.management/sun.management",
)
"""Packages that the module's pom opens to its tests."""
_WORST_FIRST = (FAILED, PASSED, SKIPPED)
_OUTCOMES = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED}
NO_END = "did not end"


def run(scratch: Path, pattern: str, seconds_max: float) -> Report:
    """Run the tests `Class.method` that match the pattern; of all classes in java_known.py when it is empty."""
    told = maven_classpath(HERE / "pom.xml", scratch).split(os.pathsep)
    jar = next(each for each in told if re.fullmatch(r"pulsar-broker-[\d.]+-tests\.jar", Path(each).name))
    theirs = _unpacked(scratch, jar)
    classpath = os.pathsep.join([str(theirs), *(each for each in told if each != jar)])
    classes = scratch / "classes"
    sources = sorted(str(path) for path in HERE.rglob("*.java"))
    run_tool(["javac", "-nowarn", "-proc:none", "-d", str(classes), "-cp", classpath, *sources], scratch, FETCH_SECONDS_MAX)
    java = ["java", HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
    java += [word for each in OPENED for word in ("--add-opens", f"{each}=ALL-UNNAMED")]
    java += [f"-Dstrangers.tests={theirs}", f"-Dstrangers.scratch={scratch}", f"-Dstrangers.pulsar={ROOT / 'bin' / 'pulsar'}"]
    java += ["-cp", f"{classes}{os.pathsep}{classpath}", MAIN]
    events: list[str] = []
    deadline = time.monotonic() + seconds_max
    for name in CLASSES:
        simple = name.rpartition(".")[2]
        if re.search(pattern.partition(".")[0], simple):
            events += _tested(scratch, java, name, pattern, max(1.0, deadline - time.monotonic()))
    return Report("pulsar-broker's tests 4.0.8", verdicts(events), KNOWN, MAY_FAIL)


def _unpacked(scratch: Path, jar: str) -> Path:
    """Return the content of the jar, below the directory in which the tests look for certificates; topics get other names."""
    theirs = scratch / "src" / "test" / "resources"
    with zipfile.ZipFile(jar) as packed:
        packed.extractall(theirs)
    for compiled in theirs.rglob("*.class"):
        compiled.write_bytes(without_clusters(compiled.read_bytes()))
    return theirs


def _tested(scratch: Path, java: list[str], name: str, pattern: str, seconds_max: float) -> list[str]:
    """Lines that one class's tests wrote; their output stays beside. A class that wrote none counts as a test that failed."""
    simple = name.rpartition(".")[2]
    written = scratch / f"{simple}.events"
    with (scratch / f"{simple}.log").open("w") as log:
        command = [*java, str(written), name, pattern]
        running = subprocess.Popen(command, cwd=scratch, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            running.wait(seconds_max)
        except subprocess.TimeoutExpired:
            running.terminate()  # ends the standalones too
            running.wait()
    lines = written.read_text().splitlines() if written.exists() else []
    return lines or [f"listed\t{simple}: could not be loaded, see {simple}.log\t"]


def verdicts(lines: Iterable[str]) -> tuple[Verdict, ...]:
    """One for each test, whichever data it was given how often: failed when one of its runs failed or did not end."""
    listed: dict[str, None] = {}
    found: dict[str, list[Verdict]] = {}
    for line in lines:
        event, name, note = line.split("\t")
        if event == "listed":
            listed[name] = None
        elif event == "began":
            found.setdefault(name, []).append(Verdict(name, FAILED, NO_END))
        elif event in _OUTCOMES:
            of_one = found.setdefault(name, [])
            if of_one and of_one[-1].note == NO_END:
                of_one.pop()
            of_one.append(Verdict(name, _OUTCOMES[event], note))
    each_worst = (min(runs, key=lambda each: _WORST_FIRST.index(each.outcome)) for runs in found.values())
    return with_those_that_did_not_run(each_worst, listed)
