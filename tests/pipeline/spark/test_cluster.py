"""Source, sink and jobs where Spark is a cluster: driver, master, worker and executor are processes of their own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.server_process import Ready
from tests.pipeline.job_process import urls
from tests.pipeline.spark_process import SparkProcess, missing
from tests.pipeline.written_topics import made

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(900),  # on a machine that is busy with others a query takes minutes
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

JOBS = "tests.pipeline.sink_jobs"
ROWS = 3000


@pytest.fixture
def on_cluster(tmp_path: Path) -> Iterator[SparkProcess]:
    """A session whose tasks an executor runs."""
    from tests.pipeline.spark.local_cluster import SETTINGS, spark_cluster

    with (
        spark_cluster(tmp_path / "cluster") as url,
        SparkProcess(tmp_path / "driver", {**SETTINGS, "spark.master": url}) as spark,
    ):
        yield spark


def test_rows_written_by_a_cluster_are_landed_and_reconciled_by_it(
    on_cluster: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    made(standalone, topic, partitions=2, deduplicates=True)
    given = {**options, "topic": topic, "pollTimeoutMs": "300000"}
    exactly_once = {**given, "guarantee": "deduplication", "writeId": "w"}
    for _ in range(2):  # the second time every row is there
        on_cluster.run(f"{JOBS}:write_range", options=exactly_once, rows=ROWS, partitions=2)
    land = ["land", *urls(standalone), "--topics", topic, "--to", str(tmp_path / "landed"), "--max-messages", "2000"]
    code, out, complaint = on_cluster.run(f"{JOBS}:command", words=land)
    assert (code, json.loads(out or "{}").get("messages")) == (0, ROWS), complaint
    sides = ["--expected", topic, "--found", f"parquet:{tmp_path}/landed/data"]
    code, out, complaint = on_cluster.run(f"{JOBS}:command", words=["reconcile", *urls(standalone), *sides])
    assert (code, json.loads(out or "{}").get("messages found")) == (0, ROWS), complaint
    master, executors = on_cluster.run("tests.pipeline.spark_jobs:where")
    assert master.startswith("spark://")
    assert executors == 1
