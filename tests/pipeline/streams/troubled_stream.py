"""A stream out of topics on which much goes on, and what came of it row by row: how a test and a long run do it
(`python -m tests.pipeline.streams.troubled_stream ROUNDS SEED`).

Two topics of a pattern, one partitioned, whose ledgers are short: a producer goes on writing while topics are unloaded,
partitions added, the broker is killed with -9, and the stream, of small batches, is killed and comes back from its checkpoint.
A subscription keeps the messages of one topic, whose rows are compared with the table's; the other topic has only the stream's
own subscription, so that brokers trim it behind the stream: there each message that was acknowledged counts.
"""

import itertools
import random
import sys
import tempfile
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pulsar

from tests.clients.python_client import ask, quiet_client
from tests.clients.server_process import Ready, ServerProcess
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import messages

_JOBS = "tests.pipeline.spark_jobs"
_NAMESPACE = "public/default"
_STALL_SECONDS_MAX = 400.0
SETTINGS = (
    "managedLedgerMaxEntriesPerLedger=40",
    "managedLedgerMinLedgerRolloverTimeMinutes=0",
    "brokerDeleteInactiveTopicsEnabled=false",
    "retentionCheckIntervalInSeconds=1",
    "defaultRetentionTimeInMinutes=0",
)


class Writer:
    """A thread that publishes numbers to both topics until it is told to end; `sent` are those that were acknowledged."""

    def __init__(self, url: str, topics: tuple[str, ...]) -> None:
        self._url, self._topics = url, topics
        self.sent: dict[str, list[str]] = {each: [] for each in topics}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        numbers = itertools.count()
        with closing(quiet_client(self._url)) as client:
            producers = {each: client.create_producer(each, batching_enabled=False) for each in self._topics}
            while not self._ends.wait(0.02):
                number = next(numbers)
                for topic, producer in producers.items():
                    with suppress(pulsar.PulsarException):  # it may be there or not: it is in nobody's account
                        producer.send(f"{number}".encode())
                        self.sent[topic].append(f"{number}")


