"""Apache's `pulsar-admin` from Maven Central: everyday actions on a standalone, each checked by its effect (`java_admin`)."""

import re
import shutil
from pathlib import Path

import pytest

from tests.clients.server_process import ServerProcess
from tests.toolchain import maven_classpath, run_tool

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent.parent / "java_admin"


@pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Java toolchain")
@pytest.mark.timeout(600)
def test_apaches_pulsar_admin_does_what_it_says_120_times(tmp_path: Path) -> None:
    classpath = maven_classpath(HERE / "pom.xml", tmp_path)
    with ServerProcess(tmp_path) as server:
        ready = server.start()
        options = ["-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}", "-cp", classpath]
        output = run_tool(["java", *options, str(HERE / "Operator.java"), ready.web_url, ready.broker_url], tmp_path, 300)
    total = re.findall(r"(\d+) actions, 0 failed", output)
    assert total, output
    assert int(total[0]) >= 120
