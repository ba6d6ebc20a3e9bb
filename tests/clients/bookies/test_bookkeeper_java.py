"""Apache's Java BookKeeper client: `tests/clients/bookkeeper_java`, run with Maven against three bookies and a real ZooKeeper.

With BOOKIES_METADATA_URI set, the suite runs against the bookies registered there (Apache's own, to test the tests).
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.bookie_process import BookieProcess
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.toolchain import run_tool

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent.parent / "bookkeeper_java"


@pytest.fixture
def metadata_service_uri(tmp_path: Path) -> Iterator[str]:
    """Metadata of a cluster with three bookies."""
    given = os.environ.get("BOOKIES_METADATA_URI")
    if given:
        yield given
        return
    need_zookeeper()
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(tmp_path / "zookeeper")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        bookies = [running.enter_context(BookieProcess(tmp_path / f"bookie-{number}", uri)).start() for number in range(3)]
        yield uri
        for bookie in bookies:
            assert bookie.stop() == 0, bookie.log.read_text()
        assert zookeeper.stop() == 0, zookeeper.log.read_text()
    logs = "".join(bookie.log.read_text() for bookie in bookies)
    assert "level=error" not in logs, logs


@pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Java toolchain")
@pytest.mark.timeout(1200)
def test_the_java_bookkeeper_client_passes_its_suite(metadata_service_uri: str) -> None:
    output = run_tool(["mvn", "-B", "-ntp", "test"], HERE, 1140, {"BOOKIES_METADATA_URI": metadata_service_uri})
    total = re.findall(r"Tests run: (\d+), Failures: 0, Errors: 0, Skipped: 0", output)[-1]
    assert int(total) >= 29, output
