"""Two Sparks that answer the same queries: PySpark's with our source and sink, and Spark 4.0.0 from Maven with Kafka's.

Spark's connector for Kafka is not published for the version that our tests have, so each reads the same Parquet as well: what
one version is faster than the other can be seen in that. Both are local, on two cores, with the same heap.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from tests.started_process import ROOT
from tests.toolchain import maven_classpath

_HEAP = "2g"
_SOURCES = Path(__file__).parent / "kafka"
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """Format and options of `spark.read` or `write`. The format `range` has `rows`: numbers."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)


NOOP = Table("noop")
"""Takes every row with all its columns, and does nothing with them."""


class Spark(Protocol):
    """One of the two."""

    def run(self, source: Table, expressions: Sequence[str], sink: Table | None = None) -> list[str]:
        """The first row as text where there is no sink. No expressions: all columns."""


class OurSpark:
    """Spark in this process: PySpark starts its JVM, and that the workers."""

    def __init__(self, scratch: Path) -> None:
        # imported here, as it is large and its environment is ours to set
        os.environ["PYTHONPATH"] = f"{ROOT}:{ROOT / 'pipeline'}"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        sys.path.insert(0, str(ROOT / "pipeline"))
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", _HEAP)
        settings = {
            "spark.local.dir": str(scratch / "spark"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        self._session: Any = builder.getOrCreate()
        from benchmarks.spark.memory_source import MemorySource

        self._session.dataSource.register(MemorySource)

    def run(self, source: Table, expressions: Sequence[str], sink: Table | None = None) -> list[str]:
        if source.format == "range":
            frame = self._session.range(0, int(source.options["rows"]), 1, 2)
        else:
            frame = self._session.read.format(source.format).options(**source.options).load()
        if expressions:
            frame = frame.selectExpr(*expressions)
        if sink is None:
            return [str(each) for each in frame.first()]
        mode = "overwrite" if sink == NOOP else "append"
        frame.write.format(sink.format).options(**sink.options).mode(mode).save()
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._session.stop()


class KafkasSpark:
    """`SparkQueries.java` in a JVM of its own, driven over pipes. The jars come from Maven where they are missing."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        classpath = maven_classpath(_SOURCES / "spark.xml", scratch)
        opened = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPENED]
        command = ["java", f"-Xmx{_HEAP}", *opened, "-cp", classpath, str(_SOURCES / "SparkQueries.java"), str(scratch)]
        self.log = scratch / "log"
        with self.log.open("ab") as log:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True)

    def run(self, source: Table, expressions: Sequence[str], sink: Table | None = None) -> list[str]:
        sink = sink or Table("")
        words = [source.format, _told(source), ";".join(expressions), sink.format, _told(sink)]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            said, *values = line.rstrip("\n").split("\t")
            if said == "ok":
                return values
        raise AssertionError(f"Spark with Kafka's source ended\n{self.log.read_text()[-6000:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.kill()
        self._process.wait()


def _told(table: Table) -> str:
    return ",".join(f"{name}={value}" for name, value in table.options.items())
