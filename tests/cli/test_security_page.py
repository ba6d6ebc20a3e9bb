"""The commands of docs/security.md do what it says."""

import os
import re
import subprocess
from pathlib import Path

from tests.started_process import ROOT


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "security.md").read_text(), re.DOTALL)
    script = "set -e\n" + "".join(blocks).replace("bin/pulsar", str(ROOT / "bin" / "pulsar"))
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PWD": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"sub": "alice"' in done.stdout


def test_the_settings_of_the_security_page_are_keys_that_are_read() -> None:
    from cli.configuration.loading import known_keys

    blocks = re.findall(r"```properties\n(.*?)```", (ROOT / "docs" / "security.md").read_text(), re.DOTALL)
    keys = {line.partition("=")[0] for block in blocks for line in block.splitlines()}
    assert len(keys) == 14
    assert keys <= set(known_keys())
