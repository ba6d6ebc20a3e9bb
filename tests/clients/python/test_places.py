"""Apache's Python client (the C++ client underneath), unmodified: places: readers, seeks, acknowledgements, redeliveries."""

from typing import Any

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition, MessageId

from tests.clients.python_client import TIMEOUT_MS, names, nothing_comes, publish, receive

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("batching", [False, True])
def test_a_reader_reads_from_where_it_is_told(client: pulsar.Client, topic: str, batching: bool) -> None:
    ids = publish(client, topic, 20, batching)
    assert read_all(client.create_reader(topic, MessageId.earliest)) == names(0, 20)
    assert read_all(client.create_reader(topic, ids[9])) == names(10, 10)
    inclusive = client.create_reader(topic, ids[9], start_message_id_inclusive=True)
    assert read_all(inclusive) == names(9, 11)
    latest = client.create_reader(topic, MessageId.latest)
    assert not latest.has_message_available()
    latest.close()


@pytest.mark.parametrize("batching", [False, True])
def test_seek_by_id_goes_back_and_forward(client: pulsar.Client, topic: str, batching: bool) -> None:
    consumer = client.subscribe(topic, "s")
    ids = publish(client, topic, 30, batching)
    assert receive(consumer, 30) == names(0, 30)
    consumer.seek(ids[10])
    assert receive(consumer, 1) == ["m11"]  # this client leaves out the message it was told, unless asked to include it
    consumer.seek(MessageId.earliest)
    assert receive(consumer, 30) == names(0, 30)
    consumer.seek(MessageId.latest)
    assert nothing_comes(consumer)
    consumer.close()


def test_seek_by_time_starts_at_the_first_message_published_then(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    publish(client, topic, 10)
    first = [consumer.receive(timeout_millis=TIMEOUT_MS) for _ in range(10)]
    last_time = first[-1].publish_timestamp()
    while True:  # the next message must not share its millisecond with the last one
        publish(client, topic, 1, first=10)
        probe = consumer.receive(timeout_millis=TIMEOUT_MS)
        if probe.publish_timestamp() > last_time:
            break
    consumer.seek(probe.publish_timestamp())
    assert receive(consumer, 1) == ["m10"]
    consumer.seek(first[0].publish_timestamp())
    assert receive(consumer, 10) == names(0, 10)
    consumer.close()


def test_a_negative_ack_redelivers(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", consumer_type=ConsumerType.Shared, negative_ack_redelivery_delay_ms=100)
    publish(client, topic, 10)
    messages = [consumer.receive(timeout_millis=TIMEOUT_MS) for _ in range(10)]
    for index, message in enumerate(messages):
        if index % 2:
            consumer.acknowledge(message)
        else:
            consumer.negative_acknowledge(message)
    again = [consumer.receive(timeout_millis=TIMEOUT_MS) for _ in range(5)]
    assert sorted(message.data().decode() for message in again) == sorted(names(0, 10)[::2])
    assert all(message.redelivery_count() == 1 for message in again)
    for message in again:
        consumer.acknowledge(message)
    assert nothing_comes(consumer)
    consumer.close()


def test_an_ack_timeout_redelivers(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", consumer_type=ConsumerType.Shared, unacked_messages_timeout_ms=10_000)
    publish(client, topic, 3)
    assert receive(consumer, 3, ack=False) == names(0, 3)
    again = [consumer.receive(timeout_millis=25_000) for _ in range(3)]
    assert sorted(message.data().decode() for message in again) == names(0, 3)
    consumer.close()


def test_a_dead_letter_topic_gets_what_is_refused_too_often(client: pulsar.Client, topic: str) -> None:
    policy = pulsar.ConsumerDeadLetterPolicy(
        max_redeliver_count=2, dead_letter_topic=topic + "-dlq", initial_subscription_name="init"
    )
    consumer = client.subscribe(
        topic, "s", consumer_type=ConsumerType.Shared, dead_letter_policy=policy, negative_ack_redelivery_delay_ms=50
    )
    dead = client.subscribe(topic + "-dlq", "d")
    publish(client, topic, 3)
    for _ in range(9):
        consumer.negative_acknowledge(consumer.receive(timeout_millis=TIMEOUT_MS))
    assert sorted(receive(dead, 3)) == names(0, 3)
    assert nothing_comes(consumer)
    consumer.close()
    dead.close()


def test_batch_index_acks_survive_a_reconnect(client: pulsar.Client, topic: str) -> None:
    """Needs acknowledgmentAtBatchIndexLevelEnabled=true, the default since Apache 4.2."""

    def subscribe() -> Any:
        return client.subscribe(topic, "s", consumer_type=ConsumerType.Shared, batch_index_ack_enabled=True)

    consumer = subscribe()
    publish(client, topic, 10, batching=True)
    for index in range(10):
        message = consumer.receive(timeout_millis=TIMEOUT_MS)
        if index % 2:
            consumer.acknowledge(message)
    consumer.close()
    consumer = subscribe()
    assert receive(consumer, 5) == names(0, 10)[::2]
    assert nothing_comes(consumer)
    consumer.close()


def test_a_cumulative_ack_acknowledges_all_before_it(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    publish(client, topic, 20)
    messages = [consumer.receive(timeout_millis=TIMEOUT_MS) for _ in range(20)]
    consumer.acknowledge_cumulative(messages[14])
    consumer.close()
    consumer = client.subscribe(topic, "s")
    assert receive(consumer, 5) == names(15, 5)
    consumer.close()


def test_the_subscription_stays_where_it_was(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    publish(client, topic, 10)
    assert receive(consumer, 4) == names(0, 4)
    consumer.close()
    consumer = client.subscribe(topic, "s")
    assert receive(consumer, 6) == names(4, 6)
    consumer.close()


@pytest.mark.parametrize(("position", "expected"), [(InitialPosition.Earliest, 10), (InitialPosition.Latest, 0)])
def test_a_new_subscription_starts_where_asked(
    client: pulsar.Client, topic: str, position: InitialPosition, expected: int
) -> None:
    keep = client.subscribe(topic, "keep")
    publish(client, topic, 10)
    consumer = client.subscribe(topic, "s", initial_position=position)
    assert receive(consumer, expected) == names(0, expected)
    assert nothing_comes(consumer)
    consumer.close()
    keep.close()


def test_unsubscribe_forgets_the_place(client: pulsar.Client, topic: str) -> None:
    keep = client.subscribe(topic, "keep")
    consumer = client.subscribe(topic, "s")
    publish(client, topic, 5)
    receive(consumer, 5)
    consumer.unsubscribe()
    consumer = client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
    assert receive(consumer, 5) == names(0, 5)
    consumer.close()
    keep.close()


def test_last_message_id_is_that_of_the_last_message(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    ids = publish(client, topic, 7, batching=True)
    last = consumer.get_last_message_id()
    assert (last.ledger_id(), last.entry_id(), last.batch_index()) == (
        ids[-1].ledger_id(),
        ids[-1].entry_id(),
        ids[-1].batch_index(),
    )
    consumer.close()


def read_all(reader: Any) -> list[str]:
    texts = []
    while reader.has_message_available():
        texts.append(reader.read_next(timeout_millis=TIMEOUT_MS).data().decode())
    reader.close()
    return texts
