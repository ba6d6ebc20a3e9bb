"""One bookie of three whose file system of 60 MB is filled to the last block by another program, under publishers and readers.

The others take what it does not; it is read, killed and started meanwhile; with room it takes entries again by itself.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pulsar
import pytest
from kazoo.client import KazooClient

from tests.bookie.disk_proofs.mounts import LoopMount, need_loop_mounts
from tests.clients.bookie_process import BookieProcess
from tests.clients.broker_process import BrokerProcess
from tests.clients.python_client import quiet_client, until
from tests.clients.standalone.test_full_disk import MEGABYTES, RECEIVE_MS_MAX, Greedy, payload

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

COUNT = 50
BOOKIE = ("zkTimeout=2000", "diskCheckInterval=1000")


class Cluster:
    """Three bookies of which the first is on `mount`, and a broker. The ZooKeeper is shared: topics have the cluster's name."""

    def __init__(self, name: str, servers: str, mount: Path, bookies: list[BookieProcess], broker: BrokerProcess) -> None:
        self.mount, self.full, self.broker = mount, bookies[0], broker
        self.topics = [f"persistent://public/default/full-bookie-{name}-{number}" for number in range(4)]
        self.published = 0
        self._zookeeper = KazooClient(servers)
        self._zookeeper.start()

    def close(self) -> None:
        self._zookeeper.stop()
        self._zookeeper.close()

    def is_read_only(self) -> bool:
        return self.full.bookie_id in self._zookeeper.get_children("/ledgers/available/readonly")

    def publish(self, producers: list[pulsar.Producer]) -> None:
        """Publishes as many messages on each topic, many at a time. Each gets a receipt, or the test fails."""
        results: list[pulsar.Result] = []
        for number in range(self.published, self.published + COUNT):
            for producer in producers:
                producer.send_async(payload(number), lambda result, _: results.append(result))
        for producer in producers:
            producer.flush()
        until(lambda: len(results) == COUNT * len(producers))
        assert set(results) == {pulsar.Result.Ok}
        self.published += COUNT

    def check_all_is_read(self, client: pulsar.Client, subscription: str) -> None:
        for topic in self.topics:
            consumer = client.subscribe(topic, subscription, initial_position=pulsar.InitialPosition.Earliest)
            assert [consumer.receive(RECEIVE_MS_MAX).data() for _ in range(self.published)] == self.expected()
            consumer.close()

    def expected(self) -> list[bytes]:
        return [payload(number) for number in range(self.published)]


@pytest.fixture(params=[(2, 2, 2), (3, 3, 2)], ids=["two of three", "all three"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, servers: str) -> Iterator[Cluster]:
    need_loop_mounts()
    names = ("EnsembleSize", "WriteQuorum", "AckQuorum")
    quorums = [f"managedLedgerDefault{name}={value}" for name, value in zip(names, request.param, strict=True)]
    uri = f"zk+hierarchical://{servers}/ledgers"
    with ExitStack() as running:
        mount = running.enter_context(LoopMount(MEGABYTES)).path
        first = tmp_path / "bookie-0"
        first.mkdir()
        for name in ("journal", "ledgers"):
            (mount / name).mkdir()
            (first / name).symlink_to(mount / name)
        directories = [first, tmp_path / "bookie-1", tmp_path / "bookie-2"]
        bookies = [running.enter_context(BookieProcess(directory, uri, *BOOKIE)).start() for directory in directories]
        broker = running.enter_context(BrokerProcess(tmp_path / "broker", servers, *quorums)).start()
        cluster = Cluster("".join(map(str, request.param)), servers, mount, bookies, broker)
        running.callback(cluster.close)
        yield cluster


def test_the_others_take_what_a_full_bookie_does_not_and_it_comes_back_by_itself(cluster: Cluster) -> None:
    client = quiet_client(cluster.broker.ready.broker_url)
    try:
        staying = [client.subscribe(topic, "staying") for topic in cluster.topics]
        producers = [
            client.create_producer(topic, batching_enabled=False, send_timeout_millis=60_000) for topic in cluster.topics
        ]
        cluster.publish(producers)
        greedy = Greedy(cluster.mount)
        with greedy:
            while not cluster.is_read_only():
                cluster.publish(producers)
            cluster.publish(producers)
            cluster.check_all_is_read(client, "while full")
            cluster.full.kill()
            cluster.full.start()
            cluster.publish(producers)
            assert cluster.is_read_only()
            assert greedy.refused_times > 0, "the disk never was full to the last block"
        until(lambda: not cluster.is_read_only())
        cluster.publish(producers)
        cluster.check_all_is_read(client, "with room")
        for consumer in staying:
            assert [consumer.receive(RECEIVE_MS_MAX).data() for _ in range(cluster.published)] == cluster.expected()
    finally:
        client.close()
    log = cluster.broker.log.read_text()
    assert "closed after a failure of its log" not in log
