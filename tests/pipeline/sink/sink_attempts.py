"""Attempts of tasks of the sink for tests, without Spark: their options, their rows, and attempts that die or are held up."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pyarrow

from pipeline.pyspark_pulsar.sink.commits.transactions import HasEnded, TransactionClient
from pipeline.pyspark_pulsar.sink.options import SinkOptions, parse_sink_options
from pipeline.pyspark_pulsar.sink.task import SinkTask, TaskPlace, TaskResult
from tests.clients.server_process import Ready


class Died(Exception):
    """Error with which the test ends an attempt."""


def options(server: Ready, topic: str, guarantee: str, **more: str) -> SinkOptions:
    urls = {"service.url": server.broker_url, "admin.url": server.web_url}
    small = {"pulsar.producer.batchingMaxMessages": "10"}
    return parse_sink_options({**urls, **small, "topic": topic, "guarantee": guarantee, **more})


def frame(first: int, count: int) -> Any:
    rows = [{"value": f"{number}".encode(), "key": f"k{number % 5}".encode()} for number in range(first, first + count)]
    return pyarrow.RecordBatch.from_pylist(rows, pyarrow.schema([("key", pyarrow.binary()), ("value", pyarrow.binary())]))


def dying(*frames: Any) -> Iterator[Any]:
    yield from frames
    raise Died


def ran(chosen: SinkOptions, write_id: str, batch: int, *frames: Any) -> list[TaskResult]:
    """A task for each frame."""
    places = [TaskPlace(write_id, batch, partition) for partition in range(len(frames))]
    return [SinkTask(chosen, place).run([each]) for place, each in zip(places, frames, strict=True)]


def numbers(count: int) -> list[str]:
    return [f"{number}" for number in range(count)]


class Attempt:
    """Attempt in a thread of its own: writes `rows`, then waits until `go_on` for the end of its rows."""

    def __init__(self, chosen: SinkOptions, place: TaskPlace, *frames: Any) -> None:
        self._wrote, self._goes_on = Event(), Event()
        self._frames = frames
        self._workers = ThreadPoolExecutor(1)
        self._result = self._workers.submit(SinkTask(chosen, place).run, self._all())

    def _all(self) -> Iterator[Any]:
        first, *others = self._frames
        yield first
        self._wrote.set()
        assert self._goes_on.wait(60)
        yield from others

    def wrote(self) -> None:
        assert self._wrote.wait(60)

    def go_on(self, seconds_max: float | None = None) -> TaskResult:
        """Result of the attempt; TimeoutError where it does not end within the time."""
        self._goes_on.set()
        self._workers.shutdown(wait=False)
        return self._result.result(seconds_max)


def has_ended(result: TaskResult, chosen: SinkOptions) -> bool:
    """Tries to commit the transaction of the result: True when the coordinator refuses, since it has ended already."""
    assert result.written is not None
    client = TransactionClient(result.written.txn_id.most, chosen.access)
    try:
        client.end(result.written.txn_id, commits=True)
        return False
    except HasEnded:
        return True
    finally:
        client.close()
