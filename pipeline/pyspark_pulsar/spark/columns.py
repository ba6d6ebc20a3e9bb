"""Our columns as Spark's types, and a frame's schema as the choice of columns that it is.

Spark gives no hint which columns a query uses; a schema (or the option `columns`) that names only some is how a reader is told
to make no others.
"""

from typing import Any

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..decode.arrow_columns import SCHEMA
from ..errors import WrongOption
from ..options import SourceOptions


def schema_of(options: SourceOptions) -> StructType:
    """`error` is a column where records that cannot be decoded are rows: mode=PERMISSIVE."""
    unknown = [name for name in options.columns if name not in SCHEMA.names]
    if unknown:
        raise WrongOption(f"option columns: {', '.join(unknown)}: not there; there are {', '.join(SCHEMA.names)}")
    every = [name for name in SCHEMA.names if name != "error" or options.mode == "PERMISSIVE"]
    whole = from_arrow_schema(SCHEMA)
    return StructType([whole[name] for name in options.columns or every])


def columns_in(schema: StructType) -> tuple[str, ...]:
    """The names of a schema's columns, which have our types. WrongOption."""
    ours: Any = from_arrow_schema(SCHEMA)
    for field in schema.fields:
        if field.name not in ours.names:
            raise WrongOption(f"schema: column {field.name} is not there; there are {', '.join(ours.names)}")
        if field.dataType != ours[field.name].dataType:
            expected = ours[field.name].dataType.simpleString()
            raise WrongOption(f"schema: column {field.name} is {expected}, not {field.dataType.simpleString()}")
    return tuple(field.name for field in schema.fields)
