"""Topics of a cluster over TLS with tokens, on three bookies: straight from bookies, through brokers, and on Spark."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pulsar
import pytest

from pipeline.pyspark_pulsar.client import split_rows
from pipeline.pyspark_pulsar.client.admin import ledgers_of_all
from pipeline.pyspark_pulsar.client.bookies import bookie_reader, nearby_bookie
from pipeline.pyspark_pulsar.client.bookies.bookie_connection import BookieConnection
from pipeline.pyspark_pulsar.client.brokers import topics_of
from pipeline.pyspark_pulsar.client.connection import Lost
from pipeline.pyspark_pulsar.client.split_rows import rows_of_split
from pipeline.pyspark_pulsar.decode.arrow_columns import batch_of
from pipeline.pyspark_pulsar.options import parse_options
from pipeline.pyspark_pulsar.plan import splits_of
from pipeline.pyspark_pulsar.positions import EARLIEST, end_of, ranges_between
from tests.broker.security.token_maker import token
from tests.certificates import Authority, need_openssl
from tests.clients.bookie_process import BookieProcess
from tests.clients.cluster_admin import started_brokers
from tests.clients.python_client import names
from tests.clients.secured_brokers import SecuredCluster, cluster_settings, pipeline_options, token_file
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.pipeline.spark_process import SparkProcess

pytestmark = [pytest.mark.clients, need_openssl, pytest.mark.timeout(900)]

SINK = "tests.pipeline.sink_jobs"
JOBS = "tests.pipeline.spark_jobs"
COUNT = 200
TOPIC = "persistent://public/default/spread"
KEPT = ("defaultRetentionTimeInMinutes=-1", "defaultRetentionSizeInMB=-1", "brokerDeleteInactiveTopicsEnabled=false")


@dataclass(frozen=True, slots=True)
class Site:
    """A topic of four partitions with COUNT messages, in ledgers that are closed; options that reach it."""

    options: dict[str, str]
    cluster: SecuredCluster
    bookies: list[BookieProcess]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("cluster")
    authority, credentials = Authority(directory / "authority"), token_file(directory, "broker")
    need_zookeeper()
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper")).start().servers
        uri = f"zk+hierarchical://{zookeeper}/ledgers"
        bookies = [
            running.enter_context(BookieProcess(directory / f"bookie-{number}", uri, "zkTimeout=2000")).start()
            for number in range(3)
        ]
        settings = (*cluster_settings(authority, credentials), *KEPT)
        brokers = running.enter_context(started_brokers(directory, zookeeper, *settings))
        options = pipeline_options(brokers[0], authority, credentials)
        cluster = SecuredCluster(authority, brokers)
        cluster.ask(0, "PUT", "/admin/v2/persistent/public/default/spread/partitions", 4)
        publish(options, COUNT)
        cluster.ask(0, "PUT", "/admin/v2/namespaces/public/default/unload")
        yield Site({**options, "topic": TOPIC}, cluster, bookies)


def publish(options: dict[str, str], count: int) -> None:
    client = pulsar.Client(
        options["service.url"],
        authentication=pulsar.AuthenticationToken(token("broker")),
        tls_trust_certs_file_path=options["pulsar.client.tlsTrustCertsFilePath"],
        tls_validate_hostname=True,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    try:
        producer = client.create_producer(TOPIC, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
        for each in names(0, count):
            producer.send(each.encode())
    finally:
        client.close()


def read(site: Site) -> list[str]:
    return sorted(values_of(site))


def values_of(site: Site) -> Iterator[str]:
    options = parse_options(site.options, is_stream=False)
    for topic, ledgers in ledgers_of_all(topics_of(options), options.access, options.reads_bookies).items():
        for split in splits_of(topic, ranges_between(ledgers, EARLIEST, end_of(ledgers)), options.split_bytes):
            for rows in rows_of_split(split, options):
                yield from (each["value"].decode() for each in batch_of(rows, topic, ["value"]).to_pylist())


def never(*_: object) -> None:
    raise AssertionError("a broker was asked for entries")


def test_closed_ledgers_are_read_from_bookies_without_a_broker(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_rows, "SplitReader", never)
    assert read(site) == sorted(names(0, COUNT))


def test_bookies_that_cannot_be_reached_are_replaced_by_brokers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set()

    def refused(address: str, timeout_seconds: float) -> None:
        asked.add(address)
        raise Lost(f"bookie {address}: refused")

    for module in (bookie_reader, nearby_bookie):
        monkeypatch.setattr(module, "BookieConnection", refused)
    assert read(site) == sorted(names(0, COUNT))
    assert len(asked) == 3


def test_a_bookie_that_is_killed_while_it_is_read_is_replaced_by_the_others(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several windows of every ledger are still to come from it, and no broker is asked for them."""
    connected = []

    def told(address: str, timeout_seconds: float) -> BookieConnection:
        connected.append(address)
        return BookieConnection(address, timeout_seconds)

    for module in (bookie_reader, nearby_bookie):
        monkeypatch.setattr(module, "BookieConnection", told)
    monkeypatch.setattr(bookie_reader, "_WINDOW_ENTRIES_MAX", 5)
    monkeypatch.setattr(split_rows, "SplitReader", never)
    found = values_of(site)
    some = [next(found)]
    [killed] = [each for each in site.bookies if each.bookie_id == connected[0]]
    killed.kill()
    try:
        assert sorted(some + list(found)) == sorted(names(0, COUNT))
        assert set(connected) - {killed.bookie_id}
    finally:
        killed.start()


def test_spark_reads_and_writes_a_cluster_over_tls_with_a_token(spark: SparkProcess, site: Site) -> None:
    found = spark.run(f"{JOBS}:rows", options=site.options)
    assert sorted(each["value"].decode() for each in found) == sorted(names(0, COUNT))
    assert spark.run(f"{JOBS}:count", options={**site.options, "readFrom": "broker"}) == COUNT
    urls = {name: each for name, each in site.options.items() if name != "topic"}
    cases = [
        ({**urls, "topic": f"{TOPIC}-{kind}", "valueSchema": kind, "createTopic": "true"}, f"value {ddl}", rows)
        for kind, ddl, rows in (
            ("avro", "struct<name: string, number: bigint>", [(("a", 1),), ((None, 2**40),)]),
            ("protobuf_native", "struct<name: string, number: bigint>", [(("a", 1),), ((None, 2**40),)]),
            ("int64", "bigint", [(-(2**63),)]),
        )
    ]
    for (_, rows), (*_, given) in zip(spark.run(f"{SINK}:there_and_back", cases=cases), cases, strict=True):
        assert [as_plain(each["value"]) for each in rows] == [value for (value,) in given]


def as_plain(found: Any) -> Any:
    return tuple(found.values()) if isinstance(found, dict) else found
