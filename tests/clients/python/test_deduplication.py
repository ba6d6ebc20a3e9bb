"""Apache's Python client (the C++ client underneath), unmodified: each sequence id stored once, and messages in chunks."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition, MessageId

from tests.clients.python.test_process import remember
from tests.clients.python_client import TIMEOUT_MS, ask, nothing_comes, quiet_client, receive, until
from tests.clients.server_process import Ready, ServerProcess

pytestmark = pytest.mark.clients
KINDS = [ConsumerType.Exclusive, ConsumerType.Failover, ConsumerType.Shared, ConsumerType.KeyShared]
LARGE = 6 << 20
"""More than one chunk holds."""


@pytest.fixture
def deduplicating(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, ("brokerDeduplicationEnabled=true", "brokerDeduplicationEntriesInterval=200")) as process:
        process.start()
        yield process


def stats(server: Ready, topic: str) -> Any:
    return ask(server, f"persistent/{topic.removeprefix('persistent://')}/stats")


def everything(client: pulsar.Client, topic: str) -> list[str]:
    """All messages of the topic, in order; a large one by its first word."""
    reader = client.create_reader(topic, MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(timeout_millis=TIMEOUT_MS).data()[:40].decode().strip())
    reader.close()
    return found


@pytest.mark.parametrize("batching", [False, True])
def test_a_named_producer_that_sends_again_after_kill_9_has_each_message_stored_once(
    deduplicating: ServerProcess, topic: str, batching: bool
) -> None:
    assert deduplicating.ready is not None
    options: dict[str, Any] = {"block_if_queue_full": True, "batching_enabled": batching, "send_timeout_millis": 0}
    with closing(quiet_client(deduplicating.ready.broker_url)) as client:
        producer = client.create_producer(topic, producer_name="source", **options)
        confirmed: set[str] = set()
        producer.send(b"0")  # without any receipt this client would go on from what the server has stored, and forget the rest
        confirmed.add("0")
        for round_number in range(3):
            for index in range(max(1, round_number * 500), round_number * 500 + 500):
                producer.send_async(f"{index}".encode(), remember(confirmed, f"{index}"))
            if round_number < 2:
                deduplicating.kill()
                deduplicating.start()
        producer.flush()
        assert len(confirmed) == 1500
        producer.close()
        assert everything(client, topic) == [f"{index}" for index in range(1500)]
        deduplicating.kill()
        deduplicating.start()
        again = client.create_producer(topic, producer_name="source", **options | {"batching_enabled": False})
        assert again.last_sequence_id() == 1499
        again.close()
        again = client.create_producer(topic, producer_name="source", **options | {"batching_enabled": False})
        for index in range(1, 1510):  # this client takes 0 as if none were given
            again.send_async(f"{index}".encode(), remember(confirmed, f"{index}"), sequence_id=index)
        again.flush()
        assert len(confirmed) == 1510
        again.close()
        assert everything(client, topic) == [f"{index}" for index in range(1510)]
    assert deduplicating.ready is not None
    assert stats(deduplicating.ready, topic)["deduplicationStatus"] == "Enabled"
    assert stats(deduplicating.ready, topic)["subscriptions"] == {}


def test_batches_by_key_are_stored_once_each_also_over_kill_9(deduplicating: ServerProcess, topic: str) -> None:
    """Their ids lie between those of each other, and this client says only the first."""
    assert deduplicating.ready is not None
    with closing(quiet_client(deduplicating.ready.broker_url)) as client:
        options = {"batching_enabled": True, "batching_type": pulsar.BatchingType.KeyBased, "batching_max_messages": 20}
        producer = client.create_producer(topic, producer_name="p", send_timeout_millis=0, block_if_queue_full=True, **options)
        producer.send(b"0")  # as above
        confirmed = {"0"}
        for index in range(1, 400):
            producer.send_async(f"{index}".encode(), remember(confirmed, f"{index}"), partition_key=f"k{index * index % 7}")
            if index == 200:
                deduplicating.kill()
                deduplicating.start()
        producer.flush()
        assert len(confirmed) == 400
        producer.close()
        assert Counter(everything(client, topic)) == Counter(f"{index}" for index in range(400))


def test_f23_chunks_that_are_sent_again_after_kill_9_make_each_message_once(deduplicating: ServerProcess, topic: str) -> None:
    """F23: the server dies between the chunks of a message, whose producer sends it again."""
    assert deduplicating.ready is not None
    with closing(quiet_client(deduplicating.ready.broker_url)) as client:
        client.subscribe(topic, "s", consumer_type=ConsumerType.Shared).close()
        producer = client.create_producer(
            topic, producer_name="source", chunking_enabled=True, batching_enabled=False, send_timeout_millis=0
        )
        confirmed: set[str] = set()
        bodies = [f"{index}".ljust(LARGE) for index in range(6)]
        for index, text in enumerate(bodies):
            producer.send_async(text.encode(), remember(confirmed, f"{index}"))
        until(lambda: bool(confirmed))
        deduplicating.kill()
        deduplicating.start()
        producer.flush()
        assert len(confirmed) == 6
        consumer = client.subscribe(topic, "s", consumer_type=ConsumerType.Shared)
        got: Counter[str] = Counter()
        while set(got) < {f"{index}" for index in range(6)}:
            message = consumer.receive(timeout_millis=TIMEOUT_MS)
            assert len(message.data()) == LARGE
            got[message.data()[:9].decode().strip()] += 1
            consumer.acknowledge(message)
        ready = deduplicating.ready
        assert ready is not None
        until(lambda: stats(ready, topic)["subscriptions"]["s"]["msgBacklog"] == 0)
        assert everything(client, topic) == [f"{index}" for index in range(6)]


def test_deduplication_is_turned_on_and_off_by_the_policies_of_a_topic(
    server: Ready, client: pulsar.Client, topic: str
) -> None:
    path = f"persistent/{topic.removeprefix('persistent://')}/deduplicationEnabled"
    options: dict[str, Any] = {"producer_name": "source"}
    client.create_producer(topic, **options).close()
    ask(server, path, True, "POST")
    until(lambda: stats(server, topic)["deduplicationStatus"] == "Enabled")
    for _ in range(2):
        producer = client.create_producer(topic, **options)
        producer.send(b"a", sequence_id=1)
        producer.close()
    assert everything(client, topic) == ["a"]
    ask(server, path, False, "POST")
    until(lambda: stats(server, topic)["deduplicationStatus"] == "Disabled")
    producer = client.create_producer(topic, **options)
    producer.send(b"a", sequence_id=1)
    producer.close()
    assert everything(client, topic) == ["a", "a"]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_in_chunks_come_whole_on_every_type_of_subscription(
    client: pulsar.Client, server: Ready, topic: str, kind: ConsumerType
) -> None:
    consumer = client.subscribe(topic, "s", consumer_type=kind)
    producers = [client.create_producer(topic, chunking_enabled=True, batching_enabled=False) for _ in range(2)]
    done: set[str] = set()
    for index in range(4):
        producers[index % 2].send_async(f"{index}".ljust(LARGE).encode(), remember(done, f"{index}"), partition_key="k")
    got = []
    for _ in range(4):
        message = consumer.receive(timeout_millis=TIMEOUT_MS)
        assert len(message.data()) == LARGE
        got.append(message.data()[:9].decode().strip())
        consumer.acknowledge(message)
    assert sorted(got) == ["0", "1", "2", "3"]
    until(lambda: stats(server, topic)["subscriptions"]["s"]["msgBacklog"] == 0)
    consumer.close()
    for producer in producers:
        producer.close()


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared])
def test_f23_a_message_in_chunks_that_is_asked_for_again_comes_whole_again_and_leaves_no_hole(
    client: pulsar.Client, server: Ready, topic: str, kind: ConsumerType
) -> None:
    """F23: a message in chunks is asked for again."""
    consumer = client.subscribe(topic, "s", consumer_type=kind)
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    producer.send(b"x" * LARGE)
    producer.send(b"small")
    seen: list[int] = []
    while len(seen) < 3:
        message = consumer.receive(timeout_millis=TIMEOUT_MS)
        seen.append(len(message.data()))
        if seen == [LARGE]:
            consumer.redeliver_unacknowledged_messages()
        else:
            consumer.acknowledge(message)
    assert sorted(seen) == [5, LARGE, LARGE]
    until(lambda: stats(server, topic)["subscriptions"]["s"]["msgBacklog"] == 0)
    assert stats(server, topic)["subscriptions"]["s"]["nonContiguousDeletedMessagesRanges"] == 0
    consumer.close()
    producer.close()


def test_f22_a_message_that_lacks_its_first_chunk_does_not_hold_up_those_after_it(
    client: pulsar.Client, server: Ready, topic: str
) -> None:
    """F22: the first chunk was acknowledged, the consumer is another now: only that message is lost."""
    consumer = client.subscribe(topic, "s", consumer_type=ConsumerType.Shared)
    consumer.close()
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    producer.send(b"x" * LARGE)
    for index in range(20):
        producer.send(f"{index}".encode())
    ask(server, f"persistent/{topic.removeprefix('persistent://')}/subscription/s/skip/1", None, "POST")
    consumer = client.subscribe(
        topic, "s", consumer_type=ConsumerType.Shared, receiver_queue_size=5, initial_position=InitialPosition.Earliest
    )
    assert receive(consumer, 20) == [f"{index}" for index in range(20)]
    assert nothing_comes(consumer)
    consumer.close()
    producer.close()
