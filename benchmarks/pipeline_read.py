"""What a batch read of a topic on Spark costs, beside the same rows in Parquet and beside Spark's Kafka source: JSON lines.

    python -m benchmarks.pipeline_read --rows 10000000 --bytes 100
    python -m benchmarks.pipeline_read --rows 1000000 --bytes 1000 --kafka-jars DIRECTORY --kafka-servers HOST:PORT

The query is the same for all: how many rows, the sum of their values' lengths, the greatest key. Rows a second, and CPU seconds
of Spark and all its children; the first of the runs of each is not counted. `--url` and `--admin` name another broker than the
standalone that is started. For Kafka a broker has to run, and DIRECTORY to hold the jars of Spark's connector for this version
of Spark (spark-sql-kafka, spark-token-provider-kafka, kafka-clients, commons-pool2); Spark writes the rows there.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pulsar

from tests.clients.python_client import quiet_client
from tests.clients.server_process import ServerProcess
from tests.started_process import ROOT

_SETTINGS = ("brokerDeleteInactiveTopicsEnabled=false", "defaultRetentionTimeInMinutes=-1", "defaultRetentionSizeInMB=-1")
_TOPIC = "persistent://public/default/rows"
_BATCH_MESSAGES, _BATCH_BYTES = 1_000, 128 * 1024
_TICKS = os.sysconf("SC_CLK_TCK")


def publish(url: str, rows: int, size_bytes: int) -> None:
    """Batches as a client makes them; keys count."""
    client = quiet_client(url)
    try:
        producer = client.create_producer(
            _TOPIC,
            batching_enabled=True,
            batching_max_messages=_BATCH_MESSAGES,
            batching_max_allowed_size_in_bytes=_BATCH_BYTES,
            block_if_queue_full=True,
            max_pending_messages=20_000,
        )
        value = bytes(size_bytes)
        for number in range(rows):
            producer.send_async(value, _sent, partition_key=f"{number:08d}")
        producer.flush()
        producer.close()
    finally:
        client.close()


def _sent(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
    if result != pulsar.Result.Ok:
        raise RuntimeError(f"a message was not taken: {result}")


def cpu_seconds() -> float:
    """Of this process and of all that it started, those that run on too."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + sum(_ticks(pid) for pid in _children(os.getpid())) / _TICKS


def _children(pid: int) -> Iterator[int]:
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = thread.read_text().split()
        except OSError:
            continue  # it has ended meanwhile
        for each in map(int, found):
            yield each
            yield from _children(each)


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(fields[at]) for at in (11, 12, 13, 14))


def measured(what: str, rows: int, runs: int, frame: Callable[[], Any]) -> None:
    for run in range(runs + 1):
        wall, cpu = time.monotonic(), cpu_seconds()
        found = frame().selectExpr("count(*)", "sum(length(value))", "max(key)").first()
        seconds, spent = time.monotonic() - wall, cpu_seconds() - cpu
        if found[0] != rows:
            sys.exit(f"{what}: {found[0]} rows of {rows}")
        if run:
            told = {"source": what, "rows": rows, "seconds": round(seconds, 2), "cpu_seconds": round(spent, 2)}
            print(json.dumps({**told, "rows_per_second": round(rows / seconds)}), flush=True)


def session(scratch: Path, jars: str) -> Any:
    """Local, on two cores; imported here, as it is large and its environment is ours to set."""
    os.environ["PYTHONPATH"] = f"{ROOT}:{ROOT / 'pipeline'}"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    sys.path.insert(0, str(ROOT / "pipeline"))
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.local.dir", str(scratch / "spark"))
    builder = builder.config("spark.driver.memory", "2g").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if jars:
        builder = builder.config("spark.jars", ",".join(str(each) for each in sorted(Path(jars).glob("*.jar"))))
    return builder.getOrCreate()


def measure(given: argparse.Namespace, scratch: Path) -> None:
    with ExitStack() as stack:
        url, admin = given.url, given.admin
        if not url:
            ready = stack.enter_context(ServerProcess(scratch / "server", _SETTINGS)).start()
            url, admin = ready.broker_url, ready.web_url
        publish(url, given.rows, given.bytes)
        spark = session(scratch, given.kafka_jars)
        stack.callback(spark.stop)
        where = {"service.url": url, "admin.url": admin, "topic": _TOPIC, "columns": "key,value"}
        pulsar_frame = spark.read.format("pulsar").options(**where).load
        pulsar_frame().write.parquet(str(scratch / "parquet"))
        measured("parquet", given.rows, given.runs, lambda: spark.read.parquet(str(scratch / "parquet")))
        measured("pulsar", given.rows, given.runs, pulsar_frame)
        if given.kafka_servers:
            kafka = {"kafka.bootstrap.servers": given.kafka_servers}
            rows = spark.read.parquet(str(scratch / "parquet"))
            rows.write.format("kafka").options(**kafka).option("topic", "rows").save()
            reader = spark.read.format("kafka").options(**kafka).option("subscribe", "rows")
            measured("kafka", given.rows, given.runs, reader.load)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    for name in ("--url", "--admin", "--kafka-jars", "--kafka-servers"):
        parser.add_argument(name, default="")
    with tempfile.TemporaryDirectory(prefix="magnetar-pipeline-") as scratch:
        measure(parser.parse_args(), Path(scratch))


if __name__ == "__main__":
    main()
