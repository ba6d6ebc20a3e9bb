"""Costs of a batch read of a topic on Spark, beside the same rows in Parquet and beside Spark's Kafka source, in one run.

    python -m benchmarks.spark.read                      10 million rows of 100 B, then 1 million of 1 KB
    python -m benchmarks.spark.read --sizes 1000000x100  another size; commas between several

Everything is started and ended here: a broker with a bookie, Apache's Kafka broker, PySpark with our source, Spark 4.0.0 with
Kafka's; Maven keeps their jars. Values are random bytes, which no format makes smaller. Our sink fills a topic, whose ledger
is then closed; Parquet is made of that topic, and Kafka's topic of Parquet; all three are compared before anything is measured.

`aggregate` is count(*), sum(length(key)), sum(length(value)), max(time), and our source and Parquet read those three columns;
Kafka's source has no choice of columns. `five columns` go row by row into Spark's noop sink: key, value, topic, place and time,
which is what Kafka's source has. `batches from memory` is a source in Python that does nothing else (`memory_source`): what
Spark alone costs. Of each the median of the runs, in rows a second and CPU seconds; a run before them does not count. The disk
needs five times the rows.
"""

import argparse
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bookies.one_bookie import OneBookie
from benchmarks.measured_runs import Run, measured, table
from benchmarks.spark.kafka_broker import KafkaBroker
from benchmarks.spark.sides import NOOP, KafkasSpark, OurSpark, Spark, Table

_SETTINGS = ("brokerDeleteInactiveTopicsEnabled=false", "defaultRetentionTimeInMinutes=-1", "defaultRetentionSizeInMB=-1")
_TOPIC = "persistent://public/default/rows"
_BATCH_BYTES = "131072"
"""Size of a producer's batch, for either kind of broker."""
_CHECK = ("count(*)", "sum(xxhash64(key, value) % 1000000007)")


@dataclass(frozen=True, slots=True)
class Query:
    """`columns`: those that our source makes and that are read of Parquet; "" all. Without expressions: to the noop sink."""

    name: str
    columns: str
    expressions: tuple[str, ...] = ()


def _aggregates(time: str) -> tuple[str, ...]:
    return ("count(*)", "sum(length(key))", "sum(length(value))", f"max({time})")


AGGREGATE = Query("aggregate", "key,value,publish_time", _aggregates("publish_time"))
FIVE = Query("five columns", "key,value,topic,message_id,publish_time")
EVERY = Query("every column", "")
OF_KAFKA = (Query("aggregate", "", _aggregates("timestamp")), Query("all its columns", ""))


