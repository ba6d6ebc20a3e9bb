"""Apache's Python client (the C++ client underneath), unmodified: the four subscription types, partitions and patterns."""

import re
from collections import Counter
from typing import Any

import _pulsar  # type: ignore[import-not-found]  # compiled, without types
import pulsar
import pytest
from pulsar import BatchingType, ConsumerType, InitialPosition

from tests.clients.python_client import TIMEOUT_MS, ask, names, next_of, nothing_comes, publish, put_json, receive, until
from tests.clients.server_process import Ready

pytestmark = pytest.mark.clients


def test_a_second_exclusive_consumer_is_refused(client: pulsar.Client, topic: str) -> None:
    first = client.subscribe(topic, "s", consumer_type=ConsumerType.Exclusive)
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "s", consumer_type=ConsumerType.Exclusive)
    first.close()
    client.subscribe(topic, "s", consumer_type=ConsumerType.Exclusive).close()


def test_shared_consumers_get_every_message_once_between_them(client: pulsar.Client, topic: str) -> None:
    consumers = [
        client.subscribe(topic, "s", consumer_type=ConsumerType.Shared, receiver_queue_size=10, consumer_name=str(n))
        for n in range(3)
    ]
    publish(client, topic, 300)
    seen: Counter[str] = Counter()
    by_consumer = [0, 0, 0]
    while sum(by_consumer) < 300:
        for index, consumer in enumerate(consumers):
            for text in receive(consumer, 1) if by_consumer[index] < 100 else []:
                seen[text] += 1
                by_consumer[index] += 1
        if min(by_consumer) >= 80:
            break
    until(lambda: sum(nothing_comes_or_count(consumer, seen) for consumer in consumers) == 3 and seen.total() >= 300)
    assert all(nothing_comes_or_count(consumer, seen) for consumer in consumers)
    assert seen == Counter(names(0, 300))
    for consumer in consumers:
        consumer.close()


def test_key_shared_keeps_each_key_with_one_consumer_and_in_order(client: pulsar.Client, topic: str) -> None:
    consumers = [client.subscribe(topic, "s", consumer_type=ConsumerType.KeyShared, consumer_name=f"c{n}") for n in range(3)]
    producer = client.create_producer(topic, batching_type=BatchingType.KeyBased)
    for index in range(300):
        producer.send_async(str(index).encode(), None, partition_key=f"k{index % 20}")
    producer.flush()
    by_key: dict[str, list[tuple[int, int]]] = {}

    def are_all_here() -> bool:
        for number, consumer in enumerate(consumers):
            while (message := next_of(consumer, 100)) is not None:
                by_key.setdefault(message.partition_key(), []).append((number, int(message.data())))
                consumer.acknowledge(message)
        return sum(len(got) for got in by_key.values()) >= 300

    until(are_all_here)
    assert sum(len(got) for got in by_key.values()) == 300
    for key, got in by_key.items():
        assert len({number for number, _ in got}) == 1, key
        assert [index for _, index in got] == sorted(index for _, index in got)
    producer.close()
    for consumer in consumers:
        consumer.close()


def test_a_partitioned_topic_routes_keys_to_partitions(client: pulsar.Client, server: Ready, topic: str) -> None:
    put_json(server, f"/admin/v2/persistent/{topic.removeprefix('persistent://')}/partitions", 4)
    assert sorted(client.get_topic_partitions(topic)) == [f"{topic}-partition-{n}" for n in range(4)]
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for index in range(100):
        producer.send(str(index).encode(), partition_key=f"k{index % 10}")
    partitions: dict[str, set[str]] = {}
    for _ in range(100):
        message = consumer.receive(timeout_millis=TIMEOUT_MS)
        partitions.setdefault(message.partition_key(), set()).add(message.topic_name())
        consumer.acknowledge(message)
    assert len(partitions) == 10
    assert all(len(of_key) == 1 for of_key in partitions.values())
    assert len(set.union(*partitions.values())) > 1
    producer.close()
    consumer.close()


def test_a_regex_subscription_sees_existing_topics_of_the_pattern_only(client: pulsar.Client, topic: str) -> None:
    for suffix in ("-a", "-b", "x"):
        client.create_producer(topic + suffix).close()
    consumer = client.subscribe(re.compile(topic + "-.*"), "s", initial_position=InitialPosition.Earliest)
    publish(client, topic + "-a", 3)
    publish(client, topic + "-b", 3, first=3)
    publish(client, topic + "x", 3, first=6)
    assert sorted(receive(consumer, 6)) == names(0, 6)
    assert nothing_comes(consumer)
    consumer.close()


class _LooksEverySecond(_pulsar.ConsumerConfiguration):  # type: ignore[misc]  # the client library has no types
    """The library takes `pattern_auto_discovery_period` and never passes it on: it stays at 60 s
    (apache/pulsar-client-python#171)."""

    def __init__(self) -> None:
        super().__init__()
        self.pattern_auto_discovery_period(1)


def test_a_regex_subscription_follows_topics_that_come_and_go(
    client: pulsar.Client, server: Ready, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(client, topic + "-a", 2)
    monkeypatch.setattr(_pulsar, "ConsumerConfiguration", _LooksEverySecond)
    consumer = client.subscribe(re.compile(topic + "-.*"), "s", initial_position=InitialPosition.Earliest)
    assert receive(consumer, 2) == names(0, 2)
    publish(client, topic + "-b", 2, first=2)
    assert receive(consumer, 2) == names(2, 2)
    ask(server, f"{topic.replace('://', '/')}-a?force=true", method="DELETE")
    publish(client, topic + "-c", 2, first=4)
    assert receive(consumer, 2) == names(4, 2)
    consumer.close()


def nothing_comes_or_count(consumer: Any, seen: Counter[str]) -> bool:
    """Counts one message if there is one; True when there is none."""
    message = next_of(consumer, 100)
    if message is None:
        return True
    consumer.acknowledge(message)
    seen[message.data().decode()] += 1
    return False
