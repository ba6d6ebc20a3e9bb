"""Input and work of a task: a split, read into Arrow batches. The same for batches and streams."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pyspark.sql.datasource import InputPartition

from ..client.split_reader import SplitReader
from ..frames.split_batches import Asked, batches_of
from ..holes import Unacknowledged, of_ranges
from ..options import SourceOptions
from ..plan import Split, tasks_of
from ..stream_offsets import Backlog
from .worker_memory import leave_modules_to_themselves


@dataclass
class SplitPartition(InputPartition):
    """Input that travels to a task: places and no data. Several splits where topics are many and small.

    `left`: by topic, what a subscription has not acknowledged of these splits.
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


def read(partition: Any, asked: Asked) -> Iterator[Any]:
    """Arrow record batches; none for the one empty partition that Spark makes of an empty plan."""
    leave_modules_to_themselves()
    for split in getattr(partition, "splits", ()):
        yield from batches_of(split, asked, partition.left.get(split.topic, Unacknowledged([])))


_SAMPLE_ENTRIES = 8


def sampled(topic: str, backlog: Backlog, options: SourceOptions) -> Backlog:
    """Backlog with the messages per entry of its first few entries: brokers count entries, limits count messages."""
    if not backlog.ranges:
        return backlog
    first = backlog.ranges[0]
    few = first.part(first.first_entry_id, min(first.end_entry_id, first.first_entry_id + _SAMPLE_ENTRIES))
    found = sum(rows.message_count for rows in SplitReader(Split(topic, (few,)), options.access, False))
    return replace(backlog, messages_per_entry=max(1.0, found / few.count))
