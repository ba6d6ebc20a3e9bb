"""Rows a second of the pipeline's sink: what a task's encoding alone makes, and what Spark writes to a standalone.

python -m benchmarks.pipeline_write [--rows 2000000] [--bytes 100]; with --encode-only nothing is started. CPU seconds are
those of this process: of Spark and the server only the wall clock is told.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy
import pyarrow

from pipeline.pyspark_pulsar.sink.entries import COMPRESSIONS, Limits, Stamp, entries_of
from pipeline.pyspark_pulsar.sink.frame_rows import outgoing
from pipeline.pyspark_pulsar.sink.options import BATCH_BYTES, BATCH_MESSAGES
from pipeline.pyspark_pulsar.sink.values import value_encoder

_ROWS_OF_SPARK = 10_000
_GUARANTEES = ("at-least-once", "deduplication", "transactions")


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


def through_spark(rows: int, size: int) -> None:
    from tests.clients.server_process import ServerProcess
    from tests.pipeline.spark_process import SparkProcess
    from tests.pipeline.written_topics import made

    job = "tests.pipeline.sink_jobs:write_sized"
    settings = ("transactionCoordinatorEnabled=true",)
    with tempfile.TemporaryDirectory() as scratch, ServerProcess(Path(scratch, "server"), settings) as server:
        ready = server.start()
        urls = {"service.url": ready.broker_url, "admin.url": ready.web_url}
        with SparkProcess(Path(scratch, "spark")) as spark:
            for guarantee in _GUARANTEES:
                topic = made(ready, f"persistent://public/default/{guarantee}", deduplicates=guarantee == "deduplication")
                options = {**urls, "topic": topic, "guarantee": guarantee, "writeId": guarantee}
                # the first write of a session pays for its start
                spark.run(job, options={**options, "writeId": f"{guarantee}-warm"}, rows=1000, size=size)
                started = time.monotonic()
                spark.run(job, options=options, rows=rows, size=size)
                print(f"spark, {guarantee}: {rows / (time.monotonic() - started):,.0f} rows/s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--bytes", type=int, default=100)
    parser.add_argument("--encode-only", action="store_true")
    arguments = parser.parse_args()
    for compression in COMPRESSIONS:
        found = encoding(min(arguments.rows, 500_000), arguments.bytes, compression)
        print(f"encoding, {compression}: {found:,.0f} rows per second of CPU", flush=True)
    if not arguments.encode_only:
        through_spark(arguments.rows, arguments.bytes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
