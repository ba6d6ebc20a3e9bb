"""Names with spaces, letters of other alphabets and signs that URLs use: of topics, and of subscriptions."""

import json
from contextlib import closing
from pathlib import Path

import pulsar
import pyarrow
import pytest

from pipeline.pyspark_pulsar.client.admin import unacknowledged_of
from pipeline.pyspark_pulsar.names import admin_path, cursor_name
from pipeline.pyspark_pulsar.sink.commits.batch_commits import commit
from pipeline.pyspark_pulsar.sink.options import parse_sink_options
from pipeline.pyspark_pulsar.sink.task import SinkTask, TaskPlace
from tests.clients.python_client import quiet_client, until
from tests.clients.server_process import Ready
from tests.pipeline.job_process import run_job, urls
from tests.pipeline.written_topics import access, put, stats, values

pytestmark = pytest.mark.clients

NAME, SUBSCRIPTION = "grün & 100% a+b?", "who~ is/it *?"


def test_cursors_are_called_as_java_encodes_their_names() -> None:
    assert cursor_name("a b/c~d*-._ü+") == "a+b%2Fc%7Ed*-._%C3%BC%2B"


def test_topics_and_subscriptions_of_any_name_are_read_written_and_counted(
    standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    source, target = f"{topic} {NAME}", f"{topic} {NAME} copy"
    with closing(quiet_client(standalone.broker_url)) as client:
        consumer = client.subscribe(source, SUBSCRIPTION, pulsar.ConsumerType.Shared)
        producer = client.create_producer(source, batching_enabled=False)
        for number in range(5):
            producer.send(f"m{number}".encode(), properties={"REAL_TOPIC": target})
        consumer.acknowledge(consumer.receive(timeout_millis=60_000))
        client.create_producer(target).close()
    put(standalone, f"{admin_path(target)}/deduplicationEnabled", True, "POST")
    until(lambda: bool(stats(standalone, admin_path(target))["deduplicationStatus"] == "Enabled"))
    until(lambda: sum(each.count for each in unacknowledged_of(source, SUBSCRIPTION, access(standalone), True).ranges) == 4)

    ended = run_job(["replay", *urls(standalone), "--topics", source, "--to", target, "--name", "n"])
    assert ended.code == 0, ended.complaint
    again = ["dead-letters", *urls(standalone), "--topics", source, "--subscription", SUBSCRIPTION, "--redrive"]
    assert run_job([*again, "--dry-run"]).facts["would be sent"] == 4
    assert run_job(again).facts["sent"] == 4
    write_id = topic.rpartition("/")[2]  # of this test alone: what was decided of another's batch would count
    transactions = {**options, "topic": target, "guarantee": "transactions", "writeId": write_id}
    rows = pyarrow.RecordBatch.from_pylist([{"value": "by a transaction"}])
    for _ in range(2):  # the second time it is decided, and its topics are asked what became of it
        how = parse_sink_options(transactions)
        commit([SinkTask(how, TaskPlace(write_id, 0, 0)).run([rows])], how)
    expected = [f"m{number}" for number in range(5)] + [f"m{number}" for number in range(1, 5)]
    assert values(standalone, target) == [*expected, "by a transaction"]
    ended = run_job(["audit", *urls(standalone), "--namespace", "public/default", "--report", str(tmp_path)])
    assert ended.code == 0, ended.complaint
    rows_told = json.loads((tmp_path / "audit.json").read_text())["tables"]["the largest backlogs"]
    assert [each["backlog"] for each in rows_told if (each["topic"], each["subscription"]) == (source, SUBSCRIPTION)] == [0]
