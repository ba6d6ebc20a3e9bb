"""Topics of Apache's own broker, on Apache's own bookie, as tables: read, streamed and written exactly once.

With PULSAR_TEST_APACHE="pulsar://host:6650,http://host:8080" those of that server, which needs transactions for all of it.
"""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from pipeline.pyspark_pulsar.client.admin import ledgers_of
from tests.clients.apache_broker_process import ApacheBrokerProcess, apache_classpath
from tests.clients.java_bookie_process import JavaBookieProcess
from tests.clients.python_client import names, published, until
from tests.clients.server_process import Ready
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.pipeline.job_process import urls
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import access, made, put
from tests.started_process import ROOT

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a query takes minutes

JOBS, SINK = "tests.pipeline.spark_jobs", "tests.pipeline.sink_jobs"
SETTINGS = {
    "transactionCoordinatorEnabled": "true",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
}


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    if given := os.environ.get("PULSAR_TEST_APACHE"):
        broker_url, web_url = given.split(",")
        yield Ready(broker_url, web_url, 0)
        return
    need_zookeeper()
    directory = tmp_path_factory.mktemp("apache")
    classpath = apache_classpath(directory)
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper")).start()
        broker = running.enter_context(ApacheBrokerProcess(directory / "broker", zookeeper.servers, classpath, **SETTINGS))
        command = [str(ROOT / "bin" / "pulsar"), "initialize-cluster-metadata", "-c", "test", "-md", f"zk:{zookeeper.servers}"]
        place = ["-uw", broker.ready.web_url, "-ub", broker.ready.broker_url, "--initial-num-transaction-coordinators", "2"]
        subprocess.run([*command, *place], check=True)
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        running.enter_context(JavaBookieProcess(directory / "bookie", uri, classpath)).launch()
        yield broker.start().ready
        broker.stop()


@pytest.fixture(scope="module")
def namespace(apache: Ready) -> str:
    """Namespace of a tenant of its own."""
    tenant = f"pipeline-{uuid.uuid4().hex[:8]}"
    with urlopen(f"{apache.web_url}/admin/v2/clusters", timeout=60) as answer:
        clusters = json.load(answer)
    put(apache, f"tenants/{tenant}", {"adminRoles": [], "allowedClusters": clusters})
    put(apache, f"namespaces/{tenant}/tables", {"retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}})
    return f"persistent://{tenant}/tables"


@pytest.fixture
def given(apache: Ready) -> dict[str, str]:
    return {"service.url": apache.broker_url, "admin.url": apache.web_url, "pollTimeoutMs": "300000"}


def test_rows_that_are_written_once_are_read_from_broker_and_bookie(
    spark: SparkProcess, apache: Ready, given: dict[str, str], namespace: str
) -> None:
    topic = made(apache, f"{namespace}/written", partitions=2, deduplicates=True)
    options = {**given, "topic": topic}
    for _ in range(2):  # the second time every row is there
        spark.run(f"{SINK}:write_range", options={**options, "guarantee": "deduplication", "writeId": "w"}, rows=1000)
    assert spark.run(f"{JOBS}:count", options={**options, "readFrom": "broker"}) == 1000
    for partition in range(2):
        name = f"{topic}-partition-{partition}"
        put(apache, f"{name.replace('://', '/')}/unload")
        until(lambda name=name: ledgers_of(name, access(apache), True)[0].places is not None)  # type: ignore[misc]
    found = spark.run(f"{JOBS}:rows", options=options, order="event_time")
    assert [each["value"] for each in found] == [b"value %d" % number for number in range(1000)]
    assert [each["key"] for each in found] == [b"k%d" % (number % 7) for number in range(1000)]
    assert found[42]["properties"] == {"number": "42", "kind": "test"}


def test_apache_does_not_know_the_route_that_tells_of_bookies_inside(apache: Ready) -> None:
    """A plan takes the refusal for no bookies inside."""
    with pytest.raises(HTTPError) as refused:
        urlopen(f"{apache.web_url}/admin/v2/bookies/local-reads", timeout=60)
    with refused.value as answer:
        assert answer.status == 404


def test_a_stream_reads_what_came_since_and_is_mirrored(
    spark: SparkProcess, apache: Ready, given: dict[str, str], namespace: str, tmp_path: Path
) -> None:
    topic = f"{namespace}/streamed"
    published(apache, topic, 50, batching=True)
    asked = {**given, "topic": topic, "startingOffsets": "earliest", "predefinedSubscription": "stream"}
    places = {"to": str(tmp_path / "table"), "checkpoint": str(tmp_path / "checkpoint")}
    assert sum(spark.run(f"{JOBS}:stream_sizes", options=asked, **places)) == 50
    published(apache, topic, 30, first=50)
    sizes = spark.run(f"{JOBS}:stream_sizes", options={**asked, "maxMessagesPerTrigger": "10"}, **places)
    assert (sum(sizes), max(sizes)) == (30, 10)
    assert sorted(each["v"] for each in spark.run(f"{JOBS}:table", path=places["to"])) == sorted(names(0, 80))
    left = spark.run(f"{JOBS}:rows", options={**given, "topic": topic, "unacknowledgedBy": "stream"})
    assert len(left) <= 10  # it stands where the last batch began, or where it ended


def test_transactions_are_committed_together(spark: SparkProcess, apache: Ready, given: dict[str, str], namespace: str) -> None:
    topic = made(apache, f"{namespace}/transacted")
    options = {**given, "topic": topic, "guarantee": "transactions", "writeId": f"{namespace.rpartition('/')[0][-8:]}"}
    for _ in range(2):  # the second one's transactions are aborted: the batch was decided
        spark.run(f"{SINK}:write_range", options=options, rows=300)
    assert spark.run(f"{JOBS}:count", options={**given, "topic": topic}) == 300


def test_schemas_and_jobs(spark: SparkProcess, apache: Ready, given: dict[str, str], namespace: str, tmp_path: Path) -> None:
    topic = made(apache, f"{namespace}/typed")
    rows = [(("a", number),) for number in range(20)]
    schema = "value struct<name: string, number: bigint>"
    [(kinds, found)] = spark.run(
        f"{SINK}:there_and_back", cases=[({**given, "topic": topic, "valueSchema": "avro"}, schema, rows)]
    )
    assert kinds["value"] == "struct<name:string,number:bigint>"
    assert [each["value"] for each in found] == [{"name": "a", "number": number} for number in range(20)]
    land = ["land", *urls(apache), "--topics", topic, "--to", str(tmp_path / "landed")]
    code, out, complaint = spark.run(f"{SINK}:command", words=land)
    assert (code, json.loads(out or "{}").get("messages")) == (0, 20), complaint
    sides = ["--expected", topic, "--found", f"parquet:{tmp_path}/landed/data"]
    code, out, complaint = spark.run(f"{SINK}:command", words=["reconcile", *urls(apache), *sides])
    assert (code, json.loads(out or "{}").get("messages found")) == (0, 20), complaint
