"""Apache's Python client, unmodified: chunks among several consumers, ends of topics, absurd delays, ids that go back."""

from contextlib import closing
from typing import Any

import pulsar
import pytest
from pulsar import ConsumerType

from tests.clients.python.test_process import remember
from tests.clients.python_client import ask, next_of, nothing_comes, publish, receive, until
from tests.clients.server_process import Ready

pytestmark = pytest.mark.clients
LARGE = 6 << 20
"""More than one chunk holds."""


def rest_path(topic: str) -> str:
    return topic.replace("://", "/")


def backlog(server: Ready, topic: str) -> Any:
    return ask(server, f"{rest_path(topic)}/stats")["subscriptions"]["s"]["msgBacklog"]


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared])
def test_each_message_in_chunks_comes_whole_to_one_of_several_consumers(
    client: pulsar.Client, server: Ready, topic: str, kind: ConsumerType
) -> None:
    consumers = [client.subscribe(topic, "s", consumer_type=kind, receiver_queue_size=2) for _ in range(3)]
    producers = [client.create_producer(topic, chunking_enabled=True, batching_enabled=False) for _ in range(2)]
    sent: set[str] = set()
    for index in range(8):
        producers[index % 2].send_async(f"{index}".ljust(LARGE).encode(), remember(sent, f"{index}"), partition_key=f"k{index}")
    got: list[str] = []

    def receive_some() -> bool:
        for consumer in consumers:
            message = next_of(consumer, 50)
            if message is not None:
                assert len(message.data()) == LARGE
                got.append(message.data()[:9].decode().strip())
                consumer.acknowledge(message)
        return len(got) >= 8

    until(receive_some)
    assert sorted(got) == [f"{index}" for index in range(8)]
    until(lambda: backlog(server, topic) == 0)
    for each in (*consumers, *producers):
        each.close()


def test_a_terminated_topic_takes_nothing_more_and_gives_what_it_has(client: pulsar.Client, server: Ready, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, batching_enabled=False)
    producer.send(b"m0")
    assert set(ask(server, f"{rest_path(topic)}/terminate", None, "POST")) >= {"ledgerId", "entryId"}
    with pytest.raises(pulsar.TopicTerminated):
        producer.send(b"late")
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)
    assert receive(consumer, 1) == ["m0"]
    assert nothing_comes(consumer)
    consumer.close()


@pytest.mark.parametrize("kind", list(ConsumerType.__members__.values()))
def test_a_consumer_gets_non_persistent_messages_published_while_it_is_there(
    client: pulsar.Client, topic: str, kind: ConsumerType
) -> None:
    topic = f"non-{topic}"
    publish(client, topic, 3)
    consumer = client.subscribe(topic, "s", consumer_type=kind)
    ids = publish(client, topic, 10, first=3)
    assert [(each.ledger_id(), each.entry_id()) for each in ids] == [(0, 0)] * 10
    assert receive(consumer, 10) == [f"m{index}" for index in range(3, 13)]
    assert nothing_comes(consumer)
    consumer.close()


def test_absurd_delays_hold_nobody_up(client: pulsar.Client, server: Ready, topic: str) -> None:
    """This client takes no negative ones; that one beyond the longest delay is refused is seen with Java's."""
    consumer = client.subscribe(topic, "s", consumer_type=ConsumerType.Shared)
    producer = client.create_producer(topic, batching_enabled=False)
    producer.send(b"never", deliver_at=(1 << 63) - 1)  # in 292 million years: no longest delay is set, so it waits
    producer.send(b"m0", deliver_at=1)
    producer.send(b"m1")
    assert receive(consumer, 2) == ["m0", "m1"]
    until(lambda: backlog(server, topic) == 1)
    producer.close()
    consumer.close()


def test_sequence_ids_that_go_back_are_repeats_and_lose_nothing_that_is_new(
    client: pulsar.Client, server: Ready, topic: str
) -> None:
    consumer = client.subscribe(topic, "s")
    with closing(client.create_producer(topic, producer_name="p", batching_enabled=False)):
        ask(server, f"{rest_path(topic)}/deduplicationEnabled", True, "POST")
        until(lambda: ask(server, f"{rest_path(topic)}/stats")["deduplicationStatus"] == "Enabled")
    producer = client.create_producer(topic, producer_name="p", batching_enabled=False)
    for sequence_id in (5, 6, 3, 6, 7, 1, 8):
        producer.send(f"m{sequence_id}".encode(), sequence_id=sequence_id)
    assert producer.last_sequence_id() == 8
    assert receive(consumer, 4) == ["m5", "m6", "m7", "m8"]
    assert nothing_comes(consumer)
    producer.close()
    consumer.close()
