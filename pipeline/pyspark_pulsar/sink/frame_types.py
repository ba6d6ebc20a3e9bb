"""The types of a frame's columns as the rest of the sink has them. Pure.

Spark hands texts and bytes over with offsets of 64 bits where `spark.sql.execution.arrow.useLargeVarTypes` says so. A slice of
a batch is far below what 32 bits can say, so they become the usual ones, in structs, lists and maps too.
"""

from typing import Any

import pyarrow


def usual(batch: Any) -> Any:
    """The record batch itself where nothing has such a type."""
    fields = [_usual_field(each) for each in batch.schema]
    if fields == list(batch.schema):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=pyarrow.schema(fields, batch.schema.metadata))


def _usual_field(field: Any) -> Any:
    return field.with_type(_usual_type(field.type))


def _usual_type(kind: Any) -> Any:
    types = pyarrow.types
    if types.is_large_string(kind):
        return pyarrow.string()
    if types.is_large_binary(kind):
        return pyarrow.binary()
    if types.is_struct(kind):
        return pyarrow.struct([_usual_field(each) for each in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        return pyarrow.list_(_usual_field(kind.value_field))
    if types.is_map(kind):
        return pyarrow.map_(_usual_field(kind.key_field), _usual_field(kind.item_field), kind.keys_sorted)
    return kind
