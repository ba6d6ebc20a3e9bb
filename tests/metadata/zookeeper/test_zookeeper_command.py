"""`bin/pulsar zookeeper` as a process: an ensemble of three whose leader is killed, and what it says to wrong settings."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.metadata.conftest import open_on
from tests.metadata.test_store import run
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, keep_classpath, need_zookeeper
from tests.started_process import ROOT, free_port


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[list[ZooKeeperProcess]]:
    """Three servers that elect a leader among them."""
    need_zookeeper()
    ports = [free_port() for _ in range(6)]
    peers = [f"server.{number}=127.0.0.1:{ports[2 * number - 2]}:{ports[2 * number - 1]}" for number in (1, 2, 3)]
    servers = [ZooKeeperProcess(tmp_path / str(number), f"myid={number}", *peers) for number in (1, 2, 3)]
    with ExitStack() as running:
        for server in servers:
            running.enter_context(server).launch()
        yield [server.wait_until_ready() for server in servers]


def mode_of(server: ZooKeeperProcess) -> str:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"srvr")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    return next(line.removeprefix("Mode: ") for line in answer.decode().splitlines() if line.startswith("Mode: "))


def test_an_ensemble_goes_on_without_its_leader(ensemble: list[ZooKeeperProcess]) -> None:
    async def scenario() -> None:
        store = await open_on(",".join(server.servers for server in ensemble), timeout_seconds=60)
        await store.put("/w/before", b"1")
        await store.put("/mine", b"", ephemeral=True)
        modes = {mode_of(server): server for server in ensemble}
        assert set(modes) == {"leader", "follower"}
        await asyncio.to_thread(modes["leader"].kill)
        stat = await store.put("/w/before", b"2", 0)
        assert stat.version == 1
        assert await store.exists("/mine")
        await store.close()

    run(scenario())


def say(tmp_path: Path, *arguments: str, environment: dict[str, str] | None = None) -> str:
    command = [str(ROOT / "bin" / "pulsar"), "zookeeper", "--data-dir", str(tmp_path / "data"), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | (environment or {}), timeout=60
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--set", "clientPort"), "--set clientPort: expected KEY=VALUE"),
        (("--set", "clientPort=x"), "clientPort=x: expected 0 to 65535"),
        (("--set", "server.1=h:1:2"), "add --set myid=N"),
    ],
)
def test_a_bad_setting_is_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in say(tmp_path, *arguments)


def test_without_java_it_says_what_to_install(tmp_path: Path) -> None:
    assert "no Java found: install Java 17 or later" in say(tmp_path, environment={"JAVA_HOME": str(tmp_path)})


def test_a_port_that_is_taken_is_named(zookeeper: ZooKeeperProcess, tmp_path: Path) -> None:
    keep_classpath(tmp_path / "data")
    assert f"something answers on port {zookeeper.port} already" in say(tmp_path, "--set", f"clientPort={zookeeper.port}")
