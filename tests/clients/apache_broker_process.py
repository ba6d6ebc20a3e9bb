"""Apache Pulsar's own broker in a process of its own, from the jars that `pulsar_java/pom.xml` names.

It is told where ZooKeeper is and nothing that would spare it anything: what it finds there, brokers of ours have written.
"""

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pytest

from tests.clients.python_client import until
from tests.clients.server_process import Ready
from tests.metadata.zookeeper.zookeeper_server import SESSION_SECONDS
from tests.started_process import StartedProcess, free_port
from tests.toolchain import maven_classpath

POM = Path(__file__).parent / "pulsar_java" / "pom.xml"
READY_SECONDS_MAX = 240.0
MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
SETTINGS: Mapping[str, str] = {
    "clusterName": "test",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "managedLedgerDefaultEnsembleSize": "3",
    "managedLedgerDefaultWriteQuorum": "3",
    "managedLedgerDefaultAckQuorum": "2",
    "loadManagerClassName": MODULAR,
    "loadBalancerReportUpdateMinIntervalMillis": "200",
    "numIOThreads": "2",
    "numOrderedExecutorThreads": "2",
    "numHttpServerThreads": "8",
    "webSocketServiceEnabled": "false",
    "functionsWorkerEnabled": "false",
}
OPENED = (
    *(f"java.base/{each}" for each in ("java.io", "java.util.zip", "java.nio", "jdk.internal.misc", "sun.net")),
    "java.base/jdk.internal.platform",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)
_DRIVERS = "org.apache.pulsar.metadata.bookkeeper.PulsarMetadata"


def apache_classpath(scratch: Path) -> str:
    """Class path of Apache's broker, from Maven; skips the test where it cannot run."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool} to run Apache's broker")
    return maven_classpath(POM, scratch)


class ApacheBrokerProcess(StartedProcess):
    """The process that serves, on the same ports each time."""

    def __init__(self, directory: Path, servers: str, classpath: str, **settings: str) -> None:
        super().__init__(directory)
        ports = free_port(), free_port()
        self._classpath = classpath
        self._settings = {
            **SETTINGS,
            "metadataStoreUrl": f"zk:{servers}",
            "configurationMetadataStoreUrl": f"zk:{servers}",
            "metadataStoreSessionTimeoutMillis": str(int(SESSION_SECONDS * 1000)),
            "brokerServicePort": str(ports[0]),
            "webServicePort": str(ports[1]),
            **settings,
        }
        self.ready = Ready(f"pulsar://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}", 0)

    def launch(self) -> Self:
        """Starts it, and does not wait."""
        self.directory.mkdir(parents=True, exist_ok=True)
        conf = self.directory / "broker.conf"
        conf.write_text("".join(f"{name}={value}\n" for name, value in self._settings.items()))
        log4j = self.directory / "log4j2.properties"
        log4j.write_text(
            "status=error\nappender.out.type=Console\nappender.out.name=out\nappender.out.layout.type=PatternLayout\n"
            "appender.out.layout.pattern=%d [%t] %-5level %logger{36} - %msg%n\n"
            "rootLogger.level=info\nrootLogger.appenderRef.out.ref=out\n"
        )
        self.launch_command(
            [
                *("java", "-Xmx400m", "-XX:MaxDirectMemorySize=400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                *(word for each in OPENED for word in ("--add-opens", f"{each}=ALL-UNNAMED")),
                *("-Dlog4j2.is.webapp=false", "-Dlog4j.shutdownHookEnabled=false", f"-Dlog4j.configurationFile={log4j}"),
                *("-Dio.netty.tryReflectionSetAccessible=true", "-Djava.net.preferIPv4Stack=true"),
                f"-Dbookkeeper.metadata.bookie.drivers={_DRIVERS}BookieDriver",
                f"-Dbookkeeper.metadata.client.drivers={_DRIVERS}ClientDriver",
                *("-cp", self._classpath, "org.apache.pulsar.PulsarBrokerStarter", "--broker-conf", str(conf)),
            ]
        )
        return self

    def until_ready(self) -> Self:
        """Waits until the broker answers as a member of the cluster."""
        until(self._is_ready, READY_SECONDS_MAX)
        return self

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"exit code {self._process.returncode}\n{self.log.read_text()[-20_000:]}"
        try:
            with urllib.request.urlopen(f"{self.ready.web_url}/admin/v2/brokers/test", timeout=5) as answer:
                return self.broker_id in json.loads(answer.read())
        except (urllib.error.URLError, OSError):
            return False

    def start(self) -> Self:
        return self.launch().until_ready()

    @property
    def broker_id(self) -> str:
        return self.ready.web_url.removeprefix("http://")
