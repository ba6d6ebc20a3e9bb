"""`df.writeStream.format("pulsar")`: a micro-batch as a batch is written, known by its query and its number.

Spark passes neither of them to `write`; they are local properties of the task, and this is how Spark 4.1 to 4.3 call them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..errors import PipelineError, WrongOption
from ..sink.commits import batch_commits as commits
from ..sink.options import AT_LEAST_ONCE
from ..sink.task import SinkTask, TaskPlace
from .sink import Done, checked_options, results_of

_QUERY_ID, _BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


class PulsarStreamWriter(DataSourceStreamArrowWriter):
    """Made for each micro-batch anew; `commit` may come again for one that was committed."""

    def __init__(self, given: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise WrongOption(
                'outputMode complete: a topic can only be appended to; use "append", or foreachBatch, which writes each batch '
                "of an aggregation as a frame"
            )
        self._options = checked_options(given, schema, overwrite)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return Done(SinkTask(self._options, self._place()).run(iterator))

    def _place(self) -> TaskPlace:
        context: Any = TaskContext.get()
        query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query is not None and batch is not None:
            return TaskPlace(self._options.write_id or query, int(batch), context.partitionId())
        if self._options.guarantee == AT_LEAST_ONCE:
            return TaskPlace("", 0, context.partitionId())
        raise PipelineError(
            f"this Spark does not tell a task its query and batch ({_QUERY_ID}, {_BATCH_ID}), without which "
            f"guarantee={self._options.guarantee.lower()} cannot be kept"
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        commits.commit(results_of(messages), self._options)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - PySpark's name
        commits.abort(results_of(messages), self._options, batchId)
