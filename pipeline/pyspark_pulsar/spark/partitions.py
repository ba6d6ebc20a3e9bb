"""What a task gets, and what it does: a split, read into Arrow batches. The same for batches and streams."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.datasource import InputPartition

from ..client.split_reader import SplitReader
from ..options import SourceOptions
from ..plan import Split
from ..rows_wanted import wanted_batch
from ..stream_offsets import Backlog


@dataclass
class SplitPartition(InputPartition):
    """What travels to a task: places and no data."""

    split: Split


_SAMPLE_ENTRIES = 8


def sampled(topic: str, backlog: Backlog, options: SourceOptions) -> Backlog:
    """With how many messages the first few entries have: brokers count entries, limits count messages."""
    if not backlog.ranges:
        return backlog
    first = backlog.ranges[0]
    few = first.part(first.first_entry_id, min(first.end_entry_id, first.first_entry_id + _SAMPLE_ENTRIES))
    found = sum(rows.message_count for rows in SplitReader(Split(topic, (few,)), options.access, False))
    return replace(backlog, messages_per_entry=max(1.0, found / few.count))


def batches_of(split: Split, options: SourceOptions, columns: tuple[str, ...]) -> Iterator[Any]:
    """Arrow record batches of one split."""
    reader = SplitReader(split, options.access, options.fails_on_data_loss, options.verifies_checksums)
    for rows in reader:
        batch = wanted_batch(rows, split.topic, columns, options.between, options.mode)
        if batch.num_rows:
            yield batch
