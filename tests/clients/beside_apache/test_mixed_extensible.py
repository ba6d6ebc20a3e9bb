"""A broker of Apache's with its extensible load manager comes to one of ours, and goes: clients go over to it, and back.

It owns bundles by messages of a topic, and asks no node: docs/results/2026-11-21-mixed-with-apache.md.
"""

import urllib.error
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.clients.apache_broker_process import EXTENSIBLE, ApacheBrokerProcess, apache_classpath
from tests.clients.broker_process import BrokerProcess, storage_of_a_cluster
from tests.clients.cluster.test_load import Publishing
from tests.clients.cluster_admin import Broker, owner_of, receive_all
from tests.clients.python_client import quiet_client, until

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

SETTLED_SECONDS_MAX = 180.0
"""Apache's answers lookups with errors until its own topics are there."""


def names_as_owner(asked: Broker, topic: str, owner: Broker) -> bool:
    try:
        return owner_of(topic, asked) == owner.ready.broker_url
    except (urllib.error.URLError, OSError):
        return False


def test_clients_go_to_such_a_broker_when_it_comes_and_come_back_when_it_goes(tmp_path: Path, topic: str) -> None:
    classpath = apache_classpath(tmp_path)
    with ExitStack() as running:
        storage = running.enter_context(storage_of_a_cluster(tmp_path / "storage"))
        ours = running.enter_context(BrokerProcess(tmp_path / "ours", storage)).start()
        apaches = running.enter_context(
            ApacheBrokerProcess(tmp_path / "a", storage, classpath, loadManagerClassName=EXTENSIBLE)
        )
        client = quiet_client(ours.ready.broker_url)
        running.callback(client.close)
        consumer = client.subscribe(topic, "s")
        with Publishing(client.create_producer(topic, batching_enabled=False, send_timeout_millis=0)) as publishing:
            publishing.go_on()
            apaches.start()
            for broker in (ours, apaches):
                until(partial(names_as_owner, broker, topic, apaches), SETTLED_SECONDS_MAX)
            publishing.go_on()
            apaches.stop()
            until(lambda: names_as_owner(ours, topic, ours), SETTLED_SECONDS_MAX)
            publishing.go_on()
        assert publishing.failures == []
        assert receive_all(consumer, set(publishing.sent)) == publishing.sent
        assert "serves nothing beside brokers with ExtensibleLoadManagerImpl" in ours.log.read_text()
