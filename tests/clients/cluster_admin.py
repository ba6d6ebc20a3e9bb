"""Requests of an operator to brokers of a cluster over REST, and their effect on clients."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pulsar

from tests.clients.broker_process import BrokerProcess
from tests.clients.python_client import until
from tests.clients.server_process import Ready

NAMESPACE = "/admin/v2/namespaces/public/default"
FAILOVER_MS = 30_000


@contextmanager
def started_brokers(directory: Path, storage: str, *settings: str) -> Iterator[list[BrokerProcess]]:
    """Two of one cluster."""
    both = [BrokerProcess(directory / f"broker-{number}", storage, *settings) for number in range(2)]
    try:
        for broker in both:
            broker.start()
        yield both
    finally:
        for broker in both:
            broker.stop()


class Broker(Protocol):
    """A started one, of ours or of Apache's."""

    ready: Ready


def id_of(broker: Broker) -> str:
    return broker.ready.web_url.removeprefix("http://")


def get(broker: Broker, path: str) -> Any:
    """None for an empty answer, which is Apache's for what is not set."""
    with urllib.request.urlopen(broker.ready.web_url + path, timeout=20) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def until_alone(brokers: Sequence[Broker]) -> None:
    """The brokers of other tests of this ZooKeeper are gone: one of Apache's that was killed keeps its bundles for half a
    minute, longer than a client waits for its topic."""
    ids = {id_of(broker) for broker in brokers}
    until(lambda: set(get(brokers[0], "/admin/v2/brokers")) == ids)


def leader_of(asked: Broker) -> str:
    """Id of the leader; empty while none is elected."""
    try:
        return str(get(asked, "/admin/v2/brokers/leaderBroker")["brokerId"])
    except urllib.error.HTTPError as answer:
        if answer.code != 404:
            raise
        return ""


def owner_of(topic: str, asked: Broker) -> str:
    """The URL of the broker that serves it, from the lookup over HTTP, redirects followed."""
    return str(get(asked, f"/lookup/v2/topic/{topic.replace('://', '/')}")["brokerUrl"])


def ranges(asked: Broker) -> list[str]:
    """Ranges of the bundles of public/default."""
    edges = get(asked, f"{NAMESPACE}/bundles")["boundaries"]
    return [f"{low}_{high}" for low, high in pairwise(edges)]


def by_owner(brokers: list[BrokerProcess], topic: str) -> dict[str, str]:
    """A topic of each broker, after the bundles have been dealt anew: a broker that was killed has none at first, one that
    slept is dealt none before it has come back."""
    found: dict[str, str] = {}

    def is_dealt() -> bool:
        found.clear()
        put(brokers[0], f"{NAMESPACE}/unload")
        for index in range(64):
            name = f"{topic}-{index}"
            found.setdefault(owner_of(name, brokers[0]), name)
        return found.keys() == {broker.ready.broker_url for broker in brokers}

    until(is_dealt)
    return found


def put(broker: Broker, path: str, body: Any = None) -> None:
    _ask(broker, "PUT", path, None if body is None else json.dumps(body).encode())


def post(broker: Broker, path: str, body: Any) -> None:
    _ask(broker, "POST", path, json.dumps(body).encode())


def _ask(broker: Broker, method: str, path: str, data: bytes | None) -> None:
    """Redirects are followed with the body, as `pulsar-admin` does."""
    url, headers = broker.ready.web_url + path, {} if data is None else {"Content-Type": "application/json"}
    for _ in range(3):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:
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
