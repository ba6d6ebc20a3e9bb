"""A source of Spark's in Python that has its rows in memory: what Spark itself asks for any source in Python, and nothing else.

`spark.read.format("memory")`, options `rows`, `size` and `tasks`: the same batch of key, value and publish time over and over.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

_BATCH_BYTES = 4 << 20
_KEY_BYTES = 8


class MemorySource(DataSource):  # type: ignore[misc]  # PySpark is not looked into here
    """Source of rows from memory; the owner of a session registers it."""

    @classmethod
    def name(cls) -> str:
        return "memory"

    def schema(self) -> str:
        return "key binary, value binary, publish_time timestamp not null"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(*(int(self.options[each]) for each in ("rows", "size", "tasks")))


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, rows: int, size: int, tasks: int) -> None:
        self._rows, self._size, self._tasks = rows, size, tasks

    def partitions(self) -> Sequence[InputPartition]:
        bounds = [self._rows * task // self._tasks for task in range(self._tasks + 1)]
        return [InputPartition(end - start) for start, end in itertools.pairwise(bounds)]

    def read(self, partition: Any) -> Iterator[Any]:
        batch = _batch(max(1, _BATCH_BYTES // (self._size + _KEY_BYTES)), self._size)
        left = partition.value
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows


def _batch(count: int, size: int) -> Any:
    import numpy
    import pyarrow

    columns = []
    for width in (_KEY_BYTES, size):
        offsets = pyarrow.py_buffer(numpy.arange(count + 1, dtype=numpy.int32) * numpy.int32(width))
        buffers = [None, offsets, pyarrow.py_buffer(os.urandom(count * width))]
        columns.append(pyarrow.Array.from_buffers(pyarrow.binary(), count, buffers))
    times = pyarrow.array(numpy.arange(count)).view(pyarrow.timestamp("us", tz="UTC"))
    fields = [pyarrow.field(name, pyarrow.binary()) for name in ("key", "value")]
    schema = pyarrow.schema([*fields, pyarrow.field("publish_time", times.type, nullable=False)])
    return pyarrow.RecordBatch.from_arrays([*columns, times], schema=schema)
