"""A standalone cluster of Spark's, of the jars that PySpark brings: a master and workers with one core each, on loopback.

As docs/pipeline.md starts them. Executors are the worker's children, and end with it or with their application.
"""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from tests.clients.python_client import until
from tests.started_process import ROOT, StartedProcess, free_port
from tests.toolchain import QUICK_JAVA

_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
_QUICK = " ".join(QUICK_JAVA)
_START_SECONDS_MAX = 300.0
_MEMORY = "600m"
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.cores.max": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Settings of a Spark session on the cluster."""


class _Daemon(StartedProcess):
    def launch(self, host: str, *words: str) -> None:
        environment = {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _QUICK,
            "SPARK_LOCAL_IP": host,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'pipeline'}",
        }
        self.launch_command(["env", *(f"{name}={value}" for name, value in environment.items()), _CLASS, *words])


@contextmanager
def spark_cluster(directory: Path, workers: int = 1) -> Iterator[str]:
    """URL of the cluster, `spark://...`, when its master listens; drivers wait for the workers.

    Each worker has a host of its own: Spark has two attempts of a task on two hosts.
    """
    port = free_port()
    url, package = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    place = ("--webui-port", "0", "--host")
    with ExitStack() as daemons:
        master = daemons.enter_context(_Daemon(directory / "master"))
        master.launch("127.0.0.1", f"{package}.master.Master", *place, "127.0.0.1", "--port", str(port))
        daemons.callback(master.stop)
        until(lambda: _listens(port), _START_SECONDS_MAX)
        for number in range(workers):
            host = f"127.0.0.{number + 1}"
            worker = daemons.enter_context(_Daemon(directory / f"worker-{number}"))
            scratch = ("--work-dir", str(directory / f"work-{number}"))
            worker.launch(host, f"{package}.worker.Worker", *place, host, "--cores", "1", "--memory", _MEMORY, *scratch, url)
            daemons.callback(worker.stop)  # with its executors, which it ends when it is asked to
        yield url


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False
