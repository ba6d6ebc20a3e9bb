"""The cluster of docker-compose.yml as processes of this machine, in the order of its `depends_on`, with a real ZooKeeper."""

import contextlib
import os
import random
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import pytest

from tests.clients.deployment.compose_file import Places, is_ours
from tests.clients.python_client import until
from tests.metadata.zookeeper.zookeeper_server import keep_classpath, need_zookeeper
from tests.started_process import READY_SECONDS_MAX, ROOT, StartedProcess

SYSTEM = ("HOME", "LANG", "TMPDIR", "JAVA_HOME")
"""Variables taken from the tests' environment: a container would have its own."""

PORTS = (2181, 2888, 3888, 3181, 8000, 6650, 8080)


def free_network() -> str:
    """The first three numbers of addresses that no other test has. Skips the test where a port is taken on every address."""
    chance = random.SystemRandom()
    network = f"127.{chance.randrange(1, 255)}.{chance.randrange(255)}"
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((f"{network}.1", port))
            except OSError as error:
                pytest.skip(f"port {port} is taken on this machine, also of {network}.1: {error}")
    return network


class Service(StartedProcess):
    """One of ours. It is ready when its health check says so, as it is for those who run the file."""

    def __init__(self, name: str, places: Places) -> None:
        super().__init__(places.directory / name)
        self.name, self._places = name, places
        (self.directory).mkdir(parents=True, exist_ok=True)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _environment(self) -> dict[str, str]:
        return {**{name: os.environ[name] for name in SYSTEM if name in os.environ}, **self._places.environment(self.name)}

    def start(self) -> Self:
        command = ["env", "-i", *(f"{name}={value}" for name, value in self._environment().items())]
        self.launch_command([*command, *self._places.command(self.name)])
        return self

    def is_healthy(self) -> bool:
        command = self._places.health_check(self.name)
        done = subprocess.run(command, env=self._environment(), capture_output=True, check=False, timeout=60)
        return done.returncode == 0

    def wait_until_healthy(self) -> None:
        """A check costs as much as a start: the first one waits for the line that says that it will pass."""
        until(lambda: self._has_ended() or "what=ready " in self.log.read_text(), READY_SECONDS_MAX)
        until(lambda: self._has_ended() or self.is_healthy(), READY_SECONDS_MAX)
        assert not self._has_ended(), self.log.read_text()

    def _has_ended(self) -> bool:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.05)
            return True
        return False

    def finish(self) -> None:
        """Waits for the end of the process. AssertionError when it fails."""
        assert self._wait("its start") == 0, self.log.read_text()


class ZooKeeperService(StartedProcess):
    """ZooKeeper of the official image, run by `bin/pulsar zookeeper`: its settings come from ZOO_SERVERS and ZOO_MY_ID."""

    def __init__(self, name: str, places: Places) -> None:
        super().__init__(places.directory / name)
        environment = places.environment(name)
        peers = [each.partition(";")[0] for each in environment["ZOO_SERVERS"].split()]
        port = environment["ZOO_SERVERS"].split()[0].partition(";")[2]
        whitelist = environment["ZOO_4LW_COMMANDS_WHITELIST"]
        self._settings = (
            f"myid={environment['ZOO_MY_ID']}",
            f"clientPortAddress={places.addresses[name]}",
            f"clientPort={port}",
            f"4lw.commands.whitelist={whitelist}",
            "tickTime=500",
            *peers,
        )

    def launch(self) -> None:
        keep_classpath(self.directory)
        command = [str(ROOT / "bin" / "pulsar"), "zookeeper", "--data-dir", str(self.directory)]
        sets = [word for each in self._settings for word in ("--set", each)]
        self.launch_command([*command, "--json-ready", str(self.ready_file), *sets])

    def close(self) -> None:
        """The launcher ends its server when it is stopped, and could not if it were killed."""
        self.stop()


class ComposeCluster:
    """All services that run, by name."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.services: dict[str, Service] = {}

    @property
    def proxy_url(self) -> str:
        return f"pulsar://{self.places.addresses['proxy']}:6650"

    @property
    def proxy_web_url(self) -> str:
        return f"http://{self.places.addresses['proxy']}:8080"

    def start(self, running: ExitStack) -> None:
        zookeepers = [ZooKeeperService(name, self.places) for name in self.places.services if name.startswith("zookeeper")]
        for zookeeper in zookeepers:
            running.enter_context(zookeeper).launch()
        for zookeeper in zookeepers:
            zookeeper.until_ready_file()
        waiting = {name: dict(each.get("depends_on", {})) for name, each in self.places.services.items() if is_ours(each)}
        is_there = {name for name in self.places.services if name.startswith("zookeeper")}
        while waiting:
            stage = [name for name, needs in waiting.items() if needs.keys() <= is_there]
            assert stage, f"depends_on goes round: {waiting}"
            for name in stage:
                self.services[name] = running.enter_context(Service(name, self.places)).start()
            for name in stage:
                self._wait_for(self.services[name])
                del waiting[name]
            is_there |= set(stage)

    def _wait_for(self, service: Service) -> None:
        """Waits as the service's dependents do: until it is done, or healthy."""
        told = self.places.services[service.name]
        conditions = {
            each.get("depends_on", {}).get(service.name, {}).get("condition")
            for each in self.places.services.values()
            if isinstance(each.get("depends_on"), dict)
        }
        if "service_completed_successfully" in conditions:
            service.finish()
        elif "healthcheck" in told:
            service.wait_until_healthy()

    def stop(self) -> dict[str, int]:
        """Stops the services in the opposite order; returns the exit codes."""
        return {name: service.stop() for name, service in reversed(self.services.items())}


@contextmanager
def compose_cluster(directory: Path, places: Places | None = None) -> Iterator[ComposeCluster]:
    """Cluster of docker-compose.yml, unless `places` are of more files."""
    need_zookeeper()
    places = places or Places(free_network(), directory)
    with ExitStack() as running:
        cluster = ComposeCluster(places)
        cluster.start(running)
        yield cluster
