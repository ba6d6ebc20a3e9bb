"""Whether a cluster holds, after a schedule of faults, what its publishers were told that it does: by the pipeline's reconcile.

The second judge of `benchmarks.cluster_faults --reconcile`, which knows nothing of the first one: Parquet of what was
acknowledged beside the topics as Spark reads them, from the bookies. Needs what `bin/prepare --dev --spark` installs.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow
import pyarrow.parquet

from pipeline.pyspark_pulsar.decode.arrow_columns import SCHEMA
from pipeline.pyspark_pulsar.jobs.comparison import COLUMNS
from tests.clients.faults.checker import Topic
from tests.pipeline.spark_process import SparkProcess

_COMMAND = "tests.pipeline.sink_jobs:command"
_ANSWER_SECONDS_MAX = 300.0


def published(topic: str, record: Topic, path: Path) -> None:
    """What was acknowledged, as `land` would have left it; the place is the number that its producer gave it."""
    rows = [
        {
            "value": message.payload(),
            "properties": [],
            "topic": topic,
            "message_id": {"ledger_id": 0, "entry_id": message.number, "batch_index": -1},
            "producer": message.producer,
            "sequence_id": message.number,
        }
        for message in sorted(record.acknowledged)
    ]
    schema = pyarrow.schema([SCHEMA.field(name) for name in COLUMNS])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), path)


def reconciled(urls: list[str], records: Mapping[str, Topic], directory: Path) -> tuple[list[str], list[str]]:
    """What is wrong, and a line for each topic. What a client sent again is no fault: these topics do not deduplicate."""
    wrong, story = [], []
    with SparkProcess(directory / "spark") as spark:
        for number, (topic, record) in enumerate(records.items()):
            path = directory / f"published-{number}.parquet"
            published(topic, record, path)
            words = ["reconcile", *urls, "--expected", f"parquet:{path}", "--found", topic, "--by", "value"]
            spark.begin(_COMMAND, words=[*words, "--report", str(directory / f"report-{number}")])
            code, out, complaint = spark.result(_ANSWER_SECONDS_MAX)
            facts = json.loads(out) if out else {}
            story.append(f"{topic}: exit code {code}, {facts or complaint}")
            wrong += _faults(topic, record, facts) if facts else [f"{topic}: reconcile ended: {complaint}"]
    return wrong, story


def _faults(topic: str, record: Topic, facts: Mapping[str, int]) -> list[str]:
    found = [f"{topic}: reconcile: {facts[kind]} {kind}" for kind in ("lost", "altered", "reordered") if facts[kind]]
    if facts["added"] > sum(record.sent.values()) - len(record.acknowledged):
        found.append(f"{topic}: reconcile: {facts['added']} added, more than were sent without an answer")
    return found
