"""The two standalones that the loads run on: ours and Apache's, each with a port for TLS, ended and started again at will.

Both acknowledge what is on the disk. Never in here: a load.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.real_loads.tools import Tool, Tools, run
from tests.certificates import Authority
from tests.clients.apache_broker_process import OPENED
from tests.clients.server_process import ServerProcess
from tests.started_process import StartedProcess, free_port

CONFIGURATION = Path(__file__).parent / "standalone.conf"
COLLECTOR = (
    *("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=10", "-XX:+ParallelRefProcEnabled", "-XX:+UnlockExperimentalVMOptions"),
    *("-XX:+DoEscapeAnalysis", "-XX:ParallelGCThreads=32", "-XX:ConcGCThreads=32", "-XX:G1NewSizePercent=50"),
    "-XX:+DisableExplicitGC",
)
"""Options of Apache's conf/pulsar_env.sh."""
MEMORY = ("-Xms2g", "-Xmx2g", "-XX:MaxDirectMemorySize=4g")
DRIVERS = "org.apache.pulsar.metadata.bookkeeper.PulsarMetadata"


class Server(Protocol):
    """A standalone that the loads run on."""

    name: str
    url: str
    tls_url: str
    web_url: str

    def start(self) -> None: ...
    def kill(self) -> None: ...
    def close(self) -> None: ...
    @property
    def pid(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Ports:
    """Four free ports on loopback, below those that outgoing connections get."""

    broker: int
    web: int
    broker_tls: int
    bookie: int

    def settings(self, identity: Mapping[str, str]) -> Mapping[str, str]:
        ports = {"brokerServicePort": self.broker, "webServicePort": self.web, "brokerServicePortTls": self.broker_tls}
        return {**{key: str(port) for key, port in ports.items()}, **identity}


def free_ports() -> Ports:
    return Ports(*(free_port() for _ in range(4)))


def tls_settings(directory: Path) -> tuple[Path, Mapping[str, str]]:
    """The authority's certificate, and a broker's settings with a certificate that the authority signed."""
    authority = Authority(directory)
    identity = authority.sign("broker")
    return authority.certificate, {"tlsCertificateFilePath": str(identity.certificate), "tlsKeyFilePath": str(identity.key)}


class OurStandalone:
    """`bin/pulsar standalone`, with the defaults of its settings."""

    name = "ours"

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        ports = free_ports()
        self.url, self.tls_url = f"pulsar://127.0.0.1:{ports.broker}", f"pulsar+ssl://127.0.0.1:{ports.broker_tls}"
        self.web_url = f"http://127.0.0.1:{ports.web}"
        sets = tuple(f"{key}={value}" for key, value in ports.settings(settings).items())
        self._process = ServerProcess(directory, sets)
        self._process.ports = ()

    def start(self) -> None:
        self._process.start()

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._process.close()

    @property
    def pid(self) -> int:
        return self._process.process_id


class ApacheStandalone(StartedProcess):
    """Apache's standalone from its jars, in one JVM with the flags of its own scripts."""

    name = "Apache"

    def __init__(self, directory: Path, settings: Mapping[str, str], classpath: str, tools: Tools) -> None:
        super().__init__(directory)
        self._ports = free_ports()
        self._settings, self._classpath, self._tools = self._ports.settings(settings), classpath, tools
        self.url, self.tls_url = f"pulsar://127.0.0.1:{self._ports.broker}", f"pulsar+ssl://127.0.0.1:{self._ports.broker_tls}"
        self.web_url = f"http://127.0.0.1:{self._ports.web}"

    def start(self) -> None:
        """Start it, and wait for the first message that is stored."""
        self.directory.mkdir(parents=True, exist_ok=True)
        conf, log4j = self.directory / "standalone.conf", self.directory / "log4j2.properties"
        conf.write_text(CONFIGURATION.read_text() + "".join(f"{key}={value}\n" for key, value in self._settings.items()))
        log4j.write_text(
            "status=error\nappender.out.type=Console\nappender.out.name=out\nappender.out.layout.type=PatternLayout\n"
            "appender.out.layout.pattern=%d [%t] %-5level %logger{36} - %msg%n\n"
            "rootLogger.level=warn\nrootLogger.appenderRef.out.ref=out\n"
        )
        self.launch_command(self._command(conf, log4j))
        row = run(self._tools.command(Tool.LOAD, ["ready", "-url", self.url, "-timeout", "120s"]))
        if "error" in row:
            raise AssertionError(f"Apache's standalone is not ready: {row['error']}; see {self.log}")

    def _command(self, conf: Path, log4j: Path) -> Sequence[str]:
        return [
            *("java", "-cp", self._classpath, *MEMORY, *COLLECTOR),
            *(word for each in OPENED for word in ("--add-opens", f"{each}=ALL-UNNAMED")),
            *("-Djute.maxbuffer=10485760", "-Djava.net.preferIPv4Stack=true", "-Dio.netty.tryReflectionSetAccessible=true"),
            *("-Dpulsar.allocator.exit_on_oom=true", "-Dio.netty.recycler.maxCapacityPerThread=4096"),
            *(f"-Dlog4j.configurationFile={log4j}", "-Dlog4j2.is.webapp=false", "-Dlog4j.shutdownHookEnabled=false"),
            *("-Dlog4j2.enableThreadlocals=true", "-Dlog4j2.enableDirectEncoders=true"),
            f"-Dbookkeeper.metadata.bookie.drivers={DRIVERS}BookieDriver",
            f"-Dbookkeeper.metadata.client.drivers={DRIVERS}ClientDriver",
            *(
                "org.apache.pulsar.PulsarStandaloneStarter",
                "--config",
                str(conf),
                "--no-functions-worker",
                "--no-stream-storage",
            ),
            *("-a", "127.0.0.1", "--bookkeeper-port", str(self._ports.bookie)),
            *("--bookkeeper-dir", str(self.directory / "bookkeeper"), "--metadata-dir", str(self.directory / "metadata")),
        ]

    @property
    def pid(self) -> int:
        return self.process_id
