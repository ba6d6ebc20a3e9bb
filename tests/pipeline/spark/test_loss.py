"""Data that are deleted under a query, on Spark: an error with topic, positions and count, or a warning."""

import json
import re
from pathlib import Path

import pytest

from tests.clients.python_client import ask, names, publish, published, quiet_client
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import JobFailed, SparkProcess

JOBS = "tests.pipeline.spark_jobs"


def path(topic: str) -> str:
    return topic.replace("://", "/")


def texts(found: list[dict[str, bytes]]) -> list[str]:
    return [each["value"].decode() for each in found]


def test_entries_deleted_between_planning_and_reading_are_counted_in_the_error_or_the_log(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    for ending in ("a", "b"):
        for first in (0, 10):
            published(standalone, topic + ending, 10, first=first)
            ask(standalone, f"{path(topic + ending)}/unload", None, "PUT")  # in a ledger each, which is closed

    def deleted_while_read(ending: str, **more: str) -> list[str]:
        asked = {**options, "topic": topic + ending, "columns": "value", **more}
        url = f"{standalone.web_url}/admin/v2/{path(topic)}{ending}/truncate"
        return texts(spark.run(f"{JOBS}:planned_before", options=asked, method="DELETE", url=url))

    with pytest.raises(
        JobFailed, match=rf"{topic}a: (10|20) entries between \d+:0 and \d+:9 are missing: .*failOnDataLoss=false"
    ):
        deleted_while_read("a")
    assert deleted_while_read("b", failOnDataLoss="false") == []
    log = spark.log.read_text(errors="replace")
    assert re.search(rf"{topic}b: (10|20) entries between \d+:0 and \d+:9 are missing", log)


def test_a_stream_whose_next_messages_were_deleted_says_so_or_goes_on_without_them(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("trimmed")
    asked = {**options, "topic": topic, "startingOffsets": "earliest"}
    places = {
        "to": str(directory / "table"),
        "checkpoint": str(directory / "checkpoint"),
        "columns": ["cast(value as string) v"],
    }
    client = quiet_client(standalone.broker_url)
    try:
        publish(client, topic, 10)
        spark.run(f"{JOBS}:stream_to_parquet", options=asked, **places)
        publish(client, topic, 10, first=10)
        before = newest_offset(directory / "checkpoint")
        ask(standalone, f"{path(topic)}/unload", None, "PUT")
        ask(standalone, f"{path(topic)}/truncate", None, "DELETE")
        publish(client, topic, 5, first=20)
    finally:
        client.close()
    with pytest.raises(JobFailed, match=rf"{topic}: the messages from {before} to before \d+:0 were deleted"):
        spark.run(f"{JOBS}:stream_to_parquet", options=asked, **places)
    spark.run(f"{JOBS}:stream_to_parquet", options={**asked, "failOnDataLoss": "false"}, **places)
    found = spark.run(f"{JOBS}:table", path=places["to"])
    assert sorted(each["v"] for each in found) == sorted(names(0, 10) + names(20, 5))


def test_nothing_is_reported_lost_when_a_ledger_that_was_read_to_its_end_would_go(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A stream that had nothing to read, then a broker that is started again, then a trimming, then messages."""
    directory = tmp_path_factory.mktemp("end")
    asked = {**options, "topic": topic, "startingOffsets": "earliest", "predefinedSubscription": "stream"}
    places = {
        "to": str(directory / "table"),
        "checkpoint": str(directory / "checkpoint"),
        "columns": ["cast(value as string) v"],
    }
    published(standalone, topic, 10)
    for _ in range(2):
        spark.run(f"{JOBS}:stream_to_parquet", options=asked, **places)
    ask(standalone, f"{path(topic)}/unload", None, "PUT")
    published(standalone, topic, 5, first=10)
    ask(standalone, f"{path(topic)}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}, "POST")
    ask(standalone, f"{path(topic)}/trim", None, "POST")
    for _ in range(2):
        spark.run(f"{JOBS}:stream_to_parquet", options=asked, **places)
    found = spark.run(f"{JOBS}:table", path=places["to"])
    assert sorted(each["v"] for each in found) == sorted(names(0, 15))
    backlog = ask(standalone, f"{path(topic)}/stats")["subscriptions"]["stream"]["msgBacklog"]
    assert backlog <= 5


def test_a_stream_says_that_its_topic_was_deleted_and_made_again(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also while it is not there, and never by leaving something out."""
    directory = tmp_path_factory.mktemp("again")
    job = {
        "options": {**options, "topic": topic, "startingOffsets": "earliest"},
        "to": str(directory / "table"),
        "checkpoint": str(directory / "checkpoint"),
        "columns": ["cast(value as string) v"],
    }
    published(standalone, topic, 10)
    spark.run(f"{JOBS}:stream_to_parquet", **job)
    published(standalone, topic, 5, first=10)
    ask(standalone, f"{path(topic)}?force=true", None, "DELETE")
    with pytest.raises(JobFailed, match=rf"{topic}: .*not"):
        spark.run(f"{JOBS}:stream_to_parquet", **job)
    published(standalone, topic, 5, first=20)
    with pytest.raises(JobFailed, match=rf"{topic}: the messages from \d+:10 to before \d+:0 were deleted"):
        spark.run(f"{JOBS}:stream_to_parquet", **job)
    spark.run(f"{JOBS}:stream_to_parquet", **{**job, "options": {**job["options"], "failOnDataLoss": "false"}})  # type: ignore[dict-item]
    found = spark.run(f"{JOBS}:table", path=job["to"])
    assert sorted(each["v"] for each in found) == sorted(names(0, 10) + names(20, 5))


def newest_offset(checkpoint: Path) -> str:
    """Newest offset of a stream of one topic."""
    newest = max((each for each in (checkpoint / "offsets").iterdir() if each.name.isdigit()), key=lambda each: int(each.name))
    [place] = json.loads(newest.read_text().splitlines()[-1])["topics"].values()
    return str(place)
