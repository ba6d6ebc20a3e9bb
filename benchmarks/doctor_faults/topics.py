"""Faults of topics and of those who use them, on one standalone: real clients that hang, never acknowledge, or have gone.

Each fault has a namespace of its own, which is deleted after it.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pulsar

from benchmarks.doctor_faults.fault import FAIL, PULSAR, WARN, Fault, Injected
from benchmarks.doctor_faults.open_transaction import transaction_held_open
from benchmarks.raw_client import RawClient, send_frame, single_frame
from tests.clients.server_process import Ready, ServerProcess
from tests.started_process import ROOT

SETTINGS = (
    "transactionCoordinatorEnabled=true",
    "backlogQuotaCheckIntervalInSeconds=1",
    "forceDeleteNamespaceAllowed=true",
    "loadBalancerNamespaceBundleMaxTopics=10",
    "loadBalancerAutoBundleSplitEnabled=false",
    "messageExpiryCheckIntervalInMinutes=1",
    "managedLedgerMaxUnackedRangesToPersist=100000",
)
PATIENCE_SECONDS = 2.0
STILL_SECONDS = 3.5
"""Time for which a client stands still before the doctor looks."""
TTL_SECONDS_MAX = 90.0
DAY_MS = 86_400_000
_HANGING = """
import sys, pulsar, time
client = pulsar.Client(sys.argv[1])
consumer = client.subscribe(sys.argv[2], "work", pulsar.ConsumerType.Shared, receiver_queue_size=10)
consumer.receive()
print("subscribed", flush=True)
time.sleep(600)
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace and a topic in it, for one fault."""

    ready: Ready
    data: Path
    namespace: str
    client: pulsar.Client
    ending: ExitStack

    @property
    def topic(self) -> str:
        return f"persistent://{self.namespace}/orders"

    def admin(self, *words: str) -> None:
        """pulsar-admin; CalledProcessError."""
        command = [str(ROOT / "bin" / "pulsar-admin"), "--admin-url", self.ready.web_url, *words]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def consumer(self, **options: object) -> pulsar.Consumer:
        """A consumer of the subscription `work`, Shared."""
        options = {"consumer_type": pulsar.ConsumerType.Shared, "consumer_name": "packer", **options}
        return self.client.subscribe(self.topic, "work", **options)

    def publish(self, number: int, size: int = 100) -> None:
        """One entry for each message."""
        producer = self.client.create_producer(self.topic, batching_enabled=False, block_if_queue_full=True)
        for _ in range(number):
            producer.send_async(bytes(size), lambda result, message_id: None)
        producer.flush()
        producer.close()

    def publish_raw(self, one: bytes, number: int) -> None:
        with closing(RawClient(self.ready.broker_url)) as client:
            client.producer(self.topic)
            client.publish(one, 5_000, 200.0, number)

    def asked(self, *things: str, words: tuple[str, ...] = ()) -> Injected:
        always = ("--admin-url", self.ready.web_url, "--data-dir", self.data, "--patience", str(PATIENCE_SECONDS))
        return Injected((*always, *words), things)


Arrange = Callable[[Place], Injected]


@contextmanager
def served(directory: Path) -> Iterator[list[Fault]]:
    """The faults, on a standalone that runs as long."""
    with ServerProcess(directory, SETTINGS) as server:
        ready = server.start()
        yield _faults(ready, directory / "data")


def _faults(ready: Ready, data: Path) -> list[Fault]:
    numbers = count()

    def fault(name: str, arrange: Arrange, check: str = "", level: str = WARN, remedy: tuple[str, ...] = ()) -> Fault:
        @contextmanager
        def inject(own: Path) -> Iterator[Injected]:
            with _place(ready, data, f"public/fault-{next(numbers)}") as place:
                yield arrange(place)

        return Fault(name, inject, check, level, remedy)

    of_consumer = ("consumer packer at",)
    return [
        fault("control: consumers that work, one that is behind", _working),
        fault("control: messages that wait for their time", _few_delayed),
        fault("consumer that never acknowledges", _never_acks, "unacknowledged-messages", remedy=("acknowledge", *of_consumer)),
        fault("consumer at the limit of unacknowledged messages", _blocked, "blocked-subscriptions", FAIL,
              ("acknowledge", *of_consumer)),
        fault("consumer that does not receive", _no_permits, "consumers-without-permits", remedy=("Restart it", *of_consumer)),
        fault("consumer whose process stands still", _stopped, "consumers-without-permits", remedy=("process stands still",)),
        fault("abandoned backlog", _abandoned, "abandoned-subscriptions",
              remedy=("start a consumer of work on", "loses the backlog of 50 entries")),
        fault("producers refused by a quota", _over_quota, "backlog-quota", FAIL, ("consume", "set-backlog-quota")),
        fault("backlog near a quota that evicts", _near_eviction, "backlog-quota", remedy=("consume", "set-backlog-quota")),
        fault("backlog older than its quota", _old_backlog, "backlog-quota", FAIL, ("consume", "set-backlog-quota")),
        fault("TTL that takes a backlog", _expired, "expired-messages", remedy=("set-message-ttl", "lost")),
        fault("producers held by a publish rate", _publish_rate, "publish-rate", remedy=("set-publish-rate",)),
        fault("consumers held by a dispatch rate", _dispatch_rate, "dispatch-throttled", remedy=("dispatch rate",)),
        fault("cursor with 11,000 holes", _holes, "cursor-holes", remedy=("peek-messages -s work", "dead letter")),
        fault("100,000 delayed messages that hold the disk", _delayed, "delayed-messages", remedy=("not stuck", "--maxDelay")),
        fault("transaction that stays open", _open_transaction, "slow-transactions", remedy=("abort-transaction -m", "undone")),
        fault("readers behind an open transaction", _behind_transaction, "transaction-holds-readers",
              remedy=("abort-transaction", "undone")),
        fault("retention without a bound", _unbounded, "retention-unbounded", remedy=("set-retention", "deletes")),
        fault("too many topics for the bundles", _many_topics, "topics-per-bundle", remedy=("split-bundle",)),
        fault("backlog of a million", _million, "backlog", remedy=("add consumers to work",)),
    ]  # fmt: skip


@contextmanager
def _place(ready: Ready, data: Path, namespace: str) -> Iterator[Place]:
    client = pulsar.Client(ready.broker_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))
    with ExitStack() as ending:
        place = Place(ready, data, namespace, client, ending)
        place.admin("namespaces", "create", namespace)
        try:
            yield place
        finally:
            ending.close()
            client.close()
            place.admin("namespaces", "delete", namespace, "--force")


def _still() -> None:
    time.sleep(STILL_SECONDS)


# ---- Controls


def _working(place: Place) -> Injected:
    consumer = place.consumer()
    place.publish(200)
    for _ in range(150):
        consumer.acknowledge(consumer.receive(10_000))
    _still()
    for _ in range(50):
        consumer.acknowledge(consumer.receive(10_000))
    return place.asked()


def _few_delayed(place: Place) -> Injected:
    place.consumer()
    producer = place.client.create_producer(place.topic)
    for _ in range(20):
        producer.send(b"later", deliver_after=_in_an_hour())
    _still()
    return place.asked()


def _in_an_hour() -> object:
    import datetime

    return datetime.timedelta(hours=1)


# ---- Consumers


def _never_acks(place: Place) -> Injected:
    consumer = place.consumer()
    place.publish(50)
    for _ in range(50):
        consumer.receive(10_000)
    _still()
    return place.asked("work", place.topic)


def _blocked(place: Place) -> Injected:
    place.admin("namespaces", "set-max-unacked-messages-per-subscription", place.namespace, "-c", "100")
    consumer = place.consumer()
    place.publish(300)
    for _ in range(100):
        consumer.receive(10_000)
    _still()
    return place.asked("work", place.topic)


def _no_permits(place: Place) -> Injected:
    place.consumer(receiver_queue_size=10)
    place.publish(100)
    _still()
    return place.asked("work", place.topic)


def _stopped(place: Place) -> Injected:
    """kill -STOP: its connection is open, and its process stands still."""
    place.client.subscribe(place.topic, "work", pulsar.ConsumerType.Shared).close()
    place.publish(100)
    words = [sys.executable, "-c", _HANGING, place.ready.broker_url, place.topic]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    place.ending.callback(process.wait)
    place.ending.callback(process.kill)
    assert process.stdout is not None
    assert any(line == b"subscribed\n" for line in process.stdout)
    process.send_signal(19)
    _still()
    return place.asked("work", place.topic)


def _abandoned(place: Place) -> Injected:
    place.consumer().close()
    place.publish(50)
    return place.asked("work", place.topic)


# ---- Quotas, rates, time


def _quota(place: Place, limit: str, policy: str, *kind: str) -> None:
    place.admin("namespaces", "set-backlog-quota", place.namespace, *limit.split(), "-p", policy, *kind)


def _over_quota(place: Place) -> Injected:
    place.consumer().close()
    place.publish(60, 1_000)
    _quota(place, "-l 50000", "producer_exception")
    _still()
    return place.asked(place.topic, "work", "refused")


def _near_eviction(place: Place) -> Injected:
    place.consumer().close()
    place.publish(60, 1_000)
    _quota(place, "-l 68000", "consumer_backlog_eviction")
    _still()
    return place.asked(place.topic, "dropped")


def _old_backlog(place: Place) -> Injected:
    place.consumer().close()
    _quota(place, "-lt 2", "producer_request_hold", "-t", "message_age")
    place.publish(10)
    _still()
    return place.asked(place.topic, "work")


def _expired(place: Place) -> Injected:
    """The broker looks once a minute."""
    place.consumer().close()
    place.publish(50)
    place.admin("namespaces", "set-message-ttl", place.namespace, "-ttl", "1")
    end = time.monotonic() + TTL_SECONDS_MAX
    while time.monotonic() < end and _expired_count(place) < 50:
        time.sleep(1)
    return place.asked("50", "work", place.topic)


def _expired_count(place: Place) -> int:
    import json

    command = [str(ROOT / "bin" / "pulsar-admin"), "--admin-url", place.ready.web_url, "topics", "stats", place.topic]
    stats = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    return int(stats["subscriptions"]["work"]["totalMsgExpired"])


def _publish_rate(place: Place) -> Injected:
    place.admin("namespaces", "set-publish-rate", place.namespace, "-m", "5")
    words = [
        PULSAR.replace("bin/pulsar", "bin/pulsar-perf"),
        "produce",
        "-u",
        place.ready.broker_url,
        "-r",
        "200",
        "-time",
        "30",
    ]
    process = subprocess.Popen([*words, place.topic], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place.ending.callback(process.wait)
    place.ending.callback(process.kill)
    time.sleep(6)
    return place.asked(place.topic)


def _dispatch_rate(place: Place) -> Injected:
    place.admin("namespaces", "set-dispatch-rate", place.namespace, "-md", "1", "-dt", "600")
    consumer = place.consumer()
    place.publish(100)
    consumer.acknowledge(consumer.receive(10_000))
    _still()
    return place.asked("work", place.topic)


def _holes(place: Place) -> Injected:
    consumer = place.consumer()
    place.publish(22_000, 10)
    for number in range(22_000):
        message = consumer.receive(10_000)
        if number % 2:
            consumer.acknowledge(message)
    return place.asked("work", place.topic)


def _delayed(place: Place) -> Injected:
    place.consumer()
    at_ms = int(time.time() * 1000) + 30 * DAY_MS
    place.publish_raw(single_frame(50, at_ms), 100_500)
    _still()
    return place.asked("work", place.topic)


def _million(place: Place) -> Injected:
    place.consumer(receiver_queue_size=10)
    place.publish_raw(send_frame(20, 1), 1_001_000)
    return place.asked("work", place.topic)


# ---- Transactions, retention, bundles


def _open_transaction(place: Place) -> Injected:
    txn_id = place.ending.enter_context(transaction_held_open(place.ready.broker_url, place.topic))
    _still()
    return place.asked(txn_id, words=("--open-transaction", "2"))


def _behind_transaction(place: Place) -> Injected:
    place.consumer()
    place.ending.enter_context(transaction_held_open(place.ready.broker_url, place.topic))
    place.publish(20)
    _still()
    return place.asked("work", place.topic)


def _unbounded(place: Place) -> Injected:
    place.admin("namespaces", "set-retention", place.namespace, "-s", "-1", "-t", "-1")
    return place.asked(place.namespace)


def _many_topics(place: Place) -> Injected:
    for number in range(3):
        place.admin("topics", "create-partitioned-topic", f"persistent://{place.namespace}/t{number}", "-p", "20")
    return place.asked(place.namespace)
