"""The commands of `docs/more-cores.md` do what the page says, in its order, on ports and directories of the test."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.clients.several_processes import Several, free_ports
from tests.prometheus_text import families
from tests.started_process import ROOT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

PAGE = ROOT / "docs" / "more-cores.md"
SECONDS_MAX = 100.0


def commands() -> list[str]:
    return [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    ")]


def started(directory: Path, line: str, *more: str) -> Several:
    """A line that starts several processes, with some settings behind it."""
    several = Several(directory, "", 0)
    sets = [word for each in more for word in ("--set", each)]
    words = shlex.split(line)
    several.command = [str(ROOT / words[0]), *words[1:], *sets, "--json-ready", str(several.ready_file)]
    return several.start()


def test_the_commands_are_the_ones_that_are_tried_here() -> None:
    tools = [" ".join(line.split()[:2]) for line in commands()]
    assert tools == ["bin/pulsar broker", "bin/pulsar-admin namespaces", "bin/pulsar bookie", "curl http://HOST:8080/metrics"]


def test_every_command_does_what_the_page_says(tmp_path: Path, servers: str) -> None:
    broker, create, bookie, scrape = commands()
    ports, web, bookies = free_ports(), free_ports(), free_ports()
    known = {
        "ZOOKEEPER:2181": servers,
        "NAME": "test",
        "ADDRESS": "127.0.0.1",
        "/disk": f"{tmp_path}/disk",
        "HOST:8080": f"127.0.0.1:{web}",
    }
    for word, value in known.items():
        broker, bookie, scrape = broker.replace(word, value), bookie.replace(word, value), scrape.replace(word, value)
    storage = started(tmp_path / "bookie", bookie, f"bookiePort={bookies}", "autoRecoveryDaemonEnabled=false")
    where = (f"brokerServicePort={ports}", f"webServicePort={web}", "bindAddress=127.0.0.1")
    with storage, started(tmp_path / "broker", broker, *where) as brokers:
        tool, *words = shlex.split(create)
        command = [str(ROOT / tool), "--admin-url", f"http://127.0.0.1:{web}", *words]
        subprocess.run(command, check=True, timeout=SECONDS_MAX)
        text = subprocess.run(scrape.split(), capture_output=True, text=True, check=True, timeout=SECONDS_MAX).stdout
        assert len(families(text)["supervised_process_up"].samples) == 2
        assert sorted(json.loads(storage.ready_file.read_text())["processes"][1]) == ["bookieId", "bookiePort", "number", "pid"]
        assert (brokers.stop(), storage.stop()) == (0, 0)
