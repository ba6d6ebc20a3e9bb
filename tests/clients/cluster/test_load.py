"""Two brokers and what moves between them: bundles are split and sent to the other under clients that notice nothing."""

from collections.abc import Iterator
from itertools import count
from threading import Event, Thread

import pulsar
import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import (
    NAMESPACE,
    get,
    id_of,
    leader_of,
    owner_of,
    put,
    ranges,
    receive_all,
    started_brokers,
    until_alone,
)
from tests.clients.python_client import quiet_client, until

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[list[BrokerProcess]]:
    settings = ("loadBalancerReportUpdateMinIntervalMillis=200", "statsUpdateFrequencyInSecs=1")
    with started_brokers(tmp_path_factory.mktemp("load"), storage, *settings) as both:
        until_alone(both)
        yield both


class Publishing:
    """A thread that sends one message after the other until it is told to end; all of them were acknowledged."""

    def __init__(self, producer: pulsar.Producer) -> None:
        self._producer, self._ends = producer, Event()
        self._thread = Thread(target=self._run)
        self.sent: list[str] = []
        self.failures: list[Exception] = []

    def _run(self) -> None:
        try:
            for number in count():
                if self._ends.is_set():
                    return
                self._producer.send(f"{number}".encode())
                self.sent.append(f"{number}")
        except Exception as error:  # noqa: BLE001  # whatever the client has: the test tells it
            self.failures.append(error)

    def __enter__(self) -> "Publishing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def go_on(self) -> None:
        """Waits until 20 more messages are acknowledged, or one fails."""
        wanted = len(self.sent) + 20
        until(lambda: len(self.sent) >= wanted or bool(self.failures))


def test_bundles_are_split_and_moved_under_a_client_that_publishes(brokers: list[BrokerProcess], topic: str) -> None:
    client = quiet_client(brokers[0].ready.broker_url)
    try:
        consumer = client.subscribe(topic, "s")
        producer = client.create_producer(topic, batching_enabled=False)
        with Publishing(producer) as publishing:
            for turn in range(3):
                publishing.go_on()
                before = ranges(brokers[0])
                put(brokers[turn % 2], f"{NAMESPACE}/LARGEST/split?unload={'true' if turn == 1 else 'false'}")
                assert len(ranges(brokers[1])) == len(before) + 1
                publishing.go_on()
                owner = owner_of(topic, brokers[0])
                (other,) = [broker for broker in brokers if broker.ready.broker_url != owner]
                for each in ranges(brokers[0]):
                    put(brokers[0], f"{NAMESPACE}/{each}/unload?destinationBroker={id_of(other)}")
                until(lambda other=other: owner_of(topic, brokers[0]) == other.ready.broker_url)  # type: ignore[misc]
        assert not publishing.failures
        assert receive_all(consumer, set(publishing.sent)) == publishing.sent
    finally:
        client.close()


def test_the_load_of_brokers_is_reported_and_one_is_the_leader(brokers: list[BrokerProcess], topic: str) -> None:
    found: list[str] = []

    def is_known() -> bool:
        found[:] = [leader_of(broker) for broker in brokers]
        return bool(found[0]) and found[0] == found[1]

    until(is_known)
    assert found[0] in {id_of(broker) for broker in brokers}
    client = quiet_client(brokers[0].ready.broker_url)
    try:
        producer = client.create_producer(topic, batching_enabled=False)
        (owner,) = [broker for broker in brokers if broker.ready.broker_url == owner_of(topic, brokers[0])]
        with Publishing(producer):
            until(lambda: get(owner, "/admin/v2/broker-stats/load-report")["msgRateIn"] > 0)
        assert get(owner, "/admin/v2/broker-stats/load-report")["numTopics"] >= 1
    finally:
        client.close()
