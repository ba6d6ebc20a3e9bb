"""replay: a range of topics to another topic, each message once, at the speed at which it came or another. No Spark.

A topic, or a partition, is one after the other: messages of one key keep their order. Nothing is remembered: a run asks the
target's deduplication for the newest ledger that it knows of this job (`ledger_copy`) and goes on there, so that one that was
killed is begun again as it was.
"""

import argparse
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy

from ...errors import NoSuchTopic, WrongOption
from ...options import SourceOptions, parse_options
from ...positions import LATEST, LedgerRange
from ...sink.frame_rows import outgoing
from ...sink.options import SinkOptions, parse_sink_options
from ...sink.topics import check_deduplicates, partition_count
from ...sink.values.value_column import value_encoder
from ..arguments import pairs
from ..progress import Progress
from ..report import Report, Table
from .ledger_copy import LedgerCopy, newest_known, producer_name
from .pace import Clock, Pace, Stopped, publish_ms
from .schema_copies import SchemaCopies
from .source_positions import sequence_ids
from .topic_spans import ROW_COLUMNS, TopicSpan, batches_of_range, refuse_other_rows, spans_of

_COLUMNS = ("key", "value", "properties", "event_time", "message_id", "publish_time", "schema_version")
_AT_THE_SAME_TIME_MAX = 64
"""Topics and partitions. With a speed all of them have to be, or some would wait for others."""
_LIMITS = ("startingOffsets", "endingOffsets", "startingTime", "endingTime", "startingIndex", "endingIndex")


def add_arguments(job: argparse.ArgumentParser) -> None:
    job.add_argument("--topics", required=True, help="with commas between")
    job.add_argument("--to", required=True, metavar="TOPIC", help="it has to deduplicate")
    job.add_argument("--name", required=True, help="of this replay: the same whenever it is begun again, and never for another")
    job.add_argument("--speed", type=float, default=0.0, help="1 as it came, 2 twice as fast; 0 (default) as fast as it goes")
    for name in _LIMITS:
        job.add_argument(f"--{_dashed(name)}", default="", metavar=name, help=f"option {name} of the source")
    job.add_argument("--sink-option", action="append", default=[], metavar="NAME=VALUE", help="one more option of the sink")


def _dashed(name: str) -> str:
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in name)


def source_options(arguments: argparse.Namespace, given: Mapping[str, str]) -> SourceOptions:
    """Bytes as they are, whatever the schema. WrongOption."""
    limits = {name: getattr(arguments, _dashed(name).replace("-", "_")) for name in _LIMITS}
    chosen = {name: value for name, value in limits.items() if value}
    options = parse_options({**given, **chosen, "topics": arguments.topics, "values": "raw"}, is_stream=False)
    refuse_other_rows(options)
    return options


def target_options(arguments: argparse.Namespace, given: Mapping[str, str]) -> SinkOptions:
    """WrongOption."""
    own = pairs("--sink-option", arguments.sink_option)
    return parse_sink_options(
        {**shared_options(given), **own, "topic": arguments.to, "guarantee": "deduplication", "writeId": arguments.name}
    )


def shared_options(given: Mapping[str, str]) -> dict[str, str]:
    """Options of the source that say how brokers are reached."""
    return {name: value for name, value in given.items() if name.lower() in _SHARED}


_SHARED = ("service.url", "admin.url", "pulsar.client.authparams", "pulsar.client.tlstrustcertsfilepath", "polltimeoutms")


@dataclass(frozen=True, slots=True)
class Replay:
    """Settings that all topics of a run share."""

    name: str
    source: SourceOptions
    target: SinkOptions
    partitions: tuple[str, ...]
    """Partitions of the target, or the target itself where it has none."""


@dataclass(slots=True)
class Copied:
    """Counts of one topic: messages read, messages that were there already, and entries looked at or passed over."""

    messages: int = 0
    repeated: int = 0
    entries: int = 0


def run(arguments: argparse.Namespace, given: Mapping[str, str], progress: Progress) -> Report:
    """Errors are those of source and sink. One that died, for whatever reason, is run again as it was."""
    source, target = source_options(arguments, given), target_options(arguments, given)
    if target.topic in source.topics and source.ending.default == LATEST and not source.ending.by_topic:
        raise WrongOption(f"--to {target.topic}: it is replayed itself, which would never end: give --ending-offsets")
    stop = threading.Event()
    pace = Pace(arguments.speed, Clock(time.monotonic, stop.wait))
    if arguments.dry_run:
        _check_target(target)
        return _planned(spans_of(source), arguments.to)
    count = partition_count(target.topic, target.access, target.creates_topic)
    partitions = tuple(f"{target.topic}-partition-{index}" for index in range(count)) or (target.topic,)
    spans = spans_of(source)
    if not pace.is_free and len(spans) > _AT_THE_SAME_TIME_MAX:
        raise WrongOption(f"--topics: {len(spans)} topics and partitions; with a speed {_AT_THE_SAME_TIME_MAX} at a time")
    began = time.monotonic()
    copied = _all_copied(Replay(arguments.name, source, target, partitions), spans, pace, progress, stop)
    return _told(spans, copied, arguments, time.monotonic() - began)


