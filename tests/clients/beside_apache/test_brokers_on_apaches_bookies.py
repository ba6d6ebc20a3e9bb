"""Two of our brokers on three of Apache's bookies: topics and cursors with holes outlive a planned stop and a kill.

Apache's client, Apache's bookies, Apache's ZooKeeper; metadata of the ledgers by Apache's shell. Only the brokers are ours.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import pulsar
import pytest
from kazoo.client import KazooClient

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import FAILOVER_MS, owner_of, started_brokers
from tests.clients.java_bookie_process import JavaBookieProcess, java_classpath, make_cluster
from tests.clients.mixed_brokers import move
from tests.clients.python_client import names, next_of, nothing_comes, publish, quiet_client, until
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("java") is None, reason="no Java toolchain"),
]

COUNT = 40
STARTS_SECONDS_MAX = 240.0
SESSION_MS = 15_000
"""Apache's bookie ends itself when it cannot register in time."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BrokerProcess]]:
    need_zookeeper()
    directory = tmp_path_factory.mktemp("apaches")
    classpath = java_classpath(directory)
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper", "tickTime=1000")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        make_cluster(classpath, uri, directory)
        bookies = [
            running.enter_context(JavaBookieProcess(directory / f"bookie-{number}", uri, classpath, SESSION_MS)).launch()
            for number in range(3)
        ]
        until_registered(zookeeper.servers, {bookie.bookie_id for bookie in bookies})
        yield running.enter_context(started_brokers(directory, zookeeper.servers))


def until_registered(servers: str, bookie_ids: set[str]) -> None:
    client = KazooClient(servers)
    client.start()
    try:
        until(lambda: bookie_ids <= set(client.get_children("/ledgers/available")), STARTS_SECONDS_MAX)
    finally:
        client.stop()
        client.close()


def take(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    """Without acknowledging them."""
    return [consumer.receive(timeout_millis=FAILOVER_MS) for _ in range(count)]


def texts(messages: list[pulsar.Message]) -> list[str]:
    return sorted(message.data().decode() for message in messages)


def shared(client: pulsar.Client, topic: str) -> pulsar.Consumer:
    return client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)


def leave_holes(client: pulsar.Client, topic: str) -> list[str]:
    """Every second of COUNT messages is acknowledged; the others, sorted."""
    consumer = shared(client, topic)
    publish(client, topic, COUNT)
    messages = take(consumer, COUNT)
    for message in messages[1::2]:
        consumer.acknowledge(message)
    consumer.close()
    return texts(messages[::2])


def test_acknowledgements_survive_a_planned_stop_and_then_a_kill(brokers: list[BrokerProcess], topic: str) -> None:
    first, second = brokers
    move(topic, first, second)
    client = quiet_client(f"{second.ready.broker_url},{first.ready.broker_url.removeprefix('pulsar://')}")
    try:
        left = leave_holes(client, topic)
        assert first.stop() == 0, first.log.read_text()
        until(lambda: owner_of(topic, second) == second.ready.broker_url)
        consumer = shared(client, topic)
        assert texts(take(consumer, len(left))) == left
        assert nothing_comes(consumer)
        consumer.close()
        first.start()
        second.kill()
        until(lambda: owner_of(topic, first) == first.ready.broker_url)
        consumer = shared(client, topic)
        assert texts(take(consumer, len(left))) == left, "the holes were stored at the stop, and nothing since"
        assert nothing_comes(consumer)
    finally:
        client.close()
        second.kill()
        second.start()


def test_published_messages_survive_a_kill_and_unacknowledged_ones_are_delivered(
    brokers: list[BrokerProcess], topic: str
) -> None:
    """The last messages acknowledged before a kill may come again, as with Apache's broker."""
    stays, killed = brokers
    move(topic, killed, stays)
    client = quiet_client(stays.ready.broker_url)
    try:
        left = leave_holes(client, topic)
        producer = client.create_producer(topic, block_if_queue_full=True, send_timeout_millis=0, batching_enabled=False)
        results: list[pulsar.Result] = []
        for index in range(COUNT, 3 * COUNT):
            producer.send_async(f"m{index}".encode(), lambda result, _: results.append(result))
            if index == 2 * COUNT:
                killed.kill()
        producer.flush()
        assert results == [pulsar.Result.Ok] * 2 * COUNT
        assert owner_of(topic, stays) == stays.ready.broker_url
        wanted = {*left, *names(COUNT, 2 * COUNT)}
        got: set[str] = set()
        consumer = shared(client, topic)
        while not wanted <= got:
            message = next_of(consumer, FAILOVER_MS)
            assert message is not None, wanted - got
            got.add(message.data().decode())
        assert got <= set(names(0, 3 * COUNT))
    finally:
        client.close()
        killed.kill()
        killed.start()
