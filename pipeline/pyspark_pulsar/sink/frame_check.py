"""A frame checked by its types alone, before a topic is made or a row is written; and how its values are encoded. Pure.

Spark hands texts and bytes over with offsets of 64 bits where `spark.sql.execution.arrow.useLargeVarTypes` is set. A slice of a
batch is far below the bound of 32 bits, so these types become the usual ones, in structs, lists and maps too.
"""

from typing import Any

import numpy
import pyarrow

from .errors import WrongFrame
from .frame_rows import outgoing, text_or_bytes
from .options import SinkOptions
from .values.value_column import ValueEncoder, pair_encoder, value_encoder


def encoder_of(options: SinkOptions, schema: Any) -> ValueEncoder:
    """WrongFrame when the types of the columns and the options valueSchema and keySchema do not go together."""
    kind = schema.field("value").type
    if options.key_schema == "NONE":
        return value_encoder(options.value_schema, kind)
    kinds = options.key_schema, options.value_schema
    return pair_encoder(kinds, (schema.field("key").type, kind), options.is_key_separated)


def check_types(options: SinkOptions, schema: Any) -> None:
    """WrongFrame for a column that no row of this type could be written of: an empty batch is made into messages."""
    batch = usual(pyarrow.RecordBatch.from_arrays([pyarrow.array([], each.type) for each in schema], schema=schema))
    outgoing(batch, encoder_of(options, batch.schema), numpy.empty(0, numpy.uint64))
    names = batch.schema.names
    if "key" in names and options.key_schema == "NONE" and not pyarrow.types.is_null(batch.column("key").type):
        text_or_bytes(batch, "key")
    if not options.topic and not pyarrow.types.is_string(batch.column("topic").type):
        raise WrongFrame(f"column topic is {batch.column('topic').type}: expected string")


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
