"""Examples, commands and sources of the README work as they are."""

import os
import re
import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from cli.__main__ import server_parser
from tests.clients.server_process import ServerProcess
from tests.started_process import ROOT
from tests.toolchain import run_tool

DEFAULT_URL = "pulsar://127.0.0.1:6650"
README = (ROOT / "README.md").read_text()
INSTALLED = ["bin/build", "pip install dist/interpulse-*.whl", "interpulse standalone"]
"""Commands that `tests/installation` runs."""
COMPOSE = "docker compose up --build"
"""A command whose services `tests/clients/deployment/test_compose.py` runs as processes."""


def python_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def commands() -> list[str]:
    """The lines of the README's blocks of commands, without their comments."""
    return [
        line.strip().partition("  #")[0].strip() for line in README.splitlines() if line.startswith("    ") and "  #" in line
    ] + [line.strip() for line in README.splitlines() if line.startswith("    pip install")]


@pytest.mark.clients
def test_the_example_publishes_and_consumes(tmp_path: Path) -> None:
    block, _ = python_blocks()
    assert len([line for line in block.splitlines() if line]) == 8
    assert DEFAULT_URL in block
    with ServerProcess(tmp_path) as server:
        program = block.replace(DEFAULT_URL, server.start().broker_url)
        output = run_tool([sys.executable, "-c", program], tmp_path, 60)
    assert re.search(r"^hello \(\d+,0,-1,-1\)$", output, re.MULTILINE), output


@pytest.mark.clients
def test_the_fixture_of_the_example_gives_a_broker(tmp_path: Path) -> None:
    _, block = python_blocks()
    (tmp_path / "test_orders.py").write_text(block)
    path = os.pathsep.join((str(ROOT), str(tmp_path)))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "interpulse.pytest_plugin",
        "test_orders.py",
    ]
    assert "1 passed" in run_tool(command, tmp_path, 120, {"PYTHONPATH": path, "PYTEST_ADDOPTS": ""})


def test_every_command_is_one_that_there_is() -> None:
    found = commands()
    assert {"bin/pulsar standalone", "bin/test", COMPOSE, *INSTALLED} <= set(found)
    for line in set(found) - {COMPOSE, *INSTALLED}:
        program, *words = shlex.split(line)
        assert os.access(ROOT / program, os.X_OK), line
        if program == "bin/pulsar":
            server_parser().parsed(words)  # exits where an option or a command is not known


def test_every_figure_names_a_benchmark_that_there_is() -> None:
    named = re.findall(r"python -m (benchmarks(?:\.\w+)+)", README)
    assert len(named) == 3
    places = [(ROOT / f"{each.replace('.', '/')}{end}") for each in named for end in (".py", "/__main__.py")]
    assert len([place for place in places if place.is_file()]) == len(named), named


def test_every_cell_of_the_comparison_has_a_source_and_every_source_is_used() -> None:
    sources = dict(re.findall(r"^\[(\w\d)\]: (\S+)", README, re.MULTILINE))
    table = README.partition("\n## Beside others\n")[2].partition("\n[")[0]
    rows = [line.strip("|").split("|")[1:] for line in table.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert [cell for row in rows for cell in row if cell.strip() and not re.search(r"\[\w\d\] $", cell)] == []
    assert set(re.findall(r"\[(\w\d)\](?!:)", README)) == set(sources)
    ours = [source.partition("#")[0] for source in sources.values() if not source.startswith("https://")]
    assert [page for page in ours if not (ROOT / page).is_file()] == []


def test_the_picture_says_in_words_what_it_shows_and_has_colours_for_the_dark() -> None:
    (name,) = re.findall(r'<img src="([^"]+)"', README)
    picture = ET.parse(ROOT / name).getroot()
    texts = {child.tag.rpartition("}")[2]: child.text or "" for child in picture}
    assert texts["title"]
    assert texts["desc"]
    assert "prefers-color-scheme: dark" in texts["style"]
