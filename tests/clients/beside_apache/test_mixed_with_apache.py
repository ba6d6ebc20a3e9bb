"""A broker of Apache's beside one of ours, on our bookies: topics go from one to the other and back with all that they have.

Both own bundles in the way of Apache's modular load manager; ours is the leader. The results are in
docs/results/2026-11-21-mixed-with-apache.md.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing

import pulsar
import pytest

from broker.service.load.board import apaches_report
from tests.clients.apache_broker_process import ApacheBrokerProcess
from tests.clients.beside_apache.aborted_beside_apache import SETTINGS, aborted_goes_over_and_back, set_options
from tests.clients.beside_apache.compacted_topics import compact, compacted_ledger, fill, read_compacted, table_of
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster.test_load import Publishing
from tests.clients.cluster_admin import Broker, get, id_of, leader_of, owner_of, receive_all
from tests.clients.mixed_brokers import both_ways, bundle_of, create_partitioned, move, ours_and_apaches, settle
from tests.clients.python_client import TIMEOUT_MS, names, publish, quiet_client, receive, until

__all__ = ["both_ways"]  # a fixture

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

HOLES_MAX = 40
"""Ranges that our broker writes as Apache's does."""

REFUSED_SECONDS = 3
"""Time for which a client repeats a subscribe that is refused each time."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[tuple[BrokerProcess, ApacheBrokerProcess]]:
    directory = tmp_path_factory.mktemp("mixed")
    settings = (f"managedLedgerMaxUnackedRangesToPersist={HOLES_MAX}", "loadBalancerSheddingEnabled=false", *set_options())
    with ours_and_apaches(directory, storage, settings, SETTINGS) as both:
        yield both


def client_of(broker: Broker) -> "closing[pulsar.Client]":
    return closing(quiet_client(broker.ready.broker_url))


def shared(client: pulsar.Client, topic: str) -> pulsar.Consumer:
    return client.subscribe(topic, "shared", consumer_type=pulsar.ConsumerType.Shared)


def take(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    """Without acknowledging them."""
    return [consumer.receive(timeout_millis=TIMEOUT_MS) for _ in range(count)]


def texts(messages: Sequence[pulsar.Message]) -> list[str]:
    return sorted(message.data().decode() for message in messages)


def leave_holes(consumer: pulsar.Consumer, count: int) -> list[str]:
    """Every second message is acknowledged; the others, sorted."""
    messages = take(consumer, count)
    for message in messages[1::2]:
        consumer.acknowledge(message)
    return texts(messages[::2])


def test_messages_and_cursors_with_holes_go_over_and_back(both_ways: tuple[Broker, Broker], topic: str) -> None:
    first, second = both_ways
    move(topic, first)
    with client_of(first) as client:
        consumer, exclusive = shared(client, topic), client.subscribe(topic, "exclusive")
        publish(client, topic, 40)
        left = leave_holes(consumer, 40)
        assert receive(exclusive, 10) == names(0, 10)
    settle(topic, first)
    move(topic, second)
    with client_of(second) as client:
        consumer, exclusive = shared(client, topic), client.subscribe(topic, "exclusive")
        assert receive(exclusive, 30) == names(10, 30)
        assert sorted(receive(consumer, len(left))) == left
        publish(client, topic, 20, first=40)
        left = leave_holes(consumer, 20)
        publish(client, topic, 20, batching=True, first=60)
    settle(topic, second)
    move(topic, first)
    with client_of(first) as client:
        consumer, exclusive = shared(client, topic), client.subscribe(topic, "exclusive")
        assert receive(exclusive, 40) == names(40, 40)
        assert sorted(receive(consumer, len(left) + 20)) == sorted(left + names(60, 20))


def test_partitions_are_served_by_both_kinds_at_a_time_and_change_places(both_ways: tuple[Broker, Broker], topic: str) -> None:
    first, second = both_ways
    partitions = create_partitioned(topic, 4, first)
    with client_of(second) as client:
        consumer = shared(client, topic)
        producer = client.create_producer(
            topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution, batching_enabled=False
        )
        for turn in range(3):
            for index, name in enumerate(partitions):
                move(name, both_ways[(index + turn) % 2], first)
            for number in range(20):
                producer.send(f"m{20 * turn + number}".encode())
            assert set(receive_all(consumer, set(names(20 * turn, 20)))) >= set(names(20 * turn, 20))


def test_the_order_of_each_key_holds_across_both_kinds(both_ways: tuple[Broker, Broker], topic: str) -> None:
    got: dict[str, list[int]] = defaultdict(list)
    for turn, broker in enumerate((*both_ways, both_ways[0])):
        move(topic, broker)
        with client_of(broker) as client:
            consumers = [client.subscribe(topic, "keys", consumer_type=pulsar.ConsumerType.KeyShared) for _ in range(2)]
            producer = client.create_producer(topic, batching_enabled=False)
            for number in range(40 * turn, 40 * turn + 40):
                producer.send(f"{number}".encode(), partition_key=f"key-{number % 8}")
            drain(consumers, got, 40 * (turn + 1))
        settle(topic, broker)
    assert all(numbers == list(range(numbers[0], 120, 8)) for numbers in got.values())
    assert len(got) == 8


def drain(consumers: Sequence[pulsar.Consumer], got: dict[str, list[int]], count: int) -> None:
    def is_there() -> bool:
        for consumer in consumers:
            try:
                message = consumer.receive(timeout_millis=20)
            except pulsar.Timeout:
                continue
            got[message.partition_key()].append(int(message.data()))
            consumer.acknowledge(message)
        return sum(map(len, got.values())) >= count

    until(is_there)


def test_a_topic_compacted_by_one_kind_of_broker_is_read_and_compacted_again_by_the_other(
    both_ways: tuple[Broker, Broker], topic: str
) -> None:
    newest: dict[str, str] = {}
    ledgers = [-1]
    for turn, broker in enumerate((*both_ways, both_ways[0])):
        move(topic, broker)
        with client_of(broker) as client:
            if turn:
                assert compacted_ledger(topic, broker)["ledgerId"] == ledgers[-1]
                assert read_compacted(client, topic) == newest, "as the other compacted it"
                assert table_of(client, topic) == newest
            fill(client, topic, newest, "x" * turn)
            ledgers.append(compact(topic, broker))
            assert read_compacted(client, topic) == newest
        settle(topic, broker)
    assert len(set(ledgers)) == 4


def test_a_client_of_either_goes_on_while_its_topic_moves(both_ways: tuple[Broker, Broker], topic: str) -> None:
    asked, other = both_ways
    with client_of(asked) as client:
        consumer = client.subscribe(topic, "s")
        with Publishing(client.create_producer(topic, batching_enabled=False)) as publishing:
            for destination in (asked, other, asked, other):
                publishing.go_on()
                move(topic, destination, asked)
                assert owner_of(topic, other) == owner_of(topic, asked)
                publishing.go_on()
        assert not publishing.failures
        assert receive_all(consumer, set(publishing.sent)) == publishing.sent


def test_the_load_of_apaches_broker_is_read_from_its_own_report(brokers: tuple[Broker, Broker], topic: str) -> None:
    ours, apaches = brokers
    assert {leader_of(each) for each in brokers} == {id_of(ours)}
    assert set(get(apaches, "/admin/v2/brokers/test")) == {id_of(each) for each in brokers}
    report = apaches_report(json.dumps(get(apaches, "/admin/v2/broker-stats/load-report")).encode())
    assert report is not None
    assert report.load.usage.memory > 0


def test_apaches_broker_refuses_a_cursor_with_segments_and_ours_has_it_still(
    brokers: tuple[Broker, Broker], topic: str
) -> None:
    ours, apaches = brokers
    count = 4 * HOLES_MAX
    move(topic, ours)
    with client_of(ours) as client:
        consumer = shared(client, topic)
        publish(client, topic, count)
        left = leave_holes(consumer, count)
    move(topic, apaches)
    impatient = closing(pulsar.Client(apaches.ready.broker_url, operation_timeout_seconds=REFUSED_SECONDS))
    with impatient as client, pytest.raises(pulsar.PulsarException):
        shared(client, topic)
    move(topic, ours)
    with client_of(ours) as client:
        assert sorted(receive(shared(client, topic), len(left))) == left


def test_apaches_broker_serves_topics_while_ours_has_its_topic_policies(brokers: tuple[Broker, Broker], topic: str) -> None:
    ours, apaches = brokers
    policies = "persistent://public/default/__change_events"
    elsewhere = next(
        name for name in (f"{topic}-{index}" for index in range(64)) if bundle_of(name, ours) != bundle_of(policies, ours)
    )
    for name, broker in ((elsewhere, apaches), (policies, ours)):
        move(name, broker)
    move(elsewhere, apaches)
    with client_of(apaches) as client:
        consumer = shared(client, elsewhere)
        publish(client, elsewhere, 5)
        assert receive(consumer, 5) == names(0, 5)


def test_a_transaction_aborted_on_one_kind_of_broker_is_aborted_on_the_other(
    both_ways: tuple[Broker, Broker], topic: str
) -> None:
    """With a whole list in each snapshot; with segments: test_topic_policies_in_a_cluster.py, whose brokers write these."""
    aborted_goes_over_and_back(topic, *both_ways)
