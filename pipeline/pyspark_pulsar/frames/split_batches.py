"""The Arrow record batches of a split: in a task of Spark's, or in any process that reads a topic."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow

from ..client.registry import schema_version
from ..client.split_rows import rows_of_split
from ..decode.values.typed import Schema
from ..errors import WrongOption
from ..holes import Unacknowledged
from ..options import SourceOptions
from ..plan import Split
from ..rows_wanted import Wanted, wanted_batch

_VERSIONS_KEPT_MAX = 1000


@dataclass(frozen=True)
class Asked:
    """Settings that all tasks of a query share to make rows."""

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


def as_frame(batch: Any, frame: pyarrow.Schema) -> Any:
    """A record batch with the frame's schema, not copied. WrongOption where a column has a null that the frame rules out."""
    if batch.schema.equals(frame):
        return batch
    for field, column in zip(frame, batch.columns, strict=True):
        if column.null_count and not field.nullable:
            raise WrongOption(f"schema: column {field.name} is said not to be null, and is null in a message")
    pairs = zip(frame, batch.columns, strict=True)
    columns = [column if column.type == field.type else column.cast(field.type) for field, column in pairs]
    return pyarrow.RecordBatch.from_arrays(columns, schema=frame)
