"""Our columns as Spark's types, and a frame's schema as the choice of columns that it is.

Spark gives no hint which columns a query uses; a schema (or the option `columns`) that names only some is how a reader is told
to make no others.
"""

from typing import Any

import pyarrow
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from ..decode.values.typed import Schema
from ..errors import WrongOption
from ..frames.column_types import arrow_schema, check_once, chosen_columns, registry_schema
from ..options import SourceOptions


def schema_of(options: SourceOptions) -> StructType:
    """WrongOption."""
    chosen = chosen_columns(options)
    whole = from_arrow_schema(arrow_schema(registry_schema(options)))
    return StructType([whole[name] for name in chosen])


def frame_of(schema: StructType, of_topics: Schema | None) -> pyarrow.Schema:
    """A frame's columns, of those that there are, as Spark wants their batches: with what may be null as the frame says.

    WrongOption.
    """
    ours = arrow_schema(of_topics)
    for field in schema.fields:
        if field.name not in ours.names:
            raise WrongOption(f"schema: column {field.name} is not there; there are {', '.join(ours.names)}")
    check_once("schema", schema.names)
    frame = to_arrow_schema(schema, timezone="UTC")
    for field in schema.fields:
        _check_type(field, ours.field(field.name).type, frame.field(field.name).type)
    return frame


def _check_type(field: StructField, ours: Any, wanted: Any) -> None:
    expected, found = from_arrow_type(ours).simpleString(), field.dataType.simpleString()
    if found != expected:
        raise WrongOption(f"schema: column {field.name} is {expected}, not {found}")
    if _rules_more_out(ours, wanted):
        raise WrongOption(f"schema: column {field.name}: a member is said not to be null that may be")


def _rules_more_out(ours: Any, wanted: Any) -> bool:
    """Whether our type excludes null where the wanted one does not; the types are otherwise alike."""
    members = [(ours.field(index), wanted.field(index)) for index in range(ours.num_fields)]
    return any((own.nullable and not other.nullable) or _rules_more_out(own.type, other.type) for own, other in members)
