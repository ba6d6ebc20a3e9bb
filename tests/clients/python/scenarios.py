"""Scenarios of docs/results/2026-11-22-scenarios.md that real clients can play: `.venv/bin/pytest` with this file's name.

Apache's client for Python, unmodified, against ours and, with PULSAR_TEST_URL, against Apache's; not a part of `bin/test`.
Where a broker dies in the scenario, the topic is unloaded here (`topics unload`), so that a server with other users will do.
"""

import random
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pulsar
import pytest
from pulsar import ConsumerType

from tests.clients.python_client import ask, names, next_of, nothing_comes, publish, receive, until
from tests.clients.server_process import Ready

pytestmark = pytest.mark.clients

Kind = ConsumerType


def rest_path(topic: str) -> str:
    return topic.replace("://", "/")


def unload(server: Ready, topic: str) -> None:
    ask(server, f"{rest_path(topic)}/unload", None, "PUT")


def status_of(server: Ready, path: str, body: object, method: str) -> int:
    """Status of an answer that may be a refusal."""
    try:
        ask(server, path, body, method)
    except urllib.error.HTTPError as refused:
        return refused.code
    return 204


def stats(server: Ready, topic: str) -> Any:
    return ask(server, f"{rest_path(topic)}/stats")


def take_from(consumers: list[Any], got: list[tuple[int, str]], within_ms: int = 20) -> int:
    """Acknowledges one of each, if there is one; how many there are now."""
    for number, consumer in enumerate(consumers):
        message = next_of(consumer, within_ms)
        if message is not None:
            got.append((number, message.data().decode()))
            consumer.acknowledge(message)
    return len(got)


def _has(count: int, consumers: list[Any], got: list[tuple[int, str]]) -> bool:
    return take_from(consumers, got) >= count


@pytest.mark.parametrize("kind", [Kind.Shared, Kind.KeyShared, Kind.Failover])
def test_f11_consumers_come_go_and_refuse_at_random_and_all_is_acknowledged(
    client: pulsar.Client, server: Ready, topic: str, kind: ConsumerType
) -> None:
    chance, count = random.Random(11), 120
    subscribed: Callable[[], Any] = lambda: client.subscribe(  # noqa: E731  # said once, used twice
        topic, "s", kind, receiver_queue_size=5, negative_ack_redelivery_delay_ms=50
    )
    consumers = [subscribed()]
    producer = client.create_producer(topic, batching_enabled=False)
    for index in range(count):
        producer.send_async(f"m{index}".encode(), None, partition_key=f"k{index % 20}")
    producer.flush()
    done: set[str] = set()

    def step() -> bool:
        doing = chance.random()
        if doing < 0.03 and len(consumers) < 4:
            consumers.append(subscribed())
        elif doing < 0.06 and len(consumers) > 1:
            consumers.pop(chance.randrange(len(consumers))).close()
        consumer = chance.choice(consumers)
        message = next_of(consumer, 5)
        if message is not None and chance.random() < 0.2:
            consumer.negative_acknowledge(message)
        elif message is not None:
            consumer.acknowledge(message)
            done.add(message.data().decode())
        return len(done) == count

    until(step)
    until(lambda: take_from(consumers, []) == 0 and stats(server, topic)["subscriptions"]["s"]["msgBacklog"] == 0)
    for each in (*consumers, producer):
        each.close()


def test_f14_a_seek_with_several_failover_consumers_gives_all_after_it_in_order(client: pulsar.Client, topic: str) -> None:
    """The first consumer to come back begins. Another one that is to be active takes over a second later
    (activeConsumerFailoverDelayTimeMillis) from the first unacknowledged message; the first one may have got some of these
    too."""
    consumers = [client.subscribe(topic, "s", Kind.Failover, consumer_name=f"c{number}") for number in range(3)]
    ids = publish(client, topic, 30)
    got: list[tuple[int, str]] = []
    until(partial(_has, 30, consumers, got))
    consumers[got[0][0]].seek(ids[10])
    again: list[tuple[int, str]] = []
    until(lambda: take_from(consumers, again) > 0 and "m29" in {text for _, text in again})
    take_from(consumers, again, 200)
    all_of_it = list(dict.fromkeys(text for _, text in again))
    assert all_of_it in (names(10, 20), names(11, 19)), "after the message or from it, as the client asks"
    for number in range(3):
        of_one = [text for taker, text in again if taker == number]
        assert of_one == [text for text in all_of_it if text in of_one], "in order and once"
    for each in consumers:
        each.close()


def test_f15_failover_consumers_that_are_all_gone_and_come_back_have_an_active_one(client: pulsar.Client, topic: str) -> None:
    for round_number in range(3):
        consumers = [client.subscribe(topic, "s", Kind.Failover, consumer_name=f"c{number}") for number in range(3)]
        publish(client, topic, 5, first=5 * round_number)
        got: list[tuple[int, str]] = []
        until(partial(_has, 5, consumers, got))
        assert [text for _, text in got] == names(5 * round_number, 5)
        for each in consumers:
            each.close()


@pytest.mark.parametrize("kind", [Kind.Shared, Kind.KeyShared])
def test_f21_what_was_delayed_and_is_acknowledged_does_not_come_again_after_an_unload(
    client: pulsar.Client, server: Ready, topic: str, kind: ConsumerType
) -> None:
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic, batching_enabled=False)
    due_ms = int(time.time() * 1000) + 1500
    for index in range(20):
        at_ms = due_ms if index < 10 else due_ms + 2500
        producer.send(f"m{index}".encode(), partition_key=f"k{index}", deliver_at=at_ms)
    assert sorted(receive(consumer, 10)) == sorted(names(0, 10))
    until(lambda: stats(server, topic)["subscriptions"]["s"]["msgBacklog"] == 10)
    unload(server, topic)
    assert sorted(receive(consumer, 10)) == sorted(names(10, 10))
    assert time.time() * 1000 >= due_ms + 2500 - 1000, "earlier than a tick"
    assert nothing_comes(consumer)
    producer.close()
    consumer.close()


