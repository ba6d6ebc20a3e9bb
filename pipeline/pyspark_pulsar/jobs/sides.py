"""What a job compares or moves.

Topics, or files that `land` wrote. Written on the command line `topic`, `topic,topic` or `parquet:PATH`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_PARQUET = "parquet:"


def side(spark: SparkSession, name: str, options: Mapping[str, str], columns: Sequence[str]) -> DataFrame:
    """The columns of our source. Errors are those of the source, and Spark's of files."""
    if name.startswith(_PARQUET):
        return spark.read.parquet(name.removeprefix(_PARQUET)).select(*columns)
    reader: Any = spark.read.format("pulsar").options(**options).option("topics", name)
    frame: DataFrame = reader.option("columns", ",".join(columns)).load()
    return frame
