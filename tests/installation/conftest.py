"""The wheel of this checkout, as a stranger has it: installed in a new environment, used from a folder of their own."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.licences import ROOT, locked, locks
from tests.toolchain import FETCH_SECONDS_MAX, off_the_clock, run_tool

WITH_IT = ("pulsar-client", "pytest")
"""Packages that a stranger's project has besides: Apache's client, and a test runner."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment in which the wheel is installed."""

    environment: Path
    wheel: Path
    source: Path

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"

    def program(self, name: str) -> str:
        """The path of an installed program."""
        return str(self.environment / "bin" / name)

    def site_packages(self) -> Path:
        (found,) = self.environment.glob("lib/python*/site-packages")
        return found


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """`bin/build`, then `pip install` of what it made."""
    scratch = tmp_path_factory.mktemp("installation")
    with off_the_clock():
        run_tool([str(ROOT / "bin" / "build"), str(scratch / "dist")], ROOT, FETCH_SECONDS_MAX)
        (wheel,) = (scratch / "dist").glob("*.whl")
        (source,) = (scratch / "dist").glob("*.tar.gz")
        run_tool([sys.executable, "-m", "venv", "environment"], scratch, FETCH_SECONDS_MAX)
        pins = scratch / "pins.txt"
        pins.write_text("\n".join(_pins()))
        command = [str(scratch / "environment" / "bin" / "python"), "-m", "pip", "install", "--quiet", "-c", str(pins)]
        run_tool([*command, str(wheel), *WITH_IT], scratch, FETCH_SECONDS_MAX)
    return Installation(scratch / "environment", wheel, source)


def _pins() -> list[str]:
    """The locked versions, so that a run says something about the change and not about a library's newest release."""
    pinned = [lock for lock in locks() if lock.stem in ("requirements", "requirements-dev")]
    lines = {line.split(" ")[0] for lock in pinned for line in lock.read_text().splitlines() if "==" in line}
    assert len(lines) >= len(set().union(*map(locked, pinned)))
    return sorted(lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stranger's project: nothing of the checkout is in it or above it."""
    assert ROOT not in tmp_path.parents
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def run_in(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command in a stranger's folder, without the variables of this test run."""
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False, timeout=120)


def wait_for(holds: Callable[[], bool], seconds_max: float = 60.0) -> None:
    """Ask again and again. AssertionError when it does not come to that."""
    deadline = time.monotonic() + seconds_max
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        pause.wait(0.01)
