"""Runs a test suite of another language against a server of its own, which the suite may kill through a named pipe."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.toolchain import ROOT, run_tool


def run_suite(command: Sequence[str], directory: Path, scratch: Path, seconds_max: float) -> str:
    """The suite's output; an assertion fails with it when the suite does, or is not done in time."""
    if os.environ.get("PULSAR_TEST_URL"):
        return run_tool(command, directory, seconds_max)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.clients.server_process"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as server:
        try:
            assert server.stdout is not None
            where = json.loads(server.stdout.readline())
            return run_tool(
                command,
                directory,
                seconds_max,
                {
                    "PULSAR_TEST_URL": where["broker"],
                    "PULSAR_TEST_WEB_URL": where["web"],
                    "RESTART_PIPE": where["pipe"],
                    "RESTART_DONE": where["done"],
                },
            )
        finally:
            server.terminate()
