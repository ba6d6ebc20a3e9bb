"""Examples of the pages about the pipeline work as they are: every fenced block of them, in the order of the page.

Readers of the pages have topics `orders`, `orders-again` and `orders-work-DLQ`; only URLs and `/lake` are others here.
"""

import json
import re
import shlex
from pathlib import Path

import pulsar
import pytest

from tests.clients.python_client import quiet_client
from tests.clients.server_process import Ready
from tests.pipeline.job_process import urls
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import made, messages
from tests.started_process import ROOT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a query takes minutes
SERVICE_URL, ADMIN_URL, LAKE = "pulsar://127.0.0.1:6650", "http://127.0.0.1:8080", "/lake"
ORDERS = "persistent://public/default/orders"
JOBS = "tests.pipeline.documented"


def blocks(page: str, language: str, count: int) -> list[str]:
    """Blocks of a page; their number is checked, so that a new one gets its test."""
    found = re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert len(found) == count, f"{page} has {len(found)} blocks of {language}"
    return found


@pytest.fixture(scope="module")
def orders(standalone: Ready) -> Ready:
    """A topic of a hundred orders, of which a subscription `work` has left ten, and three letters that died of two causes."""
    for topic in (ORDERS, f"{ORDERS}-again"):
        made(standalone, topic, deduplicates=True)
    made(standalone, f"{ORDERS}-work-DLQ")
    client = quiet_client(standalone.broker_url)
    try:
        work = client.subscribe(ORDERS, "work", pulsar.ConsumerType.Shared)
        producer = client.create_producer(ORDERS, batching_enabled=False)
        for number in range(100):
            producer.send(f"order {number}".encode(), partition_key=f"customer {number % 7}")
        for _ in range(90):
            work.acknowledge(work.receive(timeout_millis=60_000))
        work.close()
        letters = client.create_producer(f"{ORDERS}-work-DLQ", batching_enabled=False)
        for number, error in enumerate(("timeout after 3 s", "no such customer", "timeout after 5 s")):
            letters.send(f"letter {number}".encode(), properties={"REAL_TOPIC": ORDERS, "error": error})
    finally:
        client.close()
    return standalone


def placed(text: str, server: Ready, directory: Path) -> str:
    return text.replace(SERVICE_URL, server.broker_url).replace(ADMIN_URL, server.web_url).replace(LAKE, str(directory))


def test_topics_as_tables(spark: SparkProcess, orders: Ready, tmp_path: Path) -> None:
    texts = [placed(each, orders, tmp_path) for each in blocks("pipeline.md", "python", 5)]
    counts = spark.run(f"{JOBS}:run_python", blocks=texts, frames=["frame", "waiting"], others=["behind", "rows"])
    assert counts["frame"] == len(messages(orders, ORDERS)) >= 100
    assert counts["waiting"] == counts["frame"] - 90
    assert counts["behind"] == {ORDERS: 0}
    assert counts["rows"] == 2 * counts["frame"]
    landed = spark.run("tests.pipeline.spark_jobs:table", path=str(tmp_path / "orders"))
    assert len(landed) == counts["frame"]
    (sql,) = (placed(each, orders, tmp_path) for each in blocks("pipeline.md", "sql", 1))
    _, found = spark.run(f"{JOBS}:run_sql", block=sql)
    of_customers = [
        (each["customer"], each["orders"]) for each in found if each["customer"] is not None
    ]  # others write here too
    assert of_customers == [(f"customer {number}", len(range(number, 100, 7))) for number in range(7)]


def test_writing(spark: SparkProcess, orders: Ready, tmp_path: Path) -> None:
    before = len(messages(orders, ORDERS))
    texts = [placed(each, orders, tmp_path) for each in blocks("pipeline-writing.md", "python", 1)]
    spark.run(f"{JOBS}:run_python", blocks=texts, frames=[], others=[])
    assert {each["value"] for each in messages(orders, ORDERS)[before:]} == {b"one", b"two"}
    assert len(messages(orders, ORDERS)) == before + 2


def test_jobs(spark: SparkProcess, orders: Ready, tmp_path: Path) -> None:
    lines = "".join(placed(each, orders, tmp_path) for each in blocks("pipeline-jobs.md", "sh", 5)).splitlines()
    programs = {line.split()[0] for line in lines}
    assert programs == {"bin/pulsar-pipeline"}
    words = [shlex.split(line)[1:] for line in lines]
    ended = spark.run(f"{JOBS}:run_commands", commands=[[each[0], *urls(orders), *each[1:]] for each in words])
    found = [(each[0], code) for each, (code, _, _) in zip(words, ended, strict=True)]
    expected = [("land", 0), ("reconcile", 0), ("replay", 0), ("replay", 0), ("reconcile", 0)]
    assert found == [*expected, ("dead-letters", 1), ("dead-letters", 0), ("dead-letters", 0), ("audit", 0)], ended
    facts = [json.loads(out) for _, out, _ in ended]
    assert facts[1]["messages found"] == facts[4]["messages found"] == facts[0]["messages"] >= 100
    assert (facts[5]["letters"], facts[6]["would be sent"], facts[7]["sent"]) == (3, 2, 2)
    assert (tmp_path / "report" / "reconcile.html").exists()
