"""Two brokers on a real ZooKeeper and three bookies: who serves a topic, unloading over REST, and a broker that is killed."""

import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.python_client import names, quiet_client, receive, until

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

FAILOVER_MS = 30_000
COUNT = 300


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[list[BrokerProcess]]:
    directory = tmp_path_factory.mktemp("cluster")
    both = [BrokerProcess(directory / f"broker-{number}", storage) for number in range(2)]
    try:
        for broker in both:
            broker.start()
        yield both
    finally:
        for broker in both:
            broker.stop()


def owner_of(topic: str, asked: BrokerProcess) -> str:
    """The URL of the broker that serves it, from the lookup over HTTP, redirects followed."""
    url = f"{asked.ready.web_url}/lookup/v2/topic/{topic.replace('://', '/')}"
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(json.loads(answer.read())["brokerUrl"])


def by_owner(brokers: list[BrokerProcess], topic: str) -> dict[str, str]:
    """A topic of each broker, after the bundles have been dealt anew: a broker that was killed has none at first, one that
    slept is dealt none before it has come back."""
    found: dict[str, str] = {}

    def is_dealt() -> bool:
        found.clear()
        put(brokers[0], "/admin/v2/namespaces/public/default/unload")
        for index in range(64):
            name = f"{topic}-{index}"
            found.setdefault(owner_of(name, brokers[0]), name)
        return found.keys() == {broker.ready.broker_url for broker in brokers}

    until(is_dealt)
    return found


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


def unload_paths(topic: str) -> list[str]:
    name = topic.removeprefix("persistent://")
    ranges = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff")
    return [
        f"/admin/v2/persistent/{name}/unload",
        "/admin/v2/namespaces/public/default/unload",
        *(f"/admin/v2/namespaces/public/default/{each}/unload" for each in ranges),
    ]


def test_unloading_costs_clients_nothing(brokers: list[BrokerProcess], topic: str) -> None:
    names_of = by_owner(brokers, topic)
    client = quiet_client(brokers[0].ready.broker_url)
    try:
        for name in names_of.values():
            consumer = client.subscribe(name, "s")
            producer = client.create_producer(name)
            for index, path in enumerate(unload_paths(name)):
                producer.send(f"m{index}".encode())
                put(brokers[index % 2], path)
                producer.send(f"n{index}".encode())
            got = receive_all(consumer, {f"{kind}{index}" for kind in "mn" for index in range(6)})
            assert got == [f"{kind}{index}" for index in range(6) for kind in "mn"]
    finally:
        client.close()


def put(broker: BrokerProcess, path: str) -> None:
    """Redirects of a PUT are followed as `pulsar-admin` does."""
    url = broker.ready.web_url + path
    for _ in range(3):
        request = urllib.request.Request(url, method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert answer.status == 204
                return
        except urllib.error.HTTPError as answer:
            if answer.code != 307:
                raise
            url = answer.headers["Location"]
    raise AssertionError(f"{path}: redirected for ever")


def receive_all(consumer: pulsar.Consumer, wanted: set[str]) -> list[str]:
    """Each message once, in the order of its first coming, until all of `wanted` have come."""
    got: dict[str, None] = {}
    while not wanted <= got.keys():
        message = consumer.receive(timeout_millis=FAILOVER_MS)
        got.setdefault(message.data().decode())
        consumer.acknowledge(message)
    return list(got)


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
def test_a_go_client_goes_on_when_a_broker_is_killed(brokers: list[BrokerProcess], topic: str) -> None:
    environment = {
        **os.environ,
        "PULSAR_TEST_URL": brokers[0].ready.broker_url,
        "PULSAR_TEST_TOPIC": by_owner(brokers, topic)[brokers[1].ready.broker_url],
        "PULSAR_TEST_OWNER": str(brokers[1].ready.pid),
    }
    command = ["go", "test", "-count=1", "-tags", "cluster", "-run", "TestAKilledBroker", "."]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent / "go", env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        brokers[1].kill()
        brokers[1].start()
