"""Apache's Java client: `tests/clients/java`, run with Maven against a started server."""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.clients.suite import run_suite

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent.parent / "java"


@pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Java toolchain")
@pytest.mark.timeout(1200)
def test_the_java_client_passes_its_suite(tmp_path: Path) -> None:
    output = run_suite(["mvn", "-B", "-ntp", "test"], HERE, tmp_path, 1140)
    total = re.findall(r"Tests run: (\d+), Failures: 0, Errors: 0, Skipped: (\d+)", output)[-1]
    assert int(total[0]) >= 40, output
    assert int(total[1]) == (5 if os.environ.get("PULSAR_TEST_URL") else 0), output
