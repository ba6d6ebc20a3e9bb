"""A query by chance: its options, its expected rows, and the ways of reading it, as Spark's tasks read it."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from random import Random
from typing import Any
from unittest import mock

import pyarrow
from pyspark.sql import datasource

from pipeline.pyspark_pulsar.client import split_reader, whole_messages
from pipeline.pyspark_pulsar.client.bookies import bookie_reader, bookies_inside, nearby_bookie, witness
from pipeline.pyspark_pulsar.decode import arrow_columns, plain, singles
from pipeline.pyspark_pulsar.decode import rows as rows_of_blocks
from pipeline.pyspark_pulsar.decode.arrow_columns import SCHEMA
from pipeline.pyspark_pulsar.errors import PipelineError
from pipeline.pyspark_pulsar.spark.source import PulsarSource

from .messages import Row
from .model import Part
from .peer import Place

_COLUMNS = tuple(name for name in SCHEMA.names if name != "error")


class Way(Enum):
    """`AUTO`: as it comes, from files where bookies hand them over. `PORTS`: over bookies' sockets alone. `STREAM`: as AUTO, in
    the batches of a stream."""

    AUTO = "auto"
    STREAM = "stream"
    PORTS = "ports"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Query:
    """`options` of the source beside those of the topic; `filters` are pushed down. The rest says what they mean."""

    options: Mapping[str, str]
    columns: tuple[str, ...]
    filters: tuple[Any, ...] = ()
    starts: Mapping[str, Place] | None = None
    ends: Mapping[str, Place] | None = None
    time_from: int | None = None
    time_to: int | None = None
    index_from: int | None = None
    index_to: int | None = None
    topics: frozenset[str] | None = None
    mode: str = "PERMISSIVE"

    def wants(self, row: Row) -> bool:
        """The topic may be trimmed, the row not be decodable: that is the caller's."""
        topic, place = row["topic"], row["message_id"][:2]
        if self.topics is not None and topic not in self.topics:
            return False
        if (self.starts is not None and place < self.starts[topic]) or (self.ends is not None and place >= self.ends[topic]):
            return False
        if not _within(row.get("publish_time"), self.time_from, self.time_to):
            return False
        return _within(row.get("index"), self.index_from, self.index_to)


def _within(value: int | None, start: int | None, end: int | None) -> bool:
    if start is None and end is None:
        return True
    assert value is not None
    return (start is None or value >= start) and (end is None or value < end)


WHOLE = Query({"mode": "PERMISSIVE"}, SCHEMA.names)


def any_query(rng: Random, parts: Sequence[Part], rows: Sequence[Row], is_trimmed: bool) -> Query:
    """`rows`: all that the topic is to have. Limits are near what is there, most of them at something's edge."""
    limits: dict[str, Any] = {}
    options: dict[str, str] = {"mode": rng.choice(("PERMISSIVE", "PERMISSIVE", "DROPMALFORMED", "FAILFAST"))}
    if rng.random() < 0.5 and not is_trimmed:
        limits |= _places(rng, parts, options)
    knows_times, knows_indexes = (all(name in row for row in rows) for name in ("publish_time", "index"))
    filters: list[Any] = []
    if rng.random() < 0.3 and knows_times and rows:
        limits |= _times(rng, [row["publish_time"] for row in rows], options, filters)
    elif rng.random() < 0.3 and knows_indexes and rows:
        limits |= _indexes(rng, [row["index"] for row in rows], options, filters)
    if rng.random() < 0.3 and len(parts) > 1:
        chosen = rng.sample([each.topic for each in parts], rng.randint(1, len(parts)))
        filters.append(
            datasource.In(("topic",), tuple(chosen)) if len(chosen) > 1 else datasource.EqualTo(("topic",), chosen[0])
        )
        limits["topics"] = frozenset(chosen)
    if filters:
        options["filterPushdown"] = "true"
    if rng.random() < 0.2:
        options["verifyChecksums"] = "false"
    every = (*_COLUMNS, "error") if options["mode"] == "PERMISSIVE" else _COLUMNS
    columns = tuple(rng.sample(every, rng.randint(1, len(every)))) if rng.random() < 0.7 else every
    return Query(options, columns, tuple(filters), mode=options["mode"], **limits)


def _places(rng: Random, parts: Sequence[Part], options: dict[str, str]) -> dict[str, Any]:
    starts, ends = {}, {}
    for part in parts:
        places = sorted(each.place for each in part.stored)
        one, other = sorted(rng.choice(places) for _ in range(2))
        starts[part.topic], ends[part.topic] = one, (other[0], other[1] + rng.randrange(2))
    options["startingOffsets"] = _told(starts)
    options["endingOffsets"] = _told(ends)
    return {"starts": starts, "ends": ends}


def _told(places: Mapping[str, Place]) -> str:
    texts = [f'"{topic}": "{ledger_id}:{entry_id}"' for topic, (ledger_id, entry_id) in places.items()]
    return "{" + ", ".join(texts) + "}"


