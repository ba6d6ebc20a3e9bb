"""Failures of Spark: the reason for a failed query in one line, and the check for a Java before Spark starts.

Spark's text has the stacks of three languages. Without a Java Spark's launcher complains in the words of the shell.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ...errors import PipelineError

_CAUSE, _FULL = "Caused by: ", "No space left on device"
_THROWN = ": "
"""Before what Java threw, in the second line of Py4J's: the first one says which method was called."""
_STARTED_ALREADY = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
"""Variables of processes whose Spark runs elsewhere: of `spark-submit`, and of Spark Connect."""


def reason(text: str) -> str:
    """The line that says why: one of ours, or the last cause, or what Java threw, or the first line."""
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    own = [each.partition("errors.")[2] for each in lines if "pyspark_pulsar" in each and "errors." in each]
    causes = [each for each in lines if each.startswith(_CAUSE) or _FULL in each]
    thrown = [each for each in lines if each.startswith(_THROWN)]
    found = own or causes or thrown[:1] or lines[:1] or ["nobody says why"]
    return found[-1].removeprefix(_CAUSE).removeprefix(_THROWN)


class NoJava(PipelineError):
    """Spark cannot be started."""


def check_java(environment: Mapping[str, str]) -> None:
    """Looks for Java as Spark does: in JAVA_HOME, else on the PATH. NoJava."""
    if any(environment.get(name) for name in _STARTED_ALREADY):
        return
    home = environment.get("JAVA_HOME", "")
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        raise NoJava(f"JAVA_HOME={home}: there is no program bin/java in it; Spark needs Java 17 or later")
    if not home and shutil.which("java", path=environment.get("PATH", "")) is None:
        raise NoJava("there is no Java: Spark needs Java 17 or later; install it, or say in JAVA_HOME where it is")
