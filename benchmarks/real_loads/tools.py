"""The programs that put loads on a broker: the neutral load tool, the client beside this module, Apache's Python client.

Each prints JSON lines; the last one is the row. Never in here: which load, and how often.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from tests.toolchain import FETCH_SECONDS_MAX, ROOT, run_tool

CLIENT = Path(__file__).parent / "client"
RUN_SECONDS_MAX = 300.0

Row = dict[str, Any]


class Tool(Enum):
    """A program that puts a load on a broker."""

    LOAD = "the neutral load tool, on Apache's Go client or on plain TCP"
    CLIENT = "the program in client/, on Apache's Go client or on plain TCP"
    PYTHON = "Apache's Python client, which is the one for C++"


@dataclass(frozen=True, slots=True)
class Tools:
    """Places of the programs."""

    load: Path
    client: Path

    def command(self, tool: Tool, words: Sequence[str]) -> list[str]:
        match tool:
            case Tool.LOAD:
                return [str(self.load), *words]
            case Tool.CLIENT:
                return [str(self.client), *words]
            case Tool.PYTHON:
                return [sys.executable, "-m", "benchmarks.real_loads.python_client", *words]


def built(load: Path, scratch: Path) -> Tools:
    """Build the client; with an empty cache that takes minutes."""
    client = scratch / "client"
    run_tool(["go", "build", "-o", str(client), "."], CLIENT, FETCH_SECONDS_MAX)
    return Tools(load, client)


def run(command: Sequence[str], seconds_max: float = RUN_SECONDS_MAX) -> Row:
    """Run the program to its end; a row with `error` where it fails or takes too long."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=seconds_max, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done in {seconds_max:.0f} s"}
    return last_row(done.stdout, done.stderr)


def last_row(output: str, errors: str) -> Row:
    try:
        row: Row = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": (errors.strip().splitlines() or ["no row was printed"])[-1]}
    return row
