"""Apache's Go client: `tests/clients/go`, run with `go test` against a started server."""

import os
import shutil
from pathlib import Path

import pytest

from tests.clients.suite import run_suite

pytestmark = pytest.mark.clients

HERE = Path(__file__).parent.parent / "go"


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
@pytest.mark.timeout(900)
def test_the_go_client_passes_its_suite(tmp_path: Path) -> None:
    output = run_suite(["go", "test", "-count=1", "-v", "./..."], HERE, tmp_path, 840)
    assert "\nok " in output or output.startswith("ok ")
    skipped = output.count("--- SKIP")
    assert skipped == (3 if os.environ.get("PULSAR_TEST_URL") else 0), output
