"""Two brokers on a real ZooKeeper and three bookies: who serves a topic, unloading over REST, and a broker that is killed."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import NAMESPACE, by_owner, owner_of, put, ranges, receive_all, started_brokers, until_alone
from tests.clients.python_client import names, quiet_client, receive, until
from tests.toolchain import go_tests, run_tool

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

COUNT = 300
GO_SECONDS_MAX = 200.0


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[list[BrokerProcess]]:
    with started_brokers(tmp_path_factory.mktemp("cluster"), storage) as both:
        until_alone(both)
        yield both


def test_both_brokers_name_the_same_owner_and_a_client_of_either_reaches_it(brokers: list[BrokerProcess], topic: str) -> None:
    topics = by_owner(brokers, topic)
    for name in topics.values():
        assert owner_of(name, brokers[0]) == owner_of(name, brokers[1])
    for broker in brokers:
        client = quiet_client(broker.ready.broker_url)
        for name in topics.values():
            consumer = client.subscribe(name, broker.ready.broker_url)
            producer = client.create_producer(name)
            producer.send(b"m0")
            assert receive(consumer, 1) == ["m0"]
        client.close()


def unload_paths(broker: BrokerProcess, topic: str) -> list[str]:
    name = topic.removeprefix("persistent://")
    return [
        f"/admin/v2/persistent/{name}/unload",
        f"{NAMESPACE}/unload",
        *(f"{NAMESPACE}/{each}/unload" for each in ranges(broker)[:4]),
    ]


def test_unloading_costs_clients_nothing(brokers: list[BrokerProcess], topic: str) -> None:
    names_of = by_owner(brokers, topic)
    client = quiet_client(brokers[0].ready.broker_url)
    try:
        for name in names_of.values():
            consumer = client.subscribe(name, "s")
            producer = client.create_producer(name)
            for index, path in enumerate(unload_paths(brokers[0], name)):
                producer.send(f"m{index}".encode())
                put(brokers[index % 2], path)
                producer.send(f"n{index}".encode())
            got = receive_all(consumer, {f"{kind}{index}" for kind in "mn" for index in range(6)})
            assert got == [f"{kind}{index}" for index in range(6) for kind in "mn"]
    finally:
        client.close()


def test_a_killed_brokers_topics_are_served_by_the_other(brokers: list[BrokerProcess], topic: str) -> None:
    name = by_owner(brokers, topic)[brokers[1].ready.broker_url]
    client = quiet_client(brokers[0].ready.broker_url)
    try:
        consumer = client.subscribe(name, "s")
        producer = client.create_producer(name, block_if_queue_full=True, send_timeout_millis=0, batching_enabled=False)
        confirmed: set[str] = set()

        def on_sent(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
            if result == pulsar.Result.Ok:
                confirmed.add(str(message_id))

        for index in range(COUNT):
            producer.send_async(f"m{index}".encode(), on_sent)
            if index == COUNT // 2:
                brokers[1].kill()
        producer.flush()
        assert len(confirmed) == COUNT
        assert receive_all(consumer, set(names(0, COUNT))) == names(0, COUNT)
        assert owner_of(name, brokers[0]) == brokers[0].ready.broker_url
    finally:
        client.close()
        brokers[1].kill()
        brokers[1].start()


def test_a_non_persistent_topic_goes_on_after_an_unload_and_with_the_other_broker_when_its_own_is_killed(
    brokers: list[BrokerProcess], topic: str
) -> None:
    """Messages published while no broker serves the topic are lost, as they always are; later ones arrive."""
    topics = by_owner(brokers, topic.replace("persistent://", "non-persistent://"))
    name = topics[brokers[1].ready.broker_url]
    client = quiet_client(brokers[0].ready.broker_url)
    try:
        consumer = client.subscribe(name, "s")
        producer = client.create_producer(name, batching_enabled=False, send_timeout_millis=0)
        until_it_arrives(producer, consumer, b"at first")
        put(brokers[0], f"{NAMESPACE}/unload")
        until_it_arrives(producer, consumer, b"after an unload")
        brokers[1].kill()
        until_it_arrives(producer, consumer, b"after a kill")
        assert owner_of(name, brokers[0]) == brokers[0].ready.broker_url
    finally:
        client.close()
        brokers[1].kill()
        brokers[1].start()


PARTITIONED = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_topic_that_is_partitioned_by_default_is_so_also_when_another_broker_than_its_own_is_asked(
    brokers: list[BrokerProcess], topic: str, domain: str
) -> None:
    namespace = f"public/{topic.rpartition('/')[2]}"
    put(
        brokers[0],
        f"/admin/v2/namespaces/{namespace}",
        {"autoTopicCreationOverride": PARTITIONED, "bundles": {"numBundles": 8}},
    )
    names_of = [f"{domain}://{namespace}/t-{index}" for index in range(8)]
    for name in names_of:
        asked = next(each for each in brokers if each.ready.broker_url != owner_of(name, brokers[0]))
        client = quiet_client(asked.ready.broker_url)
        try:
            assert client.get_topic_partitions(name) == [f"{name}-partition-{index}" for index in range(3)]
            consumer = client.subscribe(name, "s")
            until_it_arrives(client.create_producer(name), consumer, b"m0")
        finally:
            client.close()


def until_it_arrives(producer: pulsar.Producer, consumer: pulsar.Consumer, content: bytes) -> None:
    """Sends the message again and again until it arrives: a non-persistent topic may lose it."""

    def has_come() -> bool:
        producer.send_async(content, lambda _result, _message_id: None)
        try:
            return bool(consumer.receive(timeout_millis=200).data() == content)
        except pulsar.Timeout:
            return False

    until(has_come)


def test_an_owner_that_slept_too_long_acknowledges_nothing(brokers: list[BrokerProcess], topic: str) -> None:
    """Both ways, so that one of them takes over a log whose ledgers are younger than those that it made last."""
    for turn in range(2):
        owner = brokers[turn]
        sleep_and_wake(owner, brokers[1 - turn], by_owner(brokers, f"{topic}-{turn}")[owner.ready.broker_url])


def sleep_and_wake(owner: BrokerProcess, other: BrokerProcess, name: str) -> None:
    early, late = quiet_client(owner.ready.broker_url), quiet_client(other.ready.broker_url)
    try:
        sleeper = early.create_producer(name, send_timeout_millis=0, batching_enabled=False)
        sleeper.send(b"m0")
        os.kill(owner.ready.pid, signal.SIGSTOP)
        try:
            sleeper.send_async(b"m1", lambda _result, _message_id: None)
            until(lambda: owner_of(name, other) == other.ready.broker_url)
            consumer = late.subscribe(name, "s", initial_position=pulsar.InitialPosition.Earliest)
            late.create_producer(name).send(b"n0")
        finally:
            os.kill(owner.ready.pid, signal.SIGCONT)
        sleeper.flush()
        assert receive_all(consumer, {"m0", "n0", "m1"}) == ["m0", "n0", "m1"]
    finally:
        early.close()
        late.close()


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go toolchain")
def test_a_go_client_goes_on_when_a_broker_is_killed(brokers: list[BrokerProcess], topic: str, tmp_path: Path) -> None:
    package = Path(__file__).parent.parent / "go"
    tests = go_tests(package, "cluster", tmp_path)
    environment = {
        "PULSAR_TEST_URL": brokers[0].ready.broker_url,
        "PULSAR_TEST_TOPIC": by_owner(brokers, topic)[brokers[1].ready.broker_url],
        "PULSAR_TEST_OWNER": str(brokers[1].ready.pid),
    }
    try:
        output = run_tool([str(tests), "-test.v", "-test.run", "TestAKilledBroker"], package, GO_SECONDS_MAX, environment)
        assert "--- PASS: TestAKilledBroker" in output, output
    finally:
        brokers[1].kill()
        brokers[1].start()
