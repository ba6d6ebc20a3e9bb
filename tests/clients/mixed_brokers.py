"""Requests that brokers of both kinds answer: who owns a topic, and who is to own it.

`both_ways` is a fixture for tests that have one of `brokers`, a broker of each kind; they import it.
"""

import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import permutations
from pathlib import Path
from zlib import crc32

import pytest

from tests.clients.apache_broker_process import ApacheBrokerProcess, apache_classpath
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import NAMESPACE, Broker, get, id_of, leader_of, owner_of, put, ranges
from tests.clients.python_client import until


@contextmanager
def ours_and_apaches(
    directory: Path, storage: str, ours: Sequence[str], apaches: Mapping[str, str]
) -> Iterator[tuple[BrokerProcess, ApacheBrokerProcess]]:
    """One of each in one cluster, with these settings; ours is the leader."""
    classpath = apache_classpath(directory)
    with ExitStack() as running:
        first = running.enter_context(BrokerProcess(directory / "ours", storage, *ours)).start()
        until(lambda: leader_of(first) == id_of(first))
        second = running.enter_context(ApacheBrokerProcess(directory / "apaches", storage, classpath, **apaches)).start()
        yield first, second
        second.stop()
        assert first.stop() == 0, first.log.read_text()


Either = BrokerProcess | ApacheBrokerProcess


@pytest.fixture(params=[0, 1], ids=["ours first", "Apache's first"])
def both_ways(request: pytest.FixtureRequest, brokers: tuple[Either, Either]) -> tuple[Either, Either]:
    """Both, in either order; what the first one is meant to do the test says."""
    first, second = list(permutations(brokers))[request.param]
    return first, second


def path_of(topic: str) -> str:
    """Path of the topic in the admin REST."""
    return f"/admin/v2/{topic.replace('://', '/')}"


def bundle_of(topic: str, asked: Broker) -> str:
    """Range of the topic's bundle."""
    found = crc32(topic.encode())
    return next(each for each in reversed(ranges(asked)) if int(each.split("_")[0], 16) <= found)


def move(topic: str, destination: Broker, asked: Broker | None = None) -> None:
    """Has the owner of the topic's bundle give it up and `destination` serve it. `asked`: the broker that gets the request."""
    told = asked or destination
    put(told, f"{NAMESPACE}/{bundle_of(topic, told)}/unload?destinationBroker={id_of(destination)}")
    until(lambda: owner_of(topic, told) == destination.ready.broker_url)


def settle(topic: str, broker: Broker) -> None:
    """Waits until the broker has written the topic's cursors. Apache's broker makes a ledger for a cursor's first
    acknowledgements; an unload meanwhile stores a mark from before them, and their messages come again."""

    def is_settled() -> bool:
        cursors = get(broker, f"{path_of(topic)}/internalStats")["cursors"]
        return all(cursor["state"] != "SwitchingLedger" for cursor in cursors.values())

    until(is_settled)


def create_partitioned(topic: str, partitions: int, asked: Broker) -> list[str]:
    """The names of its partitions."""
    url = f"{asked.ready.web_url}{path_of(topic)}/partitions"
    request = urllib.request.Request(url, f"{partitions}".encode(), {"Content-Type": "application/json"}, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 204
    return [f"{topic}-partition-{index}" for index in range(partitions)]
