"""reconcile: what became of the messages of one side on the other; how is in `comparison`."""

import argparse
from typing import Any

from ...client.admin import ledgers_of_all
from ...client.brokers import topics_of
from ...options import parse_options
from ..arguments import FILES
from ..progress import Progress, SparkProgress
from ..report import Report, Table


def add_arguments(job: argparse.ArgumentParser) -> None:
    job.add_argument("--expected", required=True, metavar="SIDE", help="topics with commas between, or parquet:PATH")
    job.add_argument("--found", required=True, metavar="SIDE")
    job.add_argument(
        "--by", default="producer,sequence_id", help="what a message is known by (also key, value, topic, property:NAME)"
    )
    job.add_argument("--scope", default="producer", help="in what order counts: producer, key or none")


def check(arguments: argparse.Namespace, given: dict[str, str]) -> None:
    """Ask the brokers for the topics of both sides before Spark is started. Errors are those of the source."""
    for side in (arguments.expected, arguments.found):
        if not side.startswith(FILES):
            source = parse_options({**given, "topics": side}, is_stream=False)
            ledgers_of_all(topics_of(source), source.access)


def run(arguments: argparse.Namespace, given: dict[str, str], spark: Any) -> Report:
    """The errors of the source, and Spark's of files."""
    # needs PySpark: here, so that the jobs without Spark begin quickly
    from .comparison import COLUMNS, Comparison, report
    from .sides import sides

    how = Comparison(tuple(arguments.by.split(",")), "" if arguments.scope == "none" else arguments.scope)
    names = (arguments.expected, arguments.found)
    frames = sides(spark, names, given, COLUMNS)
    if arguments.dry_run:
        counts = [(name, each.select("topic").count()) for name, each in zip(names, frames, strict=True)]
        facts = {"expected": names[0], "found": names[1], "known by": arguments.by, "order within": arguments.scope}
        return Report("reconcile", facts, [Table("what would be compared", ("side", "messages"), counts, bars="messages")])
    with SparkProgress(spark.sparkContext, Progress("reconcile")):
        return report(frames[0], frames[1], how, names)
