"""A frame checked by its types alone, before a topic is made or a row is written; and how its values are encoded. Pure."""

from typing import Any

import numpy
import pyarrow

from .errors import WrongFrame
from .frame_rows import outgoing, text_or_bytes
from .frame_types import usual
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
