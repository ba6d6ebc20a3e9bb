"""Apache Kafka's broker (KRaft, one node) in a process of its own, from the jars that `kafka/broker.xml` names."""

import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Self

from tests.started_process import READY_SECONDS_MAX, DidNotStart, StartedProcess, free_port
from tests.toolchain import maven_classpath

POM = Path(__file__).parent / "kafka" / "broker.xml"
PARTITIONS = 2
"""Partitions of a topic that is made by writing to it: one for each core."""
_HEAP = "-Xmx1g"


class KafkaBroker(StartedProcess):
    """`start` fetches what is missing of the jars. Settings are Kafka's own, but for places and the number of copies."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._port = free_port()

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        classpath = maven_classpath(POM, self.directory)
        settings = self.directory / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = ["java", _HEAP, "-cp", classpath]
        with self.log.open("ab") as log:
            form = [*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
            subprocess.run(form, check=True, stdout=log, stderr=log)
        self.launch_command([*command, "kafka.Kafka", str(settings)])
        self._until_it_listens()
        return self

    def _settings(self) -> dict[str, object]:
        controller = f"127.0.0.1:{free_port()}"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://{controller}",
            "log.dirs": self.directory / "data",
            "num.partitions": PARTITIONS,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
        }

    def _until_it_listens(self) -> None:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                if self._process is None or self._process.poll() is not None:
                    break
                time.sleep(0.1)
            else:
                return
        raise DidNotStart(f"Kafka does not listen\n{self.log.read_text()[-5000:]}")