class TroubledStream:
    """`directory`: for the server, checkpoint, table and logs."""

    def __init__(self, server: ServerProcess, directory: Path, chance: random.Random) -> None:
        assert server.ready is not None
        self._server, self._directory, self._chance = server, directory, chance
        self.ready: Ready = server.ready
        self.kept, self.trimmed = f"persistent://{_NAMESPACE}/trouble-kept", f"persistent://{_NAMESPACE}/trouble-trimmed"
        self._partitions, self._runs = 1, 0
        ask(self.ready, f"{self._path(self.kept)}/partitions", 1, "PUT")
        ask(self.ready, self._path(self.trimmed), None, "PUT")
        ask(self.ready, f"{self._path(self.trimmed)}/subscription/stream", {"ledgerId": -1, "entryId": -1}, "PUT")
        self._keep(0)
        given = {"service.url": self.ready.broker_url, "admin.url": self.ready.web_url, "pollTimeoutMs": "300000"}
        self._job: dict[str, Any] = {
            "options": {
                **given,
                "topicsPattern": f"persistent://{_NAMESPACE}/trouble-.*",
                "startingOffsets": "earliest",
                "maxMessagesPerTrigger": "30",
                "predefinedSubscription": "stream",
            },
            "to": str(directory / "table"),
            "checkpoint": str(directory / "checkpoint"),
            "columns": ["topic", "message_id", "cast(value as string) v"],
            "seconds_max": 3600.0,
        }

    def run(self, rounds: int) -> None:
        """AssertionError for rows that are not there, there twice, or others."""
        writer = Writer(self.ready.broker_url, (self.kept, self.trimmed))
        try:
            for _ in range(rounds):
                self._round()
        finally:
            writer.end()
        self.check(writer)

    def _round(self) -> None:
        troubles = [self._unload, self._restart, self._add_partition]
        with self._stream() as spark:
            for trouble in self._chance.sample(troubles, k=len(troubles)):
                self._grown(spark)
                trouble()
            self._grown(spark)
            time.sleep(self._chance.random())

    @contextmanager
    def _stream(self) -> Iterator[SparkProcess]:
        """Stream that is killed at the end."""
        self._runs += 1
        with SparkProcess(self._directory / f"driver-{self._runs}") as spark:
            spark.begin(f"{_JOBS}:stream_until", **self._job, rows=sys.maxsize)
            yield spark

    def batches(self) -> int:
        found = [each.name.split(".")[0] for each in (self._directory / "table" / "_spark_metadata").glob("[0-9]*")]
        return max((int(each) + 1 for each in found), default=0)

    def _grown(self, spark: SparkProcess) -> None:
        """Waits for some more batches."""
        wanted, since = self.batches() + self._chance.randint(1, 3), time.monotonic()
        while self.batches() < wanted:
            if spark.has_answered_within(0.1):
                spark.result()  # what it failed with
            assert time.monotonic() - since < _STALL_SECONDS_MAX, f"it does not go on\n{spark.log_end()}"

    def _unload(self) -> None:
        for topic in (f"{self.kept}-partition-0", self.trimmed):
            ask(self.ready, f"{self._path(topic)}/unload", None, "PUT")

    def _restart(self) -> None:
        self._server.kill()
        self._server.start()

    def _add_partition(self) -> None:
        self._partitions += 1
        ask(self.ready, f"{self._path(self.kept)}/partitions", self._partitions, "POST")
        self._keep(self._partitions - 1)

    def _keep(self, partition: int) -> None:
        path = self._path(f"{self.kept}-partition-{partition}")
        with suppress(urllib.error.HTTPError):  # partitions that come have the subscriptions of the others
            ask(self.ready, f"{path}/subscription/keeps", {"ledgerId": -1, "entryId": -1}, "PUT")

    def _path(self, topic: str) -> str:
        return topic.replace("://", "/")

    def check(self, writer: Writer) -> None:
        """Reads the rest, and then compares all rows."""
        names = [f"{self.kept}-partition-{each}" for each in range(self._partitions)]
        expected = {
            (topic, row["message_id"]["ledger_id"], row["message_id"]["entry_id"]): row["value"].decode()
            for topic in names
            for row in messages(self.ready, topic, ("value", "message_id"))
        }
        wanted = set(writer.sent[self.trimmed])
        with SparkProcess(self._directory / "last") as spark:
            job = {name: each for name, each in self._job.items() if name != "seconds_max"}
            spark.run(f"{_JOBS}:stream_to_parquet", **job)
            rows = spark.run(f"{_JOBS}:table", path=self._job["to"])
        places = [(each["topic"], each["message_id"]["ledger_id"], each["message_id"]["entry_id"]) for each in rows]
        twice = [place for place, count in Counter(places).items() if count > 1]
        assert not twice, f"{len(twice)} rows are there twice: {twice[:5]}"
        found = {place: each["v"] for place, each in zip(places, rows, strict=True)}
        of_kept = {place: value for place, value in found.items() if place[0] != self.trimmed}
        assert of_kept == expected, (len(expected.keys() - of_kept.keys()), len(of_kept.keys() - expected.keys()))
        lost = wanted - {value for place, value in found.items() if place[0] == self.trimmed}
        assert not lost, f"{len(lost)} of {len(wanted)} messages are lost: {sorted(lost, key=int)[:5]}"
        left = len(messages(self.ready, self.trimmed))
        assert left < len(wanted), "nothing was trimmed behind the stream: then nothing of this was tried"


def main(rounds: int, seed: int) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="troubled-") as scratch,
        ServerProcess(Path(scratch) / "server", SETTINGS) as server,
    ):
        server.start()
        stream = TroubledStream(server, Path(scratch), random.Random(seed))
        stream.run(rounds)
        print(f"{rounds} rounds, {stream.batches()} batches: every row once")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
