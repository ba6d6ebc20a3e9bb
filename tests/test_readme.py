"""What the README shows works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.server_process import ROOT, ServerProcess

DEFAULT_URL = "pulsar://127.0.0.1:6650"


@pytest.mark.clients
def test_the_example_publishes_and_consumes(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len([line for line in block.splitlines() if line]) == 8
    assert DEFAULT_URL in block
    server = ServerProcess(tmp_path)
    try:
        program = block.replace(DEFAULT_URL, server.start().broker_url)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr
    assert re.search(r"^hello \(\d+,0,-1,-1\)$", done.stdout, re.MULTILINE), done.stdout
