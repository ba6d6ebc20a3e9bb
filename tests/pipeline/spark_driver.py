"""The driver that `spark_process` starts: a local session, jobs taken from a connection one after the other.

python -m tests.pipeline.spark_driver FD DIRECTORY
"""

import importlib
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.toolchain import QUICK_JAVA

_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": " ".join(QUICK_JAVA),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stopTimeout": "60000",
    "spark.python.authenticate.socketTimeout": "600s",  # 15 are not enough for a JVM that has a tenth of a core
}


def session(directory: Path, settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("tests")
    places = {"spark.local.dir": str(directory / "scratch"), "spark.sql.warehouse.dir": str(directory / "warehouse")}
    for name, value in {**_SETTINGS, **places, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def answer(spark: SparkSession, job: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
    module, _, function = job.partition(":")
    try:
        return True, getattr(importlib.import_module(module), function)(spark, **arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, the test asked for it and is told
        return False, f"{type(error).__name__}: {error}"


def serve(connection: "Connection[Any, Any]", directory: Path) -> None:
    """Answers requests until the other side is gone."""
    spark = session(directory, connection.recv())
    try:
        while True:
            connection.send(answer(spark, *connection.recv()))
    except EOFError:
        return
    finally:
        spark.stop()


if __name__ == "__main__":
    with Connection(int(sys.argv[1])) as given:
        serve(given, Path(sys.argv[2]))
