"""A Spring Boot application with listeners, batches, a reactive client, dead letters and transactions, against a standalone.

The application is in spring/; Spring and Apache's client come from Maven Central. Its checks print one line each. Two of them
time messages that are sent one after another, and sent together.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.strangers.verdicts import FAILED, PASSED, Report, Verdict
from tests.clients.server_process import ServerProcess
from tests.toolchain import FETCH_SECONDS_MAX, maven_classpath, run_tool

HERE = Path(__file__).resolve().parent / "spring"
MAIN = "interpulse.strangers.Application"
_CHECK = re.compile(r"^check (\w+) (passed|failed) (\d+) ?(.*)$", re.MULTILINE)


def run(scratch: Path, against: tuple[str, str] | None, messages: int, seconds_max: float) -> Report:
    """Run the application against the broker and web addresses, else against a standalone of its own."""
    classpath = maven_classpath(HERE / "pom.xml", scratch)
    classes = _compiled(scratch, classpath)
    with _server(scratch, against) as (broker_url, web_url):
        settings = [
            f"--spring.pulsar.client.service-url={broker_url}",
            f"--spring.pulsar.admin.service-url={web_url}",
            "--spring.pulsar.transaction.enabled=true",
            "--logging.level.root=WARN",
        ]
        command = ["java", f"-Dmessages={messages}", "-cp", f"{classes}{os.pathsep}{classpath}", MAIN, *settings]
        output = run_tool(["/bin/sh", "-c", '"$@" || true', "sh", *command], scratch, seconds_max)
    (scratch / "spring.log").write_text(output)
    return Report("Spring Boot", tuple(_verdicts(output)), {})


def _compiled(scratch: Path, classpath: str) -> Path:
    classes = scratch / "classes"
    sources = sorted(str(path) for path in HERE.rglob("*.java"))
    run_tool(["javac", "-parameters", "-d", str(classes), "-cp", classpath, *sources], scratch, FETCH_SECONDS_MAX)
    return classes


@contextmanager
def _server(scratch: Path, against: tuple[str, str] | None) -> Iterator[tuple[str, str]]:
    if against is not None:
        yield against
        return
    with ServerProcess(scratch / "server", ("transactionCoordinatorEnabled=true",)) as server:
        ready = server.start()
        yield ready.broker_url, ready.web_url


def _verdicts(output: str) -> Iterator[Verdict]:
    for name, outcome, milliseconds, note in _CHECK.findall(output):
        yield Verdict(name, PASSED if outcome == "passed" else FAILED, note or f"{int(milliseconds) / 1000:.2f} s")
