"""Runs the Java program in `java/`: Apache's own managed ledgers, on Apache's mock of BookKeeper."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent / "java"
CLASSES = Path.home() / ".cache" / "magnetar" / "interchange-java" / "classes"
HAS_JAVA = all(shutil.which(program) for program in ("mvn", "javac", "java"))
SECONDS_MAX = 300
"""The first time Maven downloads a good deal."""


class ApacheProgram:
    """Compiled once; each call is a process of its own."""

    def __init__(self, scratch: Path) -> None:
        classpath = scratch / "classpath"
        _run(["mvn", "-B", "-ntp", "-q", "compile", "dependency:build-classpath", f"-Dmdep.outputFile={classpath}"])
        self._command = ["java", "-cp", f"{CLASSES}:{classpath.read_text().strip()}", "magnetar.interchange.Interchange"]

    def write(self, directory: Path) -> None:
        """Managed ledgers in a directory for each compression."""
        _run([*self._command, "write", str(directory)])

    def read(self, directories: Sequence[Path]) -> None:
        """Opens what is there, and writes the file `state`."""
        _run([*self._command, "read", *map(str, directories)])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stdout + done.stderr
