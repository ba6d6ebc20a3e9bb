"""What the README shows works as it stands there."""

import re
import sys
from pathlib import Path

import pytest

from tests.clients.server_process import ServerProcess
from tests.started_process import ROOT
from tests.toolchain import run_tool

DEFAULT_URL = "pulsar://127.0.0.1:6650"


@pytest.mark.clients
def test_the_example_publishes_and_consumes(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len([line for line in block.splitlines() if line]) == 8
    assert DEFAULT_URL in block
    with ServerProcess(tmp_path) as server:
        program = block.replace(DEFAULT_URL, server.start().broker_url)
        output = run_tool([sys.executable, "-c", program], tmp_path, 60)
    assert re.search(r"^hello \(\d+,0,-1,-1\)$", output, re.MULTILINE), output