def _check_target(target: SinkOptions) -> None:
    """Checks that the target exists or would be made; makes nothing of it now. NoSuchTopic."""
    try:
        partition_count(target.topic, target.access, False)
    except NoSuchTopic:
        if not target.creates_topic:
            raise


def _all_copied(
    what: Replay, spans: Sequence[TopicSpan], pace: Pace, progress: Progress, stop: threading.Event
) -> list[Copied]:
    """Each topic by a thread of its own. The first error ends all."""
    copied = [Copied() for _ in spans]
    with ThreadPoolExecutor(min(_AT_THE_SAME_TIME_MAX, max(1, len(spans)))) as threads:
        try:
            futures = [
                threads.submit(_Copying(what, span, pace, each, stop).run) for span, each in zip(spans, copied, strict=True)
            ]
            waiting = set(futures)
            while waiting and not any(each.done() and each.exception() for each in futures):
                _, waiting = wait(waiting, timeout=0.5, return_when=FIRST_EXCEPTION)
                progress.say(sum(each.entries for each in copied), sum(each.entries for each in spans))
        finally:
            stop.set()
            progress.end()
        failed = [error for each in futures if (error := each.exception()) and not isinstance(error, Stopped)]
        if failed:
            raise failed[0]
    return copied


class _Copying:
    """Copy of one topic."""

    def __init__(self, what: Replay, span: TopicSpan, pace: Pace, copied: Copied, stop: threading.Event) -> None:
        self._what, self._span, self._pace, self._copied, self._stop = what, span, pace, copied, stop
        self._schemas = SchemaCopies(span.topic, what.source.access)

    def run(self) -> None:
        todo = list(self._span.ranges)
        names = [producer_name(self._what.name, self._span.topic, each.ledger_id) for each in todo]
        known = newest_known(names[::-1], self._what.partitions, self._what.target.access) if names else ""
        for partition in self._what.partitions if names else ():
            check_deduplicates(partition, self._what.target.access)
        for name, each in zip(names, todo, strict=True):
            if known in ("", name):
                known = ""
                self._copy(each)
            self._copied.entries += each.count

    def _copy(self, wanted: LedgerRange) -> None:
        what, topic, last = self._what, self._span.topic, -1
        with LedgerCopy(what.name, topic, wanted.ledger_id, what.partitions, what.target) as copy:
            for batch in batches_of_range(topic, wanted, what.source, _COLUMNS):
                ids = sequence_ids(batch, topic, last)
                last = int(ids[-1])
                self._send(copy, batch, ids)
            copy.flush()
            self._copied.repeated += copy.repeated

    def _send(self, copy: LedgerCopy, batch: Any, ids: Any) -> None:
        times = publish_ms(batch)
        versions = numpy.asarray(batch.column("schema_version").fill_null(-1))
        start = 0
        while start < len(batch):
            if self._stop.is_set():
                raise Stopped
            same = _run_length(versions[start:])
            stop = start + self._pace.due(times[start : start + same])
            part = batch.slice(start, stop - start)
            rows = outgoing(part, value_encoder("NONE", part.schema.field("value").type), ids[start:stop])
            copy.send(rows, self._schemas.of_version(int(versions[start])))
            if not self._pace.is_free:
                copy.flush()
            self._copied.messages += stop - start
            start = stop


def _run_length(values: Any) -> int:
    """Number of leading values that are equal."""
    other = numpy.flatnonzero(values != values[0])
    return int(other[0]) if len(other) else len(values)


def _planned(spans: Sequence[TopicSpan], to: str) -> Report:
    facts = {"to": to, "entries": sum(each.entries for each in spans), "bytes": sum(each.size_bytes for each in spans)}
    return Report("replay", facts, [Table("what would be read", ROW_COLUMNS, [each.row() for each in spans], bars="entries")])


def _told(spans: Sequence[TopicSpan], copied: Sequence[Copied], arguments: argparse.Namespace, seconds: float) -> Report:
    messages, repeated = sum(each.messages for each in copied), sum(each.repeated for each in copied)
    facts = {
        "topics": arguments.topics,
        "to": arguments.to,
        "name": arguments.name,
        "speed": arguments.speed,
        "messages read": messages,
        "messages sent": messages - repeated,
        "messages that were there already": repeated,
        "seconds": round(seconds, 3),
    }
    rows = [(*span.row(), each.messages, each.messages - each.repeated) for span, each in zip(spans, copied, strict=True)]
    return Report("replay", facts, [Table("by topic", (*ROW_COLUMNS, "read", "sent"), rows, bars="sent")])
