"""`df.write.format("pulsar")`: every task publishes its own rows; the driver ends their transactions, where there are any."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ..errors import WrongOption
from ..sink.commits import batch_commits as commits
from ..sink.frame_check import check_types
from ..sink.frame_rows import check_columns
from ..sink.options import DEDUPLICATION, TRANSACTIONS, SinkOptions, parse_sink_options
from ..sink.task import SinkTask, TaskPlace, TaskResult
from ..sink.topics import partition_count


@dataclass
class Done(WriterCommitMessage):
    """Message of a task to the driver."""

    result: TaskResult


def checked_options(given: Mapping[str, str], schema: StructType, overwrite: bool) -> SinkOptions:
    """On the driver, before anything is written: options, columns and their types, and that the topic is there."""
    options = parse_sink_options(given)
    if overwrite:
        raise WrongOption('mode overwrite: a topic can only be appended to; .mode("append")')
    check_columns(schema.names, options.topic, options.key_schema != "NONE")
    check_types(options, to_arrow_schema(schema, timezone="UTC"))
    if options.topic:
        partition_count(options.topic, options.access, options.creates_topic)
    return options


class PulsarWriter(DataSourceArrowWriter):
    """A batch. With guarantee=deduplication it needs a `writeId`: without one a second run of it is another write."""

    def __init__(self, given: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self._options = checked_options(given, schema, overwrite)
        is_unnamed = self._options.guarantee == TRANSACTIONS and not self._options.write_id
        self._noted_as = f"unnamed-{uuid.uuid4().hex}" if is_unnamed else ""
        if self._options.guarantee == DEDUPLICATION and not self._options.write_id:
            raise WrongOption(
                "option writeId: is needed with guarantee=deduplication, for example orders-2026-11-22: rows that "
                "are written again "
                "under the same one are known by it"
            )

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        place = TaskPlace(self._options.write_id, 0, partition, self._noted_as)
        return Done(SinkTask(self._options, place).run(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commits.commit(results_of(messages), self._options, self._noted_as)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commits.abort(results_of(messages), self._options, 0, self._noted_as)


def results_of(messages: Sequence[Any]) -> list[TaskResult]:
    """Results of the tasks that ended well."""
    return [each.result for each in messages if each is not None]
