"""Apache's own bookie in a process of its own, from the jars that `bookkeeper_java/pom.xml` names."""

from pathlib import Path
from typing import Self

from tests.started_process import StartedProcess, free_port
from tests.toolchain import QUICK_JAVA, maven_classpath, run_tool

JAVA = Path(__file__).parent / "bookkeeper_java"
TOOL_SECONDS_MAX = 120.0


def java_classpath(scratch: Path) -> str:
    """Class path of Apache's bookie and client, from Maven."""
    return maven_classpath(JAVA / "pom.xml", scratch)


def make_cluster(classpath: str, uri: str, scratch: Path) -> None:
    """Apache's `shell initnewcluster`."""
    conf = scratch / "shell.conf"
    conf.write_text(f"metadataServiceUri={uri}\n")
    shell = ["java", "-Xmx128m", *QUICK_JAVA, "-cp", classpath, "org.apache.bookkeeper.bookie.BookieShell"]
    run_tool([*shell, "-conf", str(conf), "initnewcluster"], scratch, TOOL_SECONDS_MAX)


class JavaBookieProcess(StartedProcess):
    """One directory, and the bookie on it, on the same port each time. Its metadata tells when it is ready."""

    def __init__(self, directory: Path, uri: str, classpath: str, session_ms: int = 2000) -> None:
        super().__init__(directory)
        self.port = free_port()
        self._uri, self._classpath, self._session_ms = uri, classpath, session_ms

    @property
    def bookie_id(self) -> str:
        return f"127.0.0.1:{self.port}"

    def launch(self) -> Self:
        """Starts it, and does not wait."""
        self.directory.mkdir(parents=True, exist_ok=True)
        conf = self.directory / "bookie.conf"
        conf.write_text(
            f"metadataServiceUri={self._uri}\nbookiePort={self.port}\nadvertisedAddress=127.0.0.1\nallowLoopback=true\n"
            f"journalDirectories={self.directory}/journal\nledgerDirectories={self.directory}/ledgers\nzkTimeout={self._session_ms}\n"
            "diskUsageThreshold=0.999\ndiskUsageWarnThreshold=0.998\nhttpServerEnabled=false\n"
        )
        java = ["java", "-Xmx256m", *QUICK_JAVA, "-cp", self._classpath]
        self.launch_command([*java, "org.apache.bookkeeper.server.Main", "--conf", str(conf)])
        return self
