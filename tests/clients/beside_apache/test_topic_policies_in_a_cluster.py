"""Topic policies where `__change_events` is served by another broker: ours and Apache's, both ways round.

A policy that is set at one broker is read, and in force, at the other. Beside that, transactions with segmented snapshots.
"""

from collections.abc import Iterator
from contextlib import closing

import pulsar
import pytest

from tests.clients.apache_broker_process import ApacheBrokerProcess
from tests.clients.beside_apache.aborted_beside_apache import SETTINGS, aborted_goes_over_and_back, set_options
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import Broker, get, post
from tests.clients.mixed_brokers import both_ways, bundle_of, move, ours_and_apaches, path_of
from tests.clients.python_client import quiet_client, until

__all__ = ["both_ways"]  # a fixture

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

EVENTS = "persistent://public/default/__change_events"
SEGMENTED = {"transactionBufferSegmentedSnapshotEnabled": "true"}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[tuple[BrokerProcess, ApacheBrokerProcess]]:
    directory = tmp_path_factory.mktemp("policies")
    settings = {**SETTINGS, **SEGMENTED, "loadBalancerSheddingEnabled": "false"}
    with ours_and_apaches(directory, storage, set_options(**settings), settings) as both:
        yield both


def elsewhere_than_events(topic: str, asked: Broker) -> str:
    return next(
        name for name in (f"{topic}-{index}" for index in range(64)) if bundle_of(name, asked) != bundle_of(EVENTS, asked)
    )


def second_producer_is_refused(client: pulsar.Client, topic: str) -> bool:
    first = client.create_producer(topic)
    try:
        client.create_producer(topic).close()
        return False
    except pulsar.ProducerBusy:
        return True
    finally:
        first.close()


def test_a_policy_is_in_force_where_the_topic_is_whoever_serves_the_events(
    both_ways: tuple[Broker, Broker], topic: str
) -> None:
    """The events are at the first."""
    events_at, topic_at = both_ways
    name = elsewhere_than_events(topic, topic_at)
    move(EVENTS, events_at)
    move(name, topic_at)
    with closing(quiet_client(topic_at.ready.broker_url)) as client:
        client.create_producer(name).close()
        assert not second_producer_is_refused(client, name)
        for asked in both_ways:
            limit = 1 if asked is events_at else 2
            post(asked, f"{path_of(name)}/maxProducers", limit)
            for reader in both_ways:
                until(lambda reader=reader, limit=limit: get(reader, f"{path_of(name)}/maxProducers") == limit)  # type: ignore[misc]
            until(lambda limit=limit: second_producer_is_refused(client, name) == (limit == 1))  # type: ignore[misc]


def test_a_transaction_aborted_on_one_kind_of_broker_is_aborted_on_the_other(
    both_ways: tuple[Broker, Broker], topic: str
) -> None:
    """With segments and an index; with a whole list: test_mixed_with_apache.py."""
    aborted_goes_over_and_back(topic, *both_ways, in_segments=True)
