"""Runs the Java program in `java/`: Apache's own managed ledgers, on Apache's mock of BookKeeper."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.toolchain import BUILD, FETCH_SECONDS_MAX, QUICK_JAVA, fetching, run_tool

HERE = Path(__file__).parent / "java"
CLASSES = BUILD / "interchange-java" / "classes"
HAS_JAVA = all(shutil.which(program) for program in ("mvn", "javac", "java"))
SECONDS_MAX = 240


class ApacheProgram:
    """Compiled once; each call is a process of its own."""

    def __init__(self, scratch: Path) -> None:
        classpath = scratch / "classpath"
        goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={classpath}"]
        with fetching():
            run_tool(["mvn", "-B", "-ntp", "-q", *goals], HERE, FETCH_SECONDS_MAX)
        libraries = classpath.read_text().strip()
        self._command = ["java", *QUICK_JAVA, "-cp", f"{CLASSES}:{libraries}", "interpulse.interchange.Interchange"]

    def write(self, directory: Path) -> None:
        """Managed ledgers in a directory for each compression."""
        run_tool([*self._command, "write", str(directory)], HERE, SECONDS_MAX)

    def read(self, directories: Sequence[Path]) -> None:
        """Opens what is there, and writes the file `state`."""
        run_tool([*self._command, "read", *map(str, directories)], HERE, SECONDS_MAX)