def test_f26_deduplication_turned_on_again_while_the_topic_loads_takes_no_repeat(
    client: pulsar.Client, server: Ready, topic: str
) -> None:
    client.subscribe(topic, "s").close()  # what a client has in its queue over an unload comes again
    path = f"{rest_path(topic)}/deduplicationEnabled"
    ask(server, path, True, "POST")
    until(lambda: stats(server, topic).get("deduplicationStatus") == "Enabled")
    producer = client.create_producer(topic, producer_name="p", batching_enabled=False)
    for index in range(50):
        producer.send(f"m{index}".encode(), sequence_id=index + 1)  # 0 counts as none with this client
    producer.close()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(status_of, server, path, True, "POST") for _ in range(2)]
        jobs += [pool.submit(status_of, server, f"{rest_path(topic)}/unload", None, "PUT") for _ in range(2)]
        assert 204 in [job.result() for job in jobs]
    producer = client.create_producer(topic, producer_name="p", batching_enabled=False)
    for index in range(60):
        producer.send(f"m{index}".encode(), sequence_id=index + 1)
    consumer = client.subscribe(topic, "s")
    assert receive(consumer, 60) == names(0, 60)
    assert nothing_comes(consumer)
    producer.close()
    consumer.close()


def test_f27_what_deduplication_reads_again_does_not_grow_with_unloads(
    client: pulsar.Client, server: Ready, topic: str
) -> None:
    interval, rounds = 10, 8
    client.subscribe(topic, "s").close()
    ask(server, f"{rest_path(topic)}/deduplicationEnabled", True, "POST")
    ask(server, f"{rest_path(topic)}/deduplicationSnapshotInterval", interval, "POST")
    until(lambda: ask(server, f"{rest_path(topic)}/deduplicationSnapshotInterval") == interval)
    for number in range(rounds):
        publish(client, topic, interval - 1, first=number * (interval - 1))
        unload(server, topic)
        until(lambda: stats(server, topic).get("deduplicationStatus") == "Enabled")
    behind = ask(server, f"{rest_path(topic)}/internalStats")["cursors"]["pulsar.dedup"][
        "numberOfEntriesSinceFirstNotAckedMessage"
    ]
    assert behind <= 2 * interval, f"{behind} of {rounds * (interval - 1)} messages are read again at the next load"


def test_f30_a_fenced_producer_stays_out_over_unloads(client: pulsar.Client, server: Ready, topic: str) -> None:
    client.subscribe(topic, "s").close()
    exclusive, fencing = pulsar.ProducerAccessMode.Exclusive, pulsar.ProducerAccessMode.ExclusiveWithFencing
    options = {"batching_enabled": False}
    before = client.create_producer(topic, access_mode=exclusive, **options)
    before.send(b"m0")
    for number in range(1, 4):
        after = client.create_producer(topic, access_mode=fencing, **options)
        unload(server, topic)
        after.send(f"m{number}".encode())
        with pytest.raises(pulsar.PulsarException):
            before.send(b"late")
        with pytest.raises(pulsar.PulsarException):
            client.create_producer(topic, access_mode=exclusive, **options)
        before = after
    consumer = client.subscribe(topic, "s")
    assert receive(consumer, 4) == names(0, 4)
    assert nothing_comes(consumer)
    before.close()
    consumer.close()


def make_producers(client: pulsar.Client, topic: str, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            client.create_producer(topic).close()
        except pulsar.PulsarException:
            continue


def test_f31_a_partitioned_topic_that_is_deleted_while_others_use_it_is_wholly_there_or_gone(
    client: pulsar.Client, server: Ready, topic: str
) -> None:
    path = f"{rest_path(topic)}/partitions"
    for number in range(6):
        assert status_of(server, path, 3, "PUT") == 204, "it can be made again"
        stop = threading.Event()

        with ThreadPoolExecutor(3) as pool:
            users = [pool.submit(make_producers, client, topic, stop) for _ in range(2)]
            time.sleep(0.01 * number)
            deleted = pool.submit(status_of, server, f"{path}?force=true", None, "DELETE").result()
            stop.set()
            for user in users:
                user.result()
        listed = [each for each in ask(server, "persistent/public/default") if each.startswith(topic)]
        if deleted != 204 or topic in ask(server, "persistent/public/default/partitioned"):
            assert status_of(server, f"{path}?force=true", None, "DELETE") == 204
        else:  # a producer may have made it again as a topic by itself
            assert [each for each in listed if "-partition-" in each] == [], "partitions of no topic"
            if listed:
                assert status_of(server, f"{rest_path(topic)}?force=true", None, "DELETE") == 204


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_f31_a_topic_made_in_two_ways_at_once_becomes_one_of_them(server: Ready, topic: str, domain: str) -> None:
    refused: Counter[tuple[int, int]] = Counter()
    for number in range(15):
        path = f"{domain}/public/default/{topic.rpartition('/')[2]}-{number}"
        gate = threading.Barrier(2)

        def make(way: str, body: object, at: str = path, together: threading.Barrier = gate) -> int:
            together.wait()
            return status_of(server, at + way, body, "PUT")

        with ThreadPoolExecutor(2) as pool:
            whole, parts = pool.submit(make, "", None), pool.submit(make, "/partitions", 2)
            refused[whole.result(), parts.result()] += 1
    assert all((whole == 204) != (parts == 204) for whole, parts in refused), refused
