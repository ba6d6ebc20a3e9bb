"""Apache's own BookieShell 4.17.3 understands our bookies and what they and our client have written."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.bookkeeper_shell.shell_cluster import Cluster, Shell, a_ledger
from tests.toolchain import maven_classpath, run_tool

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

JAVA = Path(__file__).parent / "java"
SECONDS_MAX = 240.0


def test_apaches_shell_lists_reads_and_tries_our_bookies(cluster: Cluster, shell: Shell, tmp_path: Path) -> None:
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("needs java and mvn for Apache's BookieShell")
    classpath = maven_classpath(JAVA / "pom.xml", tmp_path)
    ledger_id, cookie_of = a_ledger(cluster, 3, password="pw"), cluster.bookies[0].bookie_id
    commands = [
        "listbookies -rw",
        f"ledgermetadata -l {ledger_id}",
        f"readledger -l {ledger_id} -fe 0 -le 2",
        f"cookie_get {cookie_of}",
    ]
    logged = [f"-Dorg.slf4j.simpleLogger.{each}" for each in ("logFile=System.out", "log.org.apache.zookeeper=error")]
    command = [
        "java",
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        *logged,
        "-cp",
        classpath,
        str(JAVA / "Commands.java"),
        cluster.uri,
        *commands,
    ]
    written = run_tool(command, tmp_path, SECONDS_MAX)
    assert written.count("code 0\n") == len(commands), written
    for bookie in cluster.bookies:
        assert f" - BookieID:{bookie.bookie_id}, IP:127.0.0.1, Port:{bookie.port}, Hostname:" in written
    ours = shell("ledgermetadata", "-l", str(ledger_id)).out.splitlines()
    assert all(f" - {line}\n" in written for line in ours)
    assert re.findall(rf"Lid={ledger_id}, Eid=(\d)", written) == ["0", "1", "2"]
    assert f"{shell('cookie_get', cookie_of).out.removesuffix('---' + chr(10))}" in written
