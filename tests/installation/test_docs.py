"""The documentation: its links lead somewhere, and what it tells people to type works."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.__main__ import server_parser
from tests.clients.server_process import Ready, given_or_started
from tests.licences import ROOT
from tests.toolchain import FETCH_SECONDS_MAX, QUICK_JAVA, maven_classpath, off_the_clock, run_tool

DOCS = ROOT / "docs"
NEW_PAGES = ("getting-started", "testing", "concepts", "migrating", "operations", "kubernetes", "clusters")
BROKER, WEB = "pulsar://127.0.0.1:6650", "http://127.0.0.1:8080"
CLIENT_POM = ROOT / "tests" / "clients" / "java" / "pom.xml"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    with given_or_started(tmp_path_factory.mktemp("docs")) as ready:
        yield ready


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """The words of each indented line that begins with a program of bin/."""
    lines = (DOCS / f"{page}.md").read_text().splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("    bin/")]


def test_the_site_is_built_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    with off_the_clock():
        run_tool([str(ROOT / "bin" / "docs"), str(tmp_path / "site")], ROOT, FETCH_SECONDS_MAX)
    assert "Interpulse" in (tmp_path / "site" / "index.html").read_text()
    assert (tmp_path / "site" / "getting-started" / "index.html").exists()


@pytest.mark.clients
def test_getting_started_works_in_python_in_java_and_on_the_command_line(server: Ready, tmp_path: Path) -> None:
    def here(text: str) -> str:
        return text.replace(BROKER, server.broker_url).replace(WEB, server.web_url)

    (program,) = blocks("getting-started", "python")
    output = run_tool([sys.executable, "-c", here(program)], tmp_path, 60)
    assert [line for line in output.splitlines() if line.startswith("order ")] == [
        f"order {n} {{'country': 'NZ'}}" for n in range(3)
    ]
    if shutil.which("java"):
        (source,) = blocks("getting-started", "java")
        (tmp_path / "Orders.java").write_text(here(source))
        command = ["java", *QUICK_JAVA, "-cp", maven_classpath(CLIENT_POM, tmp_path), str(tmp_path / "Orders.java")]
        assert "NZ: one book" in run_tool(command, tmp_path, 120)
    conf = tmp_path / "client.conf"
    conf.write_text(f"webServiceUrl={server.web_url}\nbrokerServiceUrl={server.broker_url}\n")
    tools = [words for words in commands("getting-started") if words[0] != "bin/pulsar"]
    assert len(tools) == 5
    for program_path, *words in tools:
        output = run_tool([str(ROOT / program_path), *words], tmp_path, 60, {"PULSAR_CLIENT_CONF": str(conf)})
        assert output.strip(), words


@pytest.mark.clients
def test_the_program_with_a_broker_of_its_own_runs(tmp_path: Path) -> None:
    _, program = blocks("testing", "python")
    output = run_tool([sys.executable, "-c", program], tmp_path, 60, {"PYTHONPATH": str(ROOT)})
    assert re.search(r"^pulsar://127\.0\.0\.1:\d+ persistent://public/default/orders$", output, re.MULTILINE)


@pytest.mark.parametrize("page", NEW_PAGES)
def test_every_command_of_the_page_is_one_that_there_is(page: str) -> None:
    for program, *words in commands(page):
        given = [word.replace("PID", "1") for word in words]
        if program == "bin/pulsar" and given[0] not in ("doctor", "config"):
            server_parser().parsed(given)  # exits where an option or a command is not known
        elif program == "bin/pulsar":
            done = subprocess.run([str(ROOT / program), given[0], "--help"], capture_output=True, text=True, check=False)
            assert {word for word in given if word.startswith("--")} <= set(re.findall(r"--[\w-]+", done.stdout)), given
        else:
            assert (ROOT / program).exists(), program
