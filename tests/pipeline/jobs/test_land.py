"""land: each message once in Parquet, whatever earlier runs left behind; the audit of what there is."""

import json
import shutil
from pathlib import Path

import pytest

from tests.clients.server_process import Ready
from tests.pipeline.job_process import urls
from tests.pipeline.spark_process import JobFailed, SparkProcess
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
    assert (code, json.loads(out)["messages that would be landed"], to.exists()) == (0, 700, False)
    code, out, _ = spark.run(f"{JOBS}:command", words=land)
    assert (code, json.loads(out)["messages"]) == (0, 700)
    spark.run(f"{JOBS}:write_range", options=given, rows=50, partitions=1)
    code, out, _ = spark.run(f"{JOBS}:command", words=[*land, "--dry-run"])
    assert (code, json.loads(out)["messages that would be landed"]) == (0, 50)
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


def files_in(place: Path) -> dict[str, bytes]:
    return {str(each.relative_to(place)): each.read_bytes() for each in place.rglob("*") if each.is_file()}


def test_other_topics_or_those_of_other_brokers_are_not_mixed_into_a_landed_copy(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    other, to = f"{topic}-other", tmp_path / "landed"
    for name in (topic, other):
        made(standalone, name)
        spark.run(f"{JOBS}:write_range", options={**options, "topic": name}, rows=5, partitions=1)

    def landed(topics: str, *more: str) -> tuple[int, int, str]:
        words = ["land", *urls(standalone), "--topics", topics, "--to", str(to), *more]
        code, out, complaint = spark.run(f"{JOBS}:command", words=words)
        return code, json.loads(out or "{}").get("messages", 0), complaint

    assert landed(topic)[:2] == (0, 5)
    before = files_in(to)
    elsewhere = standalone.broker_url.replace("127.0.0.1", "localhost")
    for topics, *more in ((other,), (f"{topic},{other}",), (topic, "--service-url", elsewhere), (other, "--dry-run")):
        code, _, complaint = landed(topics, *more)
        assert code == 2
        assert f"--to {to}: what was landed there is {topic} of {standalone.broker_url}, and this is " in complaint
        assert (elsewhere if "--service-url" in more else other) in complaint
        assert files_in(to) == before
    assert landed(f"{topic},{other}", "--accept-change")[:2] == (0, 5)
    assert landed(f"{other},{topic}")[:2] == (0, 0)
    # one that does not say it, of an earlier version, has the topics of its checkpoint
    (to / "landing.json").unlink()
    (to / ".landing.json.crc").unlink(missing_ok=True)
    code, _, complaint = landed(topic)
    assert code == 2
    assert f"what was landed there is {topic}, {other} of" in complaint
    assert landed(f"{topic},{other}")[:2] == (0, 0)
    assert (to / "landing.json").exists()


def test_a_topic_that_comes_later_and_has_the_pattern_is_landed_with_the_others(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    words = ["land", *urls(standalone), "--topics-pattern", f"{topic}-of-many-.*", "--to", str(tmp_path / "landed")]
    for number in range(2):
        name = made(standalone, f"{topic}-of-many-{number}")
        spark.run(f"{JOBS}:write_range", options={**options, "topic": name}, rows=5 + number, partitions=1)
        code, out, complaint = spark.run(f"{JOBS}:command", words=words)
        assert (code, json.loads(out or "{}").get("messages")) == (0, 5 + number), complaint


def test_one_of_two_concurrent_runs_lands_a_batch(spark: SparkProcess, tmp_path: Path) -> None:
    """Both runs write the whole batch beside the data, and neither into the files of the other."""
    assert spark.run(f"{JOBS}:land_twice", to=str(tmp_path / "landed")) == [3, 3]
    with pytest.raises(JobFailed, match="batch 0 was landed by another run at the same time"):
        spark.run(f"{JOBS}:land_twice", to=str(tmp_path / "failed"), fails=True)
    for place in ("landed", "failed"):
        assert [each.name for each in (tmp_path / place / "data").iterdir()] == ["batch=000000000"]
        assert len(spark.run("tests.pipeline.spark_jobs:table", path=str(tmp_path / place / "data"))) == 3


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
    code, out, said = spark.run(f"{JOBS}:command", words=[*words, "--max-backlog", "2"])
    assert f"of {topic} has a backlog of 3, 1 over 2" in said
    assert "no consumer is connected" in said
    facts = json.loads(out)
    assert (code, facts["topics"], facts["subscriptions"], facts["backlog"], facts["over the limit"]) == (1, 1, 1, 3, 1)
    code, _, err = spark.run(f"{JOBS}:command", words=[*words[:-1], "public/not-there"])
    assert code == 2
    assert "--namespace public/not-there: there is none at" in err
