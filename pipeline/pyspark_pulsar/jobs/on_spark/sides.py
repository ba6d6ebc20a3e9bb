"""Sides that a job compares or moves.

Topics, or files that `land` wrote. Written on the command line `topic`, `topic,topic` or `parquet:PATH`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType

from ...errors import WrongOption
from ..arguments import FILES
from .spark_errors import reason

_EXPECTED = "Expected what land wrote, all columns of it: parquet:DIRECTORY/data, where DIRECTORY is its --to"


def sides(spark: SparkSession, names: Sequence[str], options: Mapping[str, str], columns: Sequence[str]) -> list[DataFrame]:
    """The columns of our source, of each. Errors are those of the source, and Spark's of files.

    Bytes, whatever schemas topics have, unless the options say otherwise or a file has values of a type.
    """
    files = {name: _of_files(spark, name, columns) for name in names if name.startswith(FILES)}
    is_typed = any(
        not isinstance(each.schema[name].dataType, BinaryType) for each in files.values() for name in ("key", "value")
    )
    asked = {"values": "schema" if is_typed else "raw", **{name.lower(): value for name, value in options.items()}}
    return [files[name] if name in files else _of_topics(spark, name, asked, columns) for name in names]


def _of_files(spark: SparkSession, name: str, columns: Sequence[str]) -> DataFrame:
    """Rows of files with different schemas: a topic may have got fields between two runs of `land`. WrongOption."""
    try:
        frame = spark.read.option("mergeSchema", "true").parquet(name.removeprefix(FILES))
    except (PySparkException, Py4JError) as error:
        raise WrongOption(f"{name}: {reason(str(error))}. {_EXPECTED}") from None
    if lacking := [each for each in columns if each not in frame.columns]:
        raise WrongOption(f"{name}: no column {', '.join(lacking)}. {_EXPECTED}")
    return frame.select(*columns)


def _of_topics(spark: SparkSession, name: str, options: Mapping[str, str], columns: Sequence[str]) -> DataFrame:
    reader: Any = spark.read.format("pulsar").options(**options).option("topics", name)
    frame: DataFrame = reader.option("columns", ",".join(columns)).load()
    return frame
