"""land: each message once in Parquet, whatever earlier runs left behind; the audit of what there is."""

import json
import shutil
from pathlib import Path

import pytest

from tests.clients.server_process import Ready
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import made, put

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a query takes minutes
JOBS = "tests.pipeline.sink_jobs"


def test_topics_are_landed_once_in_several_runs_and_reconciled_with_what_was_landed(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    made(standalone, topic)
    given, to = {**options, "topic": topic}, tmp_path / "landed"
    urls = ["--service-url", standalone.broker_url, "--admin-url", standalone.web_url]
    land = ["land", *urls, "--topics", topic, "--to", str(to)]
    spark.run(f"{JOBS}:write_range", options=given, rows=700, partitions=1)
    code, out, _ = spark.run(f"{JOBS}:command", words=[*land, "--dry-run", "--option", "predefinedSubscription=s"])
    assert (code, json.loads(out)["messages in the topics"], to.exists()) == (0, 700, False)
    code, out, _ = spark.run(f"{JOBS}:command", words=land)
    assert (code, json.loads(out)["messages"]) == (0, 700)
    spark.run(f"{JOBS}:write_range", options=given, rows=50, partitions=1)
    # a run that died in the middle of its batch left this, and readers pass over it
    half = to / "data" / "_half-000000001"
    half.mkdir(parents=True)
    (half / "part-0.parquet").write_bytes(b"torn")
    code, out, _ = spark.run(f"{JOBS}:command", words=land)
    assert (code, json.loads(out)["messages"]) == (0, 50)
    assert not half.exists()
    # one that died between its batch and its checkpoint does it again: the batch is there already
    (to / "checkpoint" / "commits" / "1").unlink()
    (to / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    spark.run(f"{JOBS}:command", words=land)
    words = ["reconcile", *urls, "--expected", topic, "--found", f"parquet:{to}/data"]
    code, out, _ = spark.run(f"{JOBS}:command", words=words)
    facts = json.loads(out)
    assert (code, facts["messages expected"], facts["messages found"]) == (0, 750, 750)
    # batches whose numbers nobody knows any more would hide those of a new checkpoint
    (to / "checkpoint").rename(tmp_path / "away")
    spark.run(f"{JOBS}:write_range", options=given, rows=5, partitions=1)
    code, _, err = spark.run(f"{JOBS}:command", words=land)
    assert code == 2
    assert f"--to {to}: there are 2 batches under data/ and no checkpoint/" in err
    shutil.rmtree(to / "checkpoint", ignore_errors=True)
    (tmp_path / "away").rename(to / "checkpoint")
    code, out, _ = spark.run(f"{JOBS}:command", words=land)
    assert (code, json.loads(out)["messages"]) == (0, 5)


def test_an_audit_tells_the_backlog_of_every_subscription(
    spark: SparkProcess, standalone: Ready, options: dict[str, str]
) -> None:
    topic = "persistent://public/audited/t"
    put(standalone, "namespaces/public/audited")
    made(standalone, topic)
    spark.run(
        f"{JOBS}:write_range",
        options={**options, "topic": topic, "pulsar.producer.batchingMaxMessages": "10"},
        rows=30,
        partitions=1,
    )
    words = [
        "audit",
        "--service-url",
        standalone.broker_url,
        "--admin-url",
        standalone.web_url,
        "--namespace",
        "public/audited",
    ]
    code, out, _ = spark.run(f"{JOBS}:command", words=[*words, "--max-backlog", "2"])
    facts = json.loads(out)
    assert (code, facts["topics"], facts["subscriptions"], facts["backlog"], facts["over the limit"]) == (1, 1, 1, 3, 1)
    code, _, err = spark.run(f"{JOBS}:command", words=[*words[:-1], "public/not-there"])
    assert code == 2
    assert "not-there" in err
