"""A planned stop that takes its time: clients that come meanwhile are let in, also where load is not balanced."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.clients.bookie_process import BookieProcess
from tests.clients.cluster_admin import by_owner, get, started_brokers
from tests.clients.python_client import quiet_client, receive, until
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

BOTH = ("EnsembleSize", "WriteQuorum", "AckQuorum")
"""Two bookies, and each must have everything: while one sleeps no ledger can be closed."""


@pytest.fixture
def bookies(tmp_path: Path) -> Iterator[tuple[str, list[BookieProcess]]]:
    """ZooKeeper's servers, and two bookies."""
    need_zookeeper()
    with contextlib.ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(tmp_path / "zookeeper")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        kept_long = "zkTimeout=4000"
        both = [running.enter_context(BookieProcess(tmp_path / f"bookie-{number}", uri, kept_long)) for number in range(2)]
        yield zookeeper.servers, [bookie.start() for bookie in both]


def test_while_a_broker_gives_up_its_topics_clients_are_let_in(
    tmp_path: Path, bookies: tuple[str, list[BookieProcess]], topic: str
) -> None:
    servers, (_, sleeper) = bookies
    settings = (*(f"managedLedgerDefault{which}=2" for which in BOTH), "loadBalancerEnabled=false")
    with started_brokers(tmp_path, servers, *settings) as (stays, stops):
        mine = by_owner([stays, stops], topic)[stops.ready.broker_url]
        client = quiet_client(stays.ready.broker_url)
        try:
            consumer = client.subscribe(mine, "s")
            producer = client.create_producer(mine, batching_enabled=False)
            producer.send(b"before")
            answers: list[pulsar.Result] = []
            sleeper.pause()
            producer.send_async(b"meanwhile", lambda result, _: answers.append(result))
            stops.begin_stop()
            until(lambda: "bundle released" in stops.log.read_text())
            with socket.create_connection(("127.0.0.1", int(stops.ready.broker_url.rsplit(":", 1)[1])), timeout=5):
                assert get(stops, "/admin/v2/clusters") == ["test"]
            assert not answers, "it has not begun to end"
            sleeper.go_on()
            assert stops.until_end() == 0, stops.log.read_text()
            producer.send(b"after")
            assert receive(consumer, 3) == ["before", "meanwhile", "after"]
            assert answers == [pulsar.Result.Ok]
        finally:
            client.close()
        assert "no broker is named as the next owner of a bundle" not in stops.log.read_text()
