"""Publishers and consumers of a cluster under faults: Apache's Python client, a thread each, all is written down.

Owns the client and its threads. A publisher never gives a message up, and goes on until it is told to end; then all that it
sent has to be acknowledged within a bound. A second subscription, which receives nothing until the end, keeps all there is.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic

import pulsar

from tests.clients.cluster.faults.checker import Message, Topic, message_of

SEND_EVERY_SECONDS = 0.02
RECEIVE_MS = 500
PENDING_MAX = 1000
AGAIN_SECONDS = 0.2
OPERATION_SECONDS_MAX = 120
CONSUMED, KEPT = "consumed", "kept"
"""Subscriptions: read while it happens, and read at the end."""
CLOSE_SECONDS_MAX = 30.0


class Hangs(Exception):
    """Something does not come within its bound; the message says what, and where."""


class Publisher:
    """Publisher on one topic, under a name that its messages carry."""

    def __init__(self, client: pulsar.Client, topic: str, name: str, record: Topic) -> None:
        self._client, self._topic, self.name, self._record = client, topic, name, record
        self._ends, self._is_refused = Event(), Event()
        self._lock = Lock()
        record.sent[name] = 0
        self.thread = Thread(target=self._run, name=f"publish {topic}", daemon=True)

    def end(self) -> None:
        """No more messages; the thread ends when all that were sent are answered."""
        self._ends.set()

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                producer = self._client.create_producer(
                    self._topic,
                    producer_name=self.name,
                    send_timeout_millis=0,
                    block_if_queue_full=True,
                    max_pending_messages=PENDING_MAX,
                    batching_enabled=True,
                    batching_max_publish_delay_ms=5,
                )
            except pulsar.PulsarException as error:
                self._record.troubles.append(f"create_producer: {error!r}")
                self._ends.wait(AGAIN_SECONDS)
                continue
            self._publish(producer)

    def _publish(self, producer: pulsar.Producer) -> None:
        while not self._ends.is_set() and not self._is_refused.is_set():
            message = Message(self.name, self._record.sent[self.name])
            self._record.sent[self.name] += 1
            producer.send_async(message.payload(), partial(self._answered, message))
            self._ends.wait(SEND_EVERY_SECONDS)
        try:
            producer.flush()
            producer.close()
        except pulsar.PulsarException as error:  # told to the callbacks too
            self._record.troubles.append(f"flush or close: {error!r}")
        self._is_refused.clear()

    def _answered(self, message: Message, result: pulsar.Result, message_id: pulsar.MessageId) -> None:
        with self._lock:
            if result == pulsar.Result.Ok:
                self._record.acknowledged[message] = str(message_id)
            else:
                self._record.refused.append(f"{message.producer}:{message.number} {result}")
                self._is_refused.set()


class Consumer:
    """Consumer of one topic: everything that comes is written down and acknowledged."""

    def __init__(self, client: pulsar.Client, topic: str, subscription: str, record: Topic) -> None:
        self._client, self._topic, self._subscription, self._record = client, topic, subscription, record
        self._ends = Event()
        self._seen = record.seen.setdefault(subscription, [])
        self.thread = Thread(target=self._run, name=f"consume {topic} {subscription}", daemon=True)

    def end(self) -> None:
        self._ends.set()

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                consumer = self._client.subscribe(
                    self._topic, self._subscription, initial_position=pulsar.InitialPosition.Earliest
                )
                self._consume(consumer)
                consumer.close()
            except pulsar.PulsarException as error:
                self._record.troubles.append(f"{self._subscription}: {error!r}")
                self._ends.wait(AGAIN_SECONDS)

    def _consume(self, consumer: pulsar.Consumer) -> None:
        while not self._ends.is_set():
            try:
                message = consumer.receive(timeout_millis=RECEIVE_MS)
            except pulsar.Timeout:
                continue
            self._seen.append(message_of(message.data()))
            consumer.acknowledge(message)


class Traffic:
    """On some topics at once; `with` ends the client."""

    def __init__(self, service_url: str, topics: Sequence[str], log: Path) -> None:
        logger = pulsar.FileLogger(pulsar.LoggerLevel.Info, str(log))
        self._client = pulsar.Client(service_url, logger=logger, operation_timeout_seconds=OPERATION_SECONDS_MAX)
        self._pause = Event()
        self.topics = {name: Topic() for name in topics}
        self._publishers = [Publisher(self._client, name, "p", record) for name, record in self.topics.items()]
        self._consumers = [Consumer(self._client, name, CONSUMED, record) for name, record in self.topics.items()]

    def start(self, seconds_max: float) -> None:
        """Done when something was acknowledged on each topic."""
        for name in self.topics:
            self._client.subscribe(name, KEPT, initial_position=pulsar.InitialPosition.Earliest).close()
        for thread in self._threads():
            thread.start()
        self._until("nothing is acknowledged", lambda topic: not topic.acknowledged, seconds_max)

    def _threads(self) -> list[Thread]:
        return [each.thread for each in self._consumers] + [each.thread for each in self._publishers]

    def more(self, seconds_max: float) -> None:
        """After the faults: something that is sent from now on is acknowledged and received on each topic."""
        before = {id(topic): sum(topic.sent.values()) for topic in self.topics.values()}
        self._until(
            "what is sent after all is healed is not acknowledged",
            lambda topic: max((each.number for each in topic.acknowledged.copy()), default=-1) < before[id(topic)],
            seconds_max,
        )

    def end(self, seconds_max: float) -> None:
        """All that was sent is answered, all that was acknowledged is received, and once more by a subscription that slept."""
        for each in self._publishers:
            each.end()
        self._until("sends are not answered", lambda topic: topic.unanswered() > 0, seconds_max)
        self._join(self._publishers, seconds_max)
        self._until("not all is received", lambda topic: bool(topic.unseen_by(CONSUMED)), seconds_max)
        kept = [Consumer(self._client, name, KEPT, record) for name, record in self.topics.items()]
        for reader in kept:
            reader.thread.start()
        self._until("not all is there", lambda topic: bool(topic.unseen_by(KEPT)), seconds_max)
        for reader in (*self._consumers, *kept):
            reader.end()
        self._join((*self._consumers, *kept), seconds_max)

    def _until(self, what: str, lacks: Callable[[Topic], bool], seconds_max: float) -> None:
        deadline = monotonic() + seconds_max
        while waits := [name for name, topic in self.topics.items() if lacks(topic)]:
            if monotonic() > deadline:
                raise Hangs(f"{what} after {seconds_max:g} s: {', '.join(waits)}")
            self._pause.wait(0.05)

    def _join(self, threads: Sequence[Publisher | Consumer], seconds_max: float) -> None:
        deadline = monotonic() + seconds_max
        for each in threads:
            each.thread.join(max(0.0, deadline - monotonic()))
            if each.thread.is_alive():
                raise Hangs(f"{each.thread.name}: does not end in {seconds_max:g} s")

    def faults(self) -> list[str]:
        return [f"{name}: {line}" for name, topic in self.topics.items() for line in topic.faults()]

    def __enter__(self) -> "Traffic":
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the clients; one that hangs is left to end with the process."""
        for publisher in self._publishers:
            publisher.end()
        for consumer in self._consumers:
            consumer.end()
        closing = Thread(target=self._client.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS_MAX)