def generated(size: int) -> tuple[str, str]:
    """Columns of a row, made of its number: the same each time, and different in every row."""
    hashes = ", ".join(f"unhex(sha2(concat(id, '-{part}'), 256))" for part in range(-(-size // 32)))
    return "cast(lpad(id, 8, '0') as binary) as key", f"substring(concat({hashes}), 1, {size}) as value"


@dataclass(frozen=True, slots=True)
class Bench:
    """One size: what is measured, and how often."""

    rows: int
    size: int
    runs: int
    scratch: Path

    @property
    def parquet(self) -> Table:
        return Table("parquet", {"path": str(self.scratch / "parquet")})

    @property
    def memory(self) -> Table:
        """Rows in memory, in as many tasks as the topic is read by."""
        tasks = max(1, self.rows * self.size >> 27)
        return Table("memory", {"rows": str(self.rows), "size": str(self.size), "tasks": str(tasks)})

    def check(self, spark: Spark, source: Table, expected: Sequence[str]) -> None:
        """The count and the hash of all rows have to be the expected ones."""
        found = spark.run(source, _CHECK)
        if found != list(expected):
            sys.exit(f"{source.format}: rows and their hash are {found}, expected {list(expected)}")

    def measure(self, spark: Spark, name: str, source: Table, query: Query, server: int | None = None) -> Run:
        expressions = query.expressions or tuple(query.columns.split(",") if query.columns else ())
        sink = None if query.expressions else NOOP

        def work() -> None:
            found = spark.run(source, expressions, sink)
            if found and int(found[0]) != self.rows:
                sys.exit(f"{name}: {found[0]} rows of {self.rows}")

        return measured(f"{name}, {query.name}", self.rows, self.runs, server, work)


def of_ours(bench: Bench) -> tuple[list[Run], list[str]]:
    """The topic and Parquet; and the count and the hash of the rows."""
    runs = []
    with OneBookie(bench.scratch / "server") as server, OurSpark(bench.scratch) as spark:
        ready = server.start(_SETTINGS)
        where = {"service.url": ready.broker_url, "admin.url": ready.web_url, "topic": _TOPIC}
        to = Table("pulsar", {**where, "createTopic": "true", "pulsar.producer.batchingMaxBytes": _BATCH_BYTES})
        spark.run(Table("range", {"rows": str(bench.rows)}), generated(bench.size), to)
        _close_ledger(ready.web_url)
        spark.run(Table("pulsar", where), (), bench.parquet)
        rows = spark.run(bench.parquet, _CHECK)
        if int(rows[0]) != bench.rows:
            sys.exit(f"{rows[0]} rows of {bench.rows} are in the topic")
        bench.check(spark, Table("pulsar", where), rows)
        for query in (AGGREGATE, FIVE, EVERY):
            runs.append(bench.measure(spark, "Parquet", bench.parquet, query))
            chosen = {**where, "columns": query.columns} if query.columns else where
            runs.append(bench.measure(spark, "topic, from bookies", Table("pulsar", chosen), query, ready.pid))
        runs.append(bench.measure(spark, "batches from memory", bench.memory, AGGREGATE))
        through = Table("pulsar", {**where, "columns": AGGREGATE.columns, "readFrom": "broker"})
        runs.append(bench.measure(spark, "topic, through the broker", through, AGGREGATE, ready.pid))
    shutil.rmtree(bench.scratch / "server")
    return runs, rows


def _close_ledger(web_url: str) -> None:
    """Bookies give what is closed; the topic goes on in another ledger when it is wanted."""
    path = f"{web_url}/admin/v2/{_TOPIC.replace('://', '/')}/unload"
    urllib.request.urlopen(urllib.request.Request(path, method="PUT"), timeout=60).close()


def of_kafka(bench: Bench, rows: Sequence[str]) -> list[Run]:
    """Kafka's topic, filled from Parquet, and Parquet again: on Spark 4.0.0."""
    with KafkaBroker(bench.scratch / "kafka") as broker, KafkasSpark(bench.scratch / "kafkas-spark") as spark:
        where = {"kafka.bootstrap.servers": broker.start().servers}
        to = Table("kafka", {**where, "topic": "rows", "kafka.batch.size": _BATCH_BYTES})
        spark.run(bench.parquet, ("key", "value"), to)
        source = Table("kafka", {**where, "subscribe": "rows"})
        bench.check(spark, source, rows)
        runs = [bench.measure(spark, "Kafka's source", source, query, broker.process_id) for query in OF_KAFKA]
        runs.append(bench.measure(spark, "Parquet on Spark 4.0.0", bench.parquet, AGGREGATE))
    shutil.rmtree(bench.scratch / "kafka")
    return runs


def run(rows: int, size: int, runs: int) -> str:
    with tempfile.TemporaryDirectory(prefix="interpulse-pipeline-") as scratch:
        bench = Bench(rows, size, runs, Path(scratch))
        found, hashed = of_ours(bench)
        return table([*found, *of_kafka(bench, hashed)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000000x100,1000000x1000", help="ROWSxBYTES, commas between")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    tables = []
    for each in given.sizes.split(","):
        rows, size = map(int, each.split("x"))
        tables.append(f"{rows:,} rows of {size} B\n\n{run(rows, size, given.runs)}")
    print("", *tables, sep="\n\n")


if __name__ == "__main__":
    main()
