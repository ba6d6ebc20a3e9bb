"""The examples of `docs/command-lines.md` do what the page says, in its order, against one server."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.server_process import Ready, ServerProcess

ROOT = Path(__file__).resolve().parents[3]
SECONDS_MAX = 100.0
FOR_EVER = "# for ever"

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def transactional(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    with ServerProcess(tmp_path_factory.mktemp("page"), ("transactionCoordinatorEnabled=true",)) as server:
        yield server.start()


def examples() -> list[str]:
    lines = (ROOT / "docs" / "command-lines.md").read_text().splitlines()
    return [line.strip() for line in lines if line.startswith("    bin/pulsar-")]


def test_there_are_examples_of_every_command() -> None:
    tools = {tuple(line.split()[:2]) for line in examples()}
    assert {name for tool, name in tools if tool == "bin/pulsar-client"} == {"produce", "consume", "read"}
    assert {name for tool, name in tools if tool == "bin/pulsar-perf"} == {"produce", "consume", "read", "transaction"}


def test_every_example_does_what_it_says(transactional: Ready, tmp_path: Path) -> None:
    conf = tmp_path / "client.conf"
    conf.write_text(f"webServiceUrl={transactional.web_url}\nbrokerServiceUrl={transactional.broker_url}\n")
    environment = {**os.environ, "PULSAR_CLIENT_CONF": str(conf)}
    for line in examples():
        words = shlex.split(line, comments=True)
        command = [str(ROOT / words[0]), *words[1:]]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            if FOR_EVER in line:
                process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=SECONDS_MAX)
        assert first, (line, err)
        assert process.returncode == (130 if FOR_EVER in line else 0), (line, err)
