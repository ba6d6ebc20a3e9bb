"""Check for a Java before Spark starts: without one Spark's launcher complains in the words of the shell."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ...errors import PipelineError

_STARTED_ALREADY = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
"""Variables of processes whose Spark runs elsewhere: of `spark-submit`, and of Spark Connect."""


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
