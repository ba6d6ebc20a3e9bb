"""Delayed messages that one broker has stored, ours or Apache's with its BucketDelayedDeliveryTracker, and the other loads.

Our broker and Apache's 4.0.8 beside it, on our bookies; the topic goes from one to the other and back. Strict: none is early.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

import pulsar
import pytest

from managed_ledger.cursor.properties import APACHE_BUCKET
from tests.clients.apache_broker_process import ApacheBrokerProcess
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import Broker, get
from tests.clients.mixed_brokers import Either, both_ways, move, ours_and_apaches, path_of, settle
from tests.clients.python_client import TIMEOUT_MS, quiet_client, until

__all__ = ["both_ways"]  # a fixture

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

SETTINGS: Mapping[str, str] = {
    "isDelayedDeliveryDeliverAtTimeStrict": "true",
    "delayedDeliveryMinIndexCountPerBucket": "50",
    "delayedDeliveryMaxIndexesPerBucketSnapshotSegment": "20",
    "managedLedgerMaxEntriesPerLedger": "60",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
}
BUCKETS = "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"
COUNT, SOON = 300, 30
SOON_SECONDS, LATER_SECONDS = 45, 75


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[tuple[BrokerProcess, ApacheBrokerProcess]]:
    ours = ["loadBalancerSheddingEnabled=false", *(f"{key}={value}" for key, value in SETTINGS.items())]
    apaches = {**SETTINGS, "delayedDeliveryTrackerFactoryClassName": BUCKETS}
    with ours_and_apaches(tmp_path_factory.mktemp("delayed"), storage, ours, apaches) as both:
        yield both


def told(topic: str, broker: Broker, member: str) -> int:
    return int(get(broker, f"{path_of(topic)}/stats")["subscriptions"]["s"][member])


def waiting(topic: str, broker: Broker) -> int:
    return told(topic, broker, "msgDelayed")


def all_wait(topic: str, broker: Broker, due: Mapping[str, int]) -> bool:
    """Whether all messages wait, but for those due meanwhile: on a busy machine a move takes any time."""
    now_ms = time.time_ns() // 1_000_000
    told_waiting = waiting(topic, broker)
    return sum(at_ms > now_ms for at_ms in due.values()) <= told_waiting <= COUNT


def has_stored(broker: Either, topic: str) -> bool:
    """A bucket that either knows: of whole ledgers."""
    if isinstance(broker, ApacheBrokerProcess):
        return any("Create bucket snapshot finish" in each and topic in each for each in broker.log.read_text().splitlines())
    properties = get(broker, f"{path_of(topic)}/internalStats")["cursors"]["s"]["cursorProperties"]
    return any(key.startswith(APACHE_BUCKET) for key in properties)


def loaded(broker: Either, topic: str) -> int:
    """Number of entries of buckets that the broker's log says it loaded."""
    said = "\n".join(each for each in broker.log.read_text().splitlines() if topic in each)
    ours = re.findall(r"delayed messages loaded.*entries=(\d+)", said)
    apaches = re.findall(
        r"Recover delayed message index bucket snapshot finish, buckets: \d+, numberDelayedMessages: (\d+)", said
    )
    return max(map(int, ours + apaches), default=0)


def publish(client: pulsar.Client, topic: str) -> dict[str, int]:
    """Due time of each published message."""
    producer = client.create_producer(topic)
    now_ms = time.time_ns() // 1_000_000
    seconds = [SOON_SECONDS if number % (COUNT // SOON) == 3 else LATER_SECONDS for number in range(COUNT)]
    due = {f"m{number}": now_ms + 1000 * seconds[number] for number in range(COUNT)}
    for text, at_ms in due.items():
        producer.send(text.encode(), deliver_at=at_ms)
    producer.close()
    return due


def take(consumer: pulsar.Consumer, due: Mapping[str, int], count: int) -> list[str]:
    """Acknowledged; none before its time."""
    came: list[str] = []
    for _ in range(count):
        message = consumer.receive(timeout_millis=2 * TIMEOUT_MS)
        text = message.data().decode()
        assert due[text] <= time.time_ns() // 1_000_000, f"{text} is early"
        consumer.acknowledge(message)
        came.append(text)
    return came


def test_delayed_messages_stored_by_one_kind_of_broker_are_loaded_by_the_other_and_come_once(
    both_ways: tuple[Either, Either], topic: str
) -> None:
    first, second = both_ways
    move(topic, first)
    with closing(quiet_client(first.ready.broker_url)) as client:
        consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
        due = publish(client, topic)
        until(lambda: has_stored(first, topic))
        until(lambda: all_wait(topic, first, due))
        move(topic, second)
        until(lambda: all_wait(topic, second, due))
        assert loaded(second, topic) >= 50
        came = take(consumer, due, SOON)
        until(lambda: told(topic, second, "msgBacklog") == COUNT - SOON)
        settle(topic, second)
        move(topic, first)
        came += take(consumer, due, COUNT - SOON)
        assert sorted(came) == sorted(due)
        until(lambda: waiting(topic, first) == 0)
