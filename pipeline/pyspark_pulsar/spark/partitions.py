"""What a task gets, and what it does: a split, read into Arrow batches. The same for batches and streams."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pyspark.sql.datasource import InputPartition

from ..client.registry import schema_version
from ..client.split_reader import SplitReader
from ..client.split_rows import rows_of_split
from ..decode.typed import Schema
from ..holes import Unacknowledged, of_ranges
from ..options import SourceOptions
from ..plan import Split, tasks_of
from ..rows_wanted import Wanted, wanted_batch
from ..stream_offsets import Backlog
from .columns import as_frame
from .worker_memory import leave_modules_to_themselves


@dataclass
class SplitPartition(InputPartition):
    """What travels to a task: places and no data. Several splits where topics are many and small.

    `left`: by topic, what of these splits is not wanted, where a subscription says it.
    """

    splits: tuple[Split, ...]
    left: Mapping[str, Unacknowledged]


def partitions_of(
    splits: Sequence[Split], split_bytes: int, left: Mapping[str, Unacknowledged] = MappingProxyType({})
) -> list[InputPartition]:
    return [SplitPartition(each, _left_of(each, left)) for each in tasks_of(splits, split_bytes)]


def _left_of(splits: Sequence[Split], left: Mapping[str, Unacknowledged]) -> dict[str, Unacknowledged]:
    """The places alone, without the ranges, which the splits have."""
    found = {}
    for topic in dict.fromkeys(each.topic for each in splits if each.topic in left):
        ranges = [piece for each in splits if each.topic == topic for piece in each.ranges]
        found[topic] = replace(of_ranges(left[topic], ranges), ranges=[])
    return found


def read(partition: Any, asked: "Asked") -> Iterator[Any]:
    """Arrow record batches. Of an empty plan Spark makes one partition of nothing."""
    leave_modules_to_themselves()
    for split in getattr(partition, "splits", ()):
        yield from batches_of(split, asked, partition.left.get(split.topic, Unacknowledged([])))


_SAMPLE_ENTRIES = 8
_VERSIONS_KEPT_MAX = 1000


def sampled(topic: str, backlog: Backlog, options: SourceOptions) -> Backlog:
    """With how many messages the first few entries have: brokers count entries, limits count messages."""
    if not backlog.ranges:
        return backlog
    first = backlog.ranges[0]
    few = first.part(first.first_entry_id, min(first.end_entry_id, first.first_entry_id + _SAMPLE_ENTRIES))
    found = sum(rows.message_count for rows in SplitReader(Split(topic, (few,)), options.access, False))
    return replace(backlog, messages_per_entry=max(1.0, found / few.count))


@dataclass(frozen=True)
class Asked:
    """What all tasks of a query make rows of, and how."""

    options: SourceOptions
    frame: Any
    """The columns, in their order: an Arrow schema."""
    schema: Schema | None


def batches_of(split: Split, asked: Asked, left: Unacknowledged) -> Iterator[Any]:
    """Arrow record batches of one split."""
    options = asked.options
    written_as = functools.lru_cache(_VERSIONS_KEPT_MAX)(functools.partial(schema_version, split.topic, options.access))
    wanted = Wanted(tuple(asked.frame.names), options.between, options.mode, asked.schema, written_as, left.parts, left.done)
    for rows in rows_of_split(split, options):
        batch = wanted_batch(rows, split.topic, wanted)
        if batch.num_rows:
            yield as_frame(batch, asked.frame)
