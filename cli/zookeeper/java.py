"""The composition of `interpulse zookeeper`: which Java, which jars, which zoo.cfg. Owns the files it writes; starts nothing.

The jars come from Maven Central by Maven itself, as conf/zookeeper/pom.xml names them, once; then they are in Maven's own
repository.
"""

import hashlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

POM = Path(__file__).resolve().parents[2] / "conf" / "zookeeper" / "pom.xml"
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JAVA_MIN = 17
DEFAULTS: Mapping[str, str] = {
    "tickTime": "2000",
    "initLimit": "10",
    "syncLimit": "5",
    "clientPort": "2181",
    "clientPortAddress": "127.0.0.1",
    "admin.enableServer": "false",
    "autopurge.purgeInterval": "1",
    "4lw.commands.whitelist": "srvr,ruok,mntr",
}
"""zoo.cfg, where --set says nothing else. Loopback, as the standalone (docs/adr/0010)."""
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-Dzookeeper.extendedTypesEnabled=true")
_LOGS = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
)
_KEY = re.compile(r"[A-Za-z0-9_.]+")


class ZooKeeperFailed(Exception):
    """A ZooKeeper that cannot start; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class ZooKeeperConfiguration:
    """zoo.cfg's keys and values (`myid` apart: it is a file), complete."""

    values: Mapping[str, str]
    my_id: str | None

    @property
    def client_port(self) -> int:
        return int(self.values["clientPort"])

    @property
    def client_host(self) -> str:
        host = self.values["clientPortAddress"]
        return "127.0.0.1" if host in ("0.0.0.0", "::") else host

    @property
    def text(self) -> str:
        return "".join(f"{key}={value}\n" for key, value in self.values.items())


def zookeeper_configuration(directory: Path, overrides: Sequence[str]) -> ZooKeeperConfiguration:
    """Configuration from `--set KEY=VALUE` over the defaults; clientPort 0 picks a free one. ZooKeeperFailed: bad values."""
    values = {**DEFAULTS, "dataDir": str(directory / "data")}
    for override in overrides:
        key, equals, value = (part.strip() for part in override.partition("="))
        if not equals or not _KEY.fullmatch(key) or not value or "\n" in value:
            raise ZooKeeperFailed(f"--set {override}: expected KEY=VALUE with a key of zoo.cfg")
        values[key] = value
    my_id = values.pop("myid", None)
    if not values["clientPort"].isdigit() or int(values["clientPort"]) > 0xFFFF:
        raise ZooKeeperFailed(f"clientPort={values['clientPort']}: expected 0 to 65535")
    if my_id is None and any(key.startswith("server.") for key in values):
        raise ZooKeeperFailed("server.N is set, and which of them this one is, is not: add --set myid=N")
    if values["clientPort"] == "0":
        values["clientPort"] = str(_free_port(values["clientPortAddress"]))
    return ZooKeeperConfiguration(values, my_id)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def write_configuration(configuration: ZooKeeperConfiguration, directory: Path) -> Path:
    """zoo.cfg in the directory, and myid where the data is; the path of the first."""
    data = Path(configuration.values["dataDir"])
    data.mkdir(parents=True, exist_ok=True)
    if configuration.my_id is not None:
        (data / "myid").write_text(configuration.my_id + "\n")
    path = directory / "zoo.cfg"
    path.write_text(configuration.text)
    return path


def java_command(java: str, classpath: str, configuration_file: Path) -> list[str]:
    return [java, *_JVM, *_LOGS, "-cp", classpath, MAIN_CLASS, str(configuration_file)]


def find_java() -> str:
    """A Java of JAVA_MIN or later: $JAVA_HOME's, or the one on the path."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        raise ZooKeeperFailed(f"no Java found: install Java {JAVA_MIN} or later, or set JAVA_HOME")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA_MIN:
        raise ZooKeeperFailed(
            f"{java} is not Java {JAVA_MIN} or later ({said.partition(os.linesep)[0]!r}): set JAVA_HOME to one"
        )
    return java


def find_classpath(directory: Path) -> str:
    """Class path of the jars, which Maven fetches when missing. Kept in `directory` until the pom changes or a jar goes."""
    kept = directory / f"classpath-{hashlib.sha256(POM.read_bytes()).hexdigest()[:16]}"
    if kept.is_file() and _is_whole(kept.read_text()):
        return kept.read_text()
    maven = shutil.which("mvn")
    if maven is None:
        raise ZooKeeperFailed("no Maven found (it fetches ZooKeeper's jars from Maven Central): install Maven 3, `mvn`")
    fresh = kept.with_suffix(".part")
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={fresh.resolve()}"]
    done = subprocess.run([maven, "-B", "-q", "-f", str(POM), *goal], capture_output=True, text=True, check=False)
    if done.returncode or not fresh.is_file():
        raise ZooKeeperFailed(f"Maven could not fetch ZooKeeper's jars: {_last_lines(done.stdout + done.stderr)}")
    fresh.replace(kept)
    return kept.read_text()


def _is_whole(classpath: str) -> bool:
    return all(Path(jar).is_file() for jar in classpath.split(os.pathsep))


def _last_lines(text: str) -> str:
    lines = [each.strip() for each in text.splitlines() if "ERROR" in each]
    return " ".join(lines[:3]) or text[-500:].strip()
