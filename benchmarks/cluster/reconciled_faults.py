"""Whether a cluster holds, after a schedule of faults, what its publishers were told that it does: by the pipeline's reconcile.

The second judge of `benchmarks.cluster.faults --reconcile`, which knows nothing of the first one: Parquet of what was
acknowledged beside the topics as Spark reads them, from the bookies. Needs what `bin/prepare --dev --spark` installs.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow
import pyarrow.parquet

from pipeline.pyspark_pulsar.decode.arrow_columns import SCHEMA
from pipeline.pyspark_pulsar.jobs.on_spark.comparison import COLUMNS
from tests.clients.cluster.faults.checker import Topic
from tests.pipeline.spark_process import SparkProcess

_COMMAND = "tests.pipeline.sink_jobs:command"
_ANSWER_SECONDS_MAX = 1500.0


def published(records: Mapping[str, Topic], path: Path) -> None:
    """Writes the acknowledged publishes as `land` would; the place is the number that the producer gave."""
    rows = [
        {
            "value": message.payload(),
            "properties": [],
            "topic": topic,
            "message_id": {"ledger_id": 0, "entry_id": message.number, "batch_index": -1},
            "producer": message.producer,
            "sequence_id": message.number,
        }
        for topic, record in records.items()
        for message in sorted(record.acknowledged)
    ]
    schema = pyarrow.schema([SCHEMA.field(name) for name in COLUMNS])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), path)


def reconciled(urls: list[str], records: Mapping[str, Topic], directory: Path) -> tuple[list[str], str]:
    """Faults, and a summary. A message that a client sent again is no fault: these topics do not deduplicate."""
    path = directory / "published.parquet"
    published(records, path)
    words = ["reconcile", *urls, "--expected", f"parquet:{path}", "--found", ",".join(records), "--by", "topic,value"]
    with SparkProcess(directory / "spark") as spark:
        spark.begin(_COMMAND, words=[*words, "--report", str(directory)])
        code, out, complaint = spark.result(_ANSWER_SECONDS_MAX)
    if not out:
        return [f"reconcile ended with {code}: {complaint}"], ""
    facts = json.loads(out)
    return _faults(records, facts), f"reconcile: exit code {code}, {facts}"


def _faults(records: Mapping[str, Topic], facts: Mapping[str, int]) -> list[str]:
    found = [f"reconcile: {facts[kind]} {kind}" for kind in ("lost", "altered", "reordered") if facts[kind]]
    unanswered = sum(sum(each.sent.values()) - len(each.acknowledged) for each in records.values())
    if facts["added"] > unanswered:
        found.append(f"reconcile: {facts['added']} added, and {unanswered} were sent without an answer")
    return found
