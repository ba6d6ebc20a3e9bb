"""Examples of the documentation, run in Spark's process as they are, except for the server's address (see `spark_process`)."""

from typing import Any

from pyspark.sql import SparkSession

from tests.pipeline.sink_jobs import command


def run_python(spark: SparkSession, blocks: list[str], frames: list[str], others: list[str]) -> dict[str, Any]:
    """The blocks of a page, one after the other, as one program; then how many rows these frames have, and these others."""
    frame = spark.createDataFrame([("a", "one"), ("b", "two")], "key string, value string")
    names: dict[str, Any] = {"spark": spark, "frame": frame}
    for each in blocks:
        exec(compile(each, "documentation", "exec"), names)
    return {name: names[name].count() for name in frames} | {name: names[name] for name in others}


def run_sql(spark: SparkSession, block: str) -> list[list[dict[str, Any]]]:
    """Answers of the statements."""
    statements = [each for each in block.split(";") if each.strip()]
    return [[row.asDict(recursive=True) for row in spark.sql(each).collect()] for each in statements]


def run_commands(spark: SparkSession, commands: list[list[str]]) -> list[tuple[int, str, str]]:
    """Each in this session: exit code, output, complaints."""
    return [command(spark, words) for words in commands]