def _times(rng: Random, times: list[int], options: dict[str, str], filters: list[Any]) -> dict[str, Any]:
    one, other = sorted(rng.choice(times) + rng.randrange(2) for _ in range(2))
    if rng.random() < 0.5:
        options |= {"startingTime": str(one), "endingTime": str(other)}
    else:
        first = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=one - 1, microseconds=rng.choice((1, 500, 1000)))
        last = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=other)
        filters += [datasource.GreaterThanOrEqual(("publish_time",), first), datasource.LessThan(("publish_time",), last)]
    return {"time_from": one, "time_to": other}


def _indexes(rng: Random, indexes: list[int], options: dict[str, str], filters: list[Any]) -> dict[str, Any]:
    one, other = sorted(rng.choice(indexes) for _ in range(2))
    if rng.random() < 0.5:
        options |= {"startingIndex": str(one), "endingIndex": str(other)}
    else:
        filters += [datasource.GreaterThan(("index",), one - 1), datasource.LessThanOrEqual(("index",), other - 1)]
    return {"index_from": one, "index_to": other}


_SLOW_BYTES = 30_000
"""More than that is read with the kernels alone."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Way of reading a query; the result is the same for all ways."""

    way: Way
    split_bytes: int
    window_entries: int
    is_tight: bool
    """Whether blocks, answers, permits and parts are small."""
    has_kernels: bool
    forgets: bool
    """Whether the process first forgets which bookies it knew as the topic's."""


def any_reading(rng: Random, way: Way, size_bytes: int) -> Reading:
    splits = rng.choice((1, 1, 2, 5, 12))
    window, has_kernels = rng.choice((4096, 50, 3)), size_bytes > _SLOW_BYTES or rng.random() < 0.7
    return Reading(way, max(1, size_bytes // splits), window, rng.random() < 0.3, has_kernels, forgets=rng.random() < 0.3)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rows, or the error that ended it."""

    rows: list[Row]
    error: str = ""


def read(query: Query, where: Mapping[str, str], reading: Reading) -> Outcome:
    options = {**where, **query.options, "columns": ",".join(query.columns), "splitBytes": str(reading.split_bytes)}
    if reading.way is Way.BROKER:
        options["readFrom"] = "broker"
    if reading.way is Way.STREAM:
        options["startingOffsets"] = "earliest"
    rows: list[Row] = []
    with _as_told(reading):
        try:
            for batch in _streamed(options) if reading.way is Way.STREAM else _batches(options, query.filters):
                rows += _rows_in(batch)
        except PipelineError as error:
            return Outcome(rows, f"{type(error).__name__}: {error}")
    return Outcome(rows)


def _batches(options: dict[str, str], filters: Sequence[Any]) -> Iterator[Any]:
    source = PulsarSource(options)
    reader = source.reader(source.schema())
    if filters:
        list(reader.pushFilters(list(filters)))
    for partition in reader.partitions():
        yield from reader.read(pickle.loads(pickle.dumps(partition)))


def _streamed(options: dict[str, str]) -> Iterator[Any]:
    """Rows from the first message to the last one now: each batch by a query of its own, as after a restart."""
    at: dict[str, Any] | None = None
    while True:
        source = PulsarSource(options)
        reader = source.streamReader(source.schema())
        start = reader.initialOffset() if at is None else at
        at = reader.latestOffset(start, reader.getDefaultReadLimit())
        if at == start:
            return
        for partition in reader.partitions(start, at):
            yield from reader.read(pickle.loads(pickle.dumps(partition)))


_TIGHT = (
    (bookie_reader, "_WINDOW_BYTES", 20_000),
    (bookie_reader, "_ANSWERS_BYTES_MAX", 30_000),
    (split_reader, "_BLOCK_BYTES", 5_000),
    (split_reader, "_PERMITS", 7),
    (rows_of_blocks, "PART_BYTES_MAX", 10_000),
    (whole_messages, "HELD_BYTES_MAX", 3_000),
)


@contextmanager
def _as_told(reading: Reading) -> Iterator[None]:
    with ExitStack() as patched:
        patch = mock.patch.object
        patched.enter_context(patch(bookie_reader, "_WINDOW_ENTRIES_MAX", reading.window_entries))
        patched.enter_context(patch(split_reader, "_LOOK_SECONDS", 0.1))  # at the end of a topic may be what nobody is given
        for module, name, small in _TIGHT if reading.is_tight else ():
            patched.enter_context(patch(module, name, small))
        if not reading.has_kernels:
            for module, name in (
                *((bookie_reader, "entries_kernel"), (plain, "entries_kernel"), (plain, "kernel")),
                *((singles, "kernel"), (arrow_columns, "kernel")),
            ):
                patched.enter_context(patch(module, name, None))
        if reading.way is Way.PORTS:
            patched.enter_context(patch(nearby_bookie, "offered", lambda _: None))
        if reading.forgets:
            witness._known.clear()
            bookies_inside._remembered.clear()
        yield


def _rows_in(batch: Any) -> list[Row]:
    columns = {name: _plain(batch.column(name)) for name in batch.schema.names}
    names = list(columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _plain(column: Any) -> list[Any]:
    if pyarrow.types.is_timestamp(column.type):
        return [None if each is None else each // 1000 for each in column.cast(pyarrow.int64()).to_pylist()]
    if pyarrow.types.is_map(column.type):
        return [dict(each) for each in column.to_pylist()]
    found = column.to_pylist()
    return [tuple(each.values()) for each in found] if pyarrow.types.is_struct(column.type) else found
