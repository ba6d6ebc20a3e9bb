"""Rows a second of the pipeline's sink beside Spark's Kafka sink, in one run, and what a task's encoding alone makes.

    python -m benchmarks.spark.write
    python -m benchmarks.spark.write --sizes 1000000x100
    python -m benchmarks.spark.write --encode-only

Everything is started and ended here, as by `benchmarks.spark.read`. Both sinks are given the same file of Parquet, random
bytes with keys; what reading that costs alone stands beside them (noop). Kafka's producer is measured with its own size
of batches, 16 KB, and with ours. Kafka's broker acknowledges what is in memory; ours what its journal has on the disk.
"""

import argparse
import os
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy
import pyarrow

from benchmarks.measured_runs import Run, measured, table
from benchmarks.spark.kafka_broker import KafkaBroker
from benchmarks.spark.read import Bench, generated
from benchmarks.spark.sides import NOOP, KafkasSpark, OurSpark, Spark, Table
from pipeline.pyspark_pulsar.sink.entries import COMPRESSIONS, Limits, Stamp, entries_of
from pipeline.pyspark_pulsar.sink.frame_rows import outgoing
from pipeline.pyspark_pulsar.sink.options import BATCH_BYTES, BATCH_MESSAGES
from pipeline.pyspark_pulsar.sink.values.value_column import value_encoder
from tests.clients.server_process import Ready, ServerProcess
from tests.pipeline.written_topics import made

_ROWS_OF_SPARK = 10_000
_GUARANTEES = ("at-least-once", "deduplication", "transactions")
_SETTINGS = ("transactionCoordinatorEnabled=true", "brokerDeleteInactiveTopicsEnabled=false")


def encoding(rows: int, size: int, compression: str) -> float:
    """Rows a second of CPU, keys and values of one length."""
    keys = [f"key{number:05}".encode() for number in range(_ROWS_OF_SPARK)]
    frame = pyarrow.RecordBatch.from_pydict(
        {"key": keys, "value": [os.urandom(size // 2) + bytes(size - size // 2)] * len(keys)}
    )
    values, stamp = value_encoder("NONE", pyarrow.binary()), Stamp("p", COMPRESSIONS[compression], None, None)
    started = time.process_time()
    for first in range(0, rows, _ROWS_OF_SPARK):
        ids = numpy.arange(first, first + _ROWS_OF_SPARK).astype(numpy.uint64)
        for _ in entries_of(outgoing(frame, values, ids), Limits(BATCH_BYTES, BATCH_MESSAGES), stamp, 0):
            continue
    return rows / (time.process_time() - started)


def _reading(bench: Bench, spark: Spark, name: str) -> Run:
    return measured(name, bench.rows, bench.runs, None, partial(_written, bench, spark, NOOP))


def _written(bench: Bench, spark: Spark, sink: Table) -> None:
    spark.run(bench.parquet, ("key", "value"), sink)


def of_ours(bench: Bench) -> list[Run]:
    with ServerProcess(bench.scratch / "server", _SETTINGS) as server, OurSpark(bench.scratch) as spark:
        ready = server.start()
        spark.run(Table("range", {"rows": str(bench.rows)}), generated(bench.size), bench.parquet)
        runs = [_reading(bench, spark, "Parquet to nowhere")]
        for guarantee in _GUARANTEES:
            work = _writing(bench, spark, ready, guarantee)
            runs.append(measured(f"topic, {guarantee}", bench.rows, bench.runs, ready.pid, work))
    return runs


def _writing(bench: Bench, spark: Spark, ready: Ready, guarantee: str) -> Callable[[], None]:
    topic = made(ready, f"persistent://public/default/{guarantee}", deduplicates=guarantee == "deduplication")
    where = {"service.url": ready.broker_url, "admin.url": ready.web_url, "topic": topic, "guarantee": guarantee}
    return lambda: _written(bench, spark, Table("pulsar", {**where, "writeId": uuid.uuid4().hex}))


def of_kafka(bench: Bench) -> list[Run]:
    with KafkaBroker(bench.scratch / "kafka") as broker, KafkasSpark(bench.scratch / "kafkas-spark") as spark:
        where = {"kafka.bootstrap.servers": broker.start().servers, "topic": "rows"}
        runs = [_reading(bench, spark, "Parquet to nowhere, Spark 4.0.0")]
        for size in ("16384", str(BATCH_BYTES)):
            to = Table("kafka", {**where, "kafka.batch.size": size})
            name = f"Kafka's sink, batches of {int(size) // 1024} KB"
            runs.append(measured(name, bench.rows, bench.runs, broker.process_id, partial(_written, bench, spark, to)))
    return runs


def run(rows: int, size: int, runs: int) -> str:
    with tempfile.TemporaryDirectory(prefix="interpulse-pipeline-") as scratch:
        bench = Bench(rows, size, runs, Path(scratch))
        return table([*of_ours(bench), *of_kafka(bench)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000000x100,200000x1000", help="ROWSxBYTES, commas between")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--encode-only", action="store_true")
    given = parser.parse_args()
    for compression in COMPRESSIONS:
        print(f"encoding, {compression}: {encoding(500_000, 100, compression):,.0f} rows per second of CPU", flush=True)
    tables = []
    for each in () if given.encode_only else given.sizes.split(","):
        rows, size = map(int, each.split("x"))
        tables.append(f"{rows:,} rows of {size} B\n\n{run(rows, size, given.runs)}")
    print("", *tables, sep="\n\n")


if __name__ == "__main__":
    main()
