"""`spark.read.format("pulsar")`: plans on the driver, reads in the tasks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from ..filters import left_by
from ..frames.batch_plan import plan_of
from ..frames.column_types import registry_schema
from ..frames.split_batches import Asked
from ..options import SourceOptions, parse_options, refuse_misplaced
from .columns import frame_of, schema_of
from .partitions import partitions_of, read
from .worker_memory import leave_modules_to_themselves


class PulsarSource(DataSource):
    """Spark's entry. Options are checked here, so that a wrong one fails before anything is read."""

    @classmethod
    def name(cls) -> str:
        return "pulsar"

    def schema(self) -> StructType:
        leave_modules_to_themselves()
        return schema_of(parse_options(self.options, is_stream=False))

    def reader(self, schema: StructType) -> DataSourceReader:
        refuse_misplaced(self.options, is_stream=False)
        found = asked(parse_options(self.options, is_stream=False), schema)
        return FilteringReader(found) if found.options.pushes_filters else PulsarReader(found)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        # needs PySpark 4.2: here, so that batches are read with 4.0 and 4.1 too
        from .stream_source import PulsarStreamReader

        refuse_misplaced(self.options, is_stream=True)
        return PulsarStreamReader(asked(parse_options(self.options, is_stream=True), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .sink import PulsarWriter

        return PulsarWriter(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from .stream_sink import PulsarStreamWriter

        return PulsarStreamWriter(self.options, schema, overwrite)


def asked(options: SourceOptions, schema: StructType) -> Asked:
    """WrongOption for a schema that the topics do not have."""
    of_topics = registry_schema(options)
    return Asked(options, frame_of(schema, of_topics), of_topics)


class PulsarReader(DataSourceReader):
    """A batch: `partitions` looks at the topics' ledgers once, and what is read is what was there then."""

    def __init__(self, asked: Asked) -> None:
        self._options, self._asked = asked.options, asked
        self._only: frozenset[str] | None = None

    def partitions(self) -> Sequence[InputPartition]:
        leave_modules_to_themselves()
        plan = plan_of(self._options, self._only)
        return partitions_of(plan.splits, self._options.split_bytes, plan.left)

    def read(self, partition: Any) -> Iterator[Any]:
        return read(partition, self._asked)


class FilteringReader(PulsarReader):
    """One by itself: Spark refuses a reader with `pushFilters` where spark.sql.python.filterPushdown.enabled is not true."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Spark is to evaluate all of them again."""
        left = left_by(filters, self._options.between)
        self._options = replace(self._options, between=left.between)
        self._asked, self._only = replace(self._asked, options=self._options), left.topics
        return filters
