"""The command line of the jobs: what each takes, and how its report is told. Spark is begun only by a job that needs it."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import PipelineError
from . import audit
from .progress import Progress, SparkProgress
from .report import Report, write

_FINE, _FOUND, _FAILED = 0, 1, 2
_SPARKS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}


def main(words: Sequence[str]) -> int:
    arguments = _parser().parse_args(words)
    try:
        report: Report = arguments.run(arguments)
    except PipelineError as error:
        print(f"pulsar-pipeline {arguments.job}: {error}", file=sys.stderr)
        return _FAILED
    except Exception as error:  # Spark's own, whose types are of many modules: told in its words, with ours inside
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        print(f"pulsar-pipeline {arguments.job}: {_said(error)}", file=sys.stderr)
        return _FAILED
    print(json.dumps(report.as_json()["facts"], indent=2, default=str))
    if arguments.report:
        for place in write(report, Path(arguments.report)):
            print(place, file=sys.stderr)
    return _FINE if report.is_fine else _FOUND


def _said(error: Exception) -> str:
    """Of a traceback of Spark's the lines that name an error of ours, or its first line."""
    lines = str(error).splitlines() or [repr(error)]
    own = [each.partition("errors.")[2] for each in lines if "pyspark_pulsar" in each and "errors." in each]
    return own[-1] if own else lines[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pulsar-pipeline", description="Jobs on the data of a broker.")
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    _reconcile(_job(jobs, "reconcile", "what was lost, duplicated, reordered or altered between two sides", _run_reconcile))
    _land(_job(jobs, "land", "new messages of topics to Parquet, each batch at one stroke", _run_land))
    audit.add_arguments(_job(jobs, "audit", "backlog, lag and holes of all subscriptions", _run_audit))
    return parser


def _job(jobs: Any, name: str, text: str, run: Callable[[argparse.Namespace], Report]) -> argparse.ArgumentParser:
    job: argparse.ArgumentParser = jobs.add_parser(name, help=text, description=text)
    job.set_defaults(run=run)
    job.add_argument("--service-url", default="pulsar://127.0.0.1:6650")
    job.add_argument("--admin-url", default="http://127.0.0.1:8080")
    job.add_argument("--auth-params", default="", help="token:..., file:///path or env:NAME")
    job.add_argument("--report", default="", metavar="DIRECTORY", help="write JOB.json and JOB.html there")
    job.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    job.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="one more option of the source")
    return job


def _reconcile(job: argparse.ArgumentParser) -> None:
    job.add_argument("--expected", required=True, metavar="SIDE", help="topics with commas between, or parquet:PATH")
    job.add_argument("--found", required=True, metavar="SIDE")
    job.add_argument("--by", default="producer,sequence_id", help="what a message is known by (also key, value, property:NAME)")
    job.add_argument("--scope", default="producer", help="in what order counts: producer, key or none")


def _land(job: argparse.ArgumentParser) -> None:
    job.add_argument("--topics", required=True, help="with commas between")
    job.add_argument("--to", required=True, metavar="DIRECTORY", help="data/ and checkpoint/ are made in it")
    job.add_argument("--max-messages", type=int, default=1_000_000, help="of one batch, about")


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    given = {"service.url": arguments.service_url, "admin.url": arguments.admin_url}
    if arguments.auth_params:
        given["pulsar.client.authParams"] = arguments.auth_params
    for each in arguments.option:
        name, _, value = each.partition("=")
        given[name] = value
    return given


def _session(arguments: argparse.Namespace) -> Any:
    """That which `spark-submit` made, or one of this machine."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"pulsar-pipeline {arguments.job}")
    for name, value in _SPARKS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _run_reconcile(arguments: argparse.Namespace) -> Report:
    from . import reconcile
    from .sides import side

    how = reconcile.Comparison(tuple(arguments.by.split(",")), "" if arguments.scope == "none" else arguments.scope)
    names = (arguments.expected, arguments.found)
    spark = _session(arguments)
    sides = [side(spark, name, _options(arguments), reconcile.COLUMNS) for name in names]
    if arguments.dry_run:
        return Report("reconcile", {"expected": names[0], "found": names[1], "columns": ", ".join(reconcile.COLUMNS)})
    with SparkProgress(spark.sparkContext, Progress("reconcile")):
        return reconcile.report(sides[0], sides[1], how, names)


def _run_land(arguments: argparse.Namespace) -> Report:
    from . import land

    spark = _session(arguments)
    given = {**_options(arguments), "topics": arguments.topics, "maxMessagesPerTrigger": str(arguments.max_messages)}
    if arguments.dry_run:
        return land.plan(spark, given, arguments.to)
    with SparkProgress(spark.sparkContext, Progress("land")):
        return land.run(spark, given, arguments.to)


def _run_audit(arguments: argparse.Namespace) -> Report:
    return audit.run(arguments, _options(arguments), Progress("audit"))
