"""Runs a test suite of another language against a server of its own, which the suite may kill through a named pipe."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def run_suite(command: Sequence[str], directory: Path, scratch: Path) -> str:
    """The suite's output; an assertion fails with it when the suite does."""
    if os.environ.get("PULSAR_TEST_URL"):
        return _run(command, directory, {})
    with subprocess.Popen(
        [sys.executable, "-m", "tests.clients.server_process"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as server:
        try:
            assert server.stdout is not None
            where = json.loads(server.stdout.readline())
            return _run(
                command,
                directory,
                {
                    "PULSAR_TEST_URL": where["broker"],
                    "PULSAR_TEST_WEB_URL": where["web"],
                    "RESTART_PIPE": where["pipe"],
                    "RESTART_DONE": where["done"],
                },
            )
        finally:
            server.terminate()


def _run(command: Sequence[str], directory: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=directory, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
