"""One version for every program, and what `--version` tells."""

import json
import os
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from broker.connection.session import BROKER_PROTOCOL_VERSION
from cli.__main__ import main as pulsar
from cli.admin.tool import main as admin
from cli.bookkeeper_shell.__main__ import main as bookkeeper
from cli.client.__main__ import main as client
from cli.perf.__main__ import main as perf
from cli.version import PROTOCOL_VERSION, ROOT, VERSION
from pipeline import pyspark_pulsar

PROGRAMS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "pulsar-admin": admin,
    "pulsar-client": client,
    "pulsar-perf": perf,
    "bookkeeper": bookkeeper,
    "interpulse": pulsar,
}


def test_all_that_name_a_version_name_the_same() -> None:
    for place, source in ((ROOT, "cli.version.VERSION"), (ROOT / "pipeline", "pyspark_pulsar.VERSION")):
        project = tomllib.loads((place / "pyproject.toml").read_text())
        assert project["project"]["dynamic"] == ["version"], place
        assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": source}, place
    assert pyspark_pulsar.VERSION == VERSION
    assert PROTOCOL_VERSION == BROKER_PROTOCOL_VERSION


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("word", ["--version", "-v"])
def test_every_program_tells_version_commit_python_kernels_and_protocol(
    program: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert PROGRAMS[program]([word]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{program} {VERSION}"
    assert [line.partition(":")[0] for line in lines[1:]] == ["commit", "python", "kernels", "protocol"]


def test_the_commit_is_the_one_that_git_names(capsys: pytest.CaptureFixture[str]) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ran = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True, env=environment
    )
    assert pulsar(["version", "--json"]) == 0
    assert ran.stdout.startswith(json.loads(capsys.readouterr().out)["commit"])


def test_without_a_checkout_the_commit_is_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cli.version.ROOT", tmp_path)
    assert pulsar(["version"]) == 0
    told = capsys.readouterr().out
    assert "commit: not known" in told
    assert "kernels: not compiled" in told
