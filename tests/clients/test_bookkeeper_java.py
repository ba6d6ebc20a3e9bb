"""Apache's Java BookKeeper client: `tests/clients/bookkeeper_java`, run with Maven against three bookies and a real ZooKeeper.

With BOOKIES_METADATA_URI set, the suite runs against the bookies registered there (Apache's own, to test the tests).
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.bookie_process import BookieProcess
from tests.metadata.zookeeper_server import ZooKeeperProcess, need_zookeeper

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent / "bookkeeper_java"


@pytest.fixture
def metadata_service_uri(tmp_path: Path) -> Iterator[str]:
    """Of a cluster with three bookies."""
    given = os.environ.get("BOOKIES_METADATA_URI")
    if given:
        yield given
        return
    need_zookeeper()
    zookeeper = ZooKeeperProcess(tmp_path / "zookeeper").start()
    uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
    bookies = [BookieProcess(tmp_path / f"bookie-{number}", uri).start() for number in range(3)]
    yield uri
    for bookie in bookies:
        assert bookie.stop() == 0, bookie.log.read_text()
    assert zookeeper.stop() == 0, zookeeper.log.read_text()
    logs = "".join(bookie.log.read_text() for bookie in bookies)
    assert "level=error" not in logs, logs


@pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Java toolchain")
@pytest.mark.timeout(600)
def test_the_java_bookkeeper_client_passes_its_suite(metadata_service_uri: str) -> None:
    environment = {**os.environ, "BOOKIES_METADATA_URI": metadata_service_uri}
    done = subprocess.run(["mvn", "-B", "-ntp", "test"], cwd=HERE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    total = re.findall(r"Tests run: (\d+), Failures: 0, Errors: 0, Skipped: 0", done.stdout)[-1]
    assert int(total) >= 29, done.stdout
