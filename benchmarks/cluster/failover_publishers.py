"""Publishers at a paced rate, in the client that is measured: Apache's for Python, or for Java or Go in a process of its own.

Each message is due at a time of its own, is sent without waiting for those before it, and counts from when it was due. It
begins with its number, so that all that were acknowledged can be looked for afterwards.
"""

import subprocess
import threading
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

import pulsar

from tests.clients.apache_broker_process import apache_classpath
from tests.clients.python_client import until
from tests.started_process import ROOT
from tests.toolchain import run_tool

PAYLOAD_BYTES = 1024
NUMBER_BYTES = 8
UNANSWERED_SECONDS_MAX = 180.0
SEND_TIMEOUT_MS = 120_000
PENDING_MAX = 50_000
"""Messages of each topic: more than are due while the longest session runs out."""
READ_TIMEOUT_MS = 20_000
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
JAVA_SOURCE = Path(__file__).parent / "PacedProducer.java"
GO_MODULE = ROOT / "tests" / "clients" / "go"
BUILD_SECONDS_MAX = 600.0


class Publisher:
    """Answered and failed publishes; `with` starts and ends the publisher. Times are of the monotonic clock, in seconds."""

    def __init__(self, url: str, topics: Sequence[str], per_second: float, scratch: Path) -> None:
        self.url, self.topics, self.per_second, self.scratch = url, topics, per_second, scratch
        self.failures: list[str] = []
        self.acknowledged: list[list[int]] = [[] for _ in topics]
        """The numbers of the messages of each topic."""
        self._took: list[tuple[float, float]] = []
        """Due time and duration of each publish."""
        self._counts = False
        self._latest = [0.0] * len(topics)
        self.ends = threading.Event()
        self._thread = threading.Thread(target=self.publish)

    def publish(self) -> None:
        """Until `ends` is set."""
        raise NotImplementedError

    def answered(self, topic: int, due: float, seconds: float, number: int) -> None:
        self.acknowledged[topic].append(number)
        if self._counts:
            self._took.append((due, seconds))
        self._latest[topic] = max(self._latest[topic], due)

    def begin(self) -> None:
        """Counts answers from now on, and none before."""
        self._took, self._counts = [], True

    def rest(self) -> None:
        """Counts no answers: a member that was hit starts again."""
        self._counts = False

    def took(self) -> list[float]:
        return [seconds for _, seconds in self._took]

    def longest(self, since: float) -> float:
        """Longest wait of the publishes that were answered since."""
        return max(seconds for due, seconds in self._took if due + seconds >= since)

    def until_answered(self, due: float) -> None:
        """Waits until each topic has an answer to a publish that was due since then."""
        until(lambda: min(self._latest) >= due or bool(self.failures), UNANSWERED_SECONDS_MAX)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.until_answered(time.monotonic())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        self.ends.set()
        self._thread.join()


class PythonPublisher(Publisher):
    """Apache's client for Python, in a thread."""

    def publish(self) -> None:
        client = pulsar.Client(self.url, logger=QUIET)
        options = {"batching_enabled": False, "max_pending_messages": PENDING_MAX, "send_timeout_millis": SEND_TIMEOUT_MS}
        producers = [client.create_producer(topic, **options) for topic in self.topics]
        begin = time.monotonic()
        for number in count():
            due = begin + number / self.per_second
            if self.ends.wait(max(0.0, due - time.monotonic())):
                break
            self._send(producers[number % len(producers)], number % len(producers), due, number)
        client.close()

    def _send(self, producer: pulsar.Producer, topic: int, due: float, number: int) -> None:
        def on_sent(result: pulsar.Result, _message_id: object) -> None:
            if result == pulsar.Result.Ok:
                self.answered(topic, due, time.monotonic() - due, number)
            elif not self.ends.is_set():
                self.failures.append(str(result))

        producer.send_async(number.to_bytes(NUMBER_BYTES) + bytes(PAYLOAD_BYTES - NUMBER_BYTES), on_sent)


class OtherPublisher(Publisher):
    """A program that prints a line for each answer. Its monotonic clock is ours."""

    def program(self) -> list[str]:
        """Command line before the arguments."""
        raise NotImplementedError

    def publish(self) -> None:
        command = [*self.program(), self.url, str(self.per_second), str(SEND_TIMEOUT_MS), *self.topics]
        with (
            (self.scratch / "client.log").open("wb") as log,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            threading.Thread(target=lambda pipe: (self.ends.wait(), pipe.close()), args=(process.stdin,)).start()
            for line in process.stdout:
                self._on_line(line.split())

    def _on_line(self, words: list[str]) -> None:
        if words and words[0] == "answered":
            self.answered(int(words[1]), int(words[2]) / 1e9, int(words[3]) / 1e9, int(words[4]))
        elif words and words[0] == "failed" and not self.ends.is_set():
            self.failures.append(" ".join(words[1:]))


class JavaPublisher(OtherPublisher):
    """Apache's client for Java: `PacedProducer.java`."""

    def program(self) -> list[str]:
        return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", apache_classpath(self.scratch), str(JAVA_SOURCE)]


class GoPublisher(OtherPublisher):
    """Apache's client for Go: `tests/clients/go/paced`."""

    def program(self) -> list[str]:
        built = self.scratch / "paced"
        run_tool(["go", "build", "-o", str(built), "./paced"], GO_MODULE, BUILD_SECONDS_MAX)
        return [str(built)]


class Kept:
    """A subscription on every topic, from before the first message on: what was acknowledged is looked for there at the end."""

    NAME = "kept"

    def __init__(self, url: str, topics: Sequence[str]) -> None:
        self._url, self._topics = url, topics
        for consumer in self._subscribed(pulsar.Client(url, logger=QUIET)):
            consumer.close()

    def _subscribed(self, client: pulsar.Client) -> list[pulsar.Consumer]:
        earliest = pulsar.InitialPosition.Earliest
        return [client.subscribe(topic, self.NAME, initial_position=earliest) for topic in self._topics]

    def missing(self, acknowledged: Sequence[Sequence[int]]) -> list[int]:
        """Acknowledged numbers that no message has."""
        client = pulsar.Client(self._url, logger=QUIET)
        try:
            consumers = self._subscribed(client)
            pairs = zip(consumers, acknowledged, strict=True)
            return [number for consumer, numbers in pairs for number in sorted(set(numbers) - self._read(consumer, numbers))]
        finally:
            client.close()

    def _read(self, consumer: pulsar.Consumer, numbers: Sequence[int]) -> set[int]:
        """Until all are there, or nothing more comes."""
        found: set[int] = set()
        wanted = set(numbers)
        while not wanted <= found:
            try:
                found.add(int.from_bytes(consumer.receive(timeout_millis=READ_TIMEOUT_MS).data()[:NUMBER_BYTES]))
            except pulsar.Timeout:
                break
        return found
