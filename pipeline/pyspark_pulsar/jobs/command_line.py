"""The command line of the jobs: their shared options, and the output of reports and errors."""

import argparse
import functools
import json
import logging
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import VERSION, decoder
from ..errors import PipelineError, WrongOption
from . import audit
from .arguments import SuggestingParser, pairs
from .copies import replay
from .letters import dead_letters
from .on_spark import land, reconcile
from .on_spark.interruptible import Interruption
from .on_spark.spark_errors import check_java, reason
from .progress import Progress
from .report import Report, write

_FINE, _FOUND, _FAILED, _INTERRUPTED = 0, 1, 2, 130
_SPARKS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",  # each error is reported once, by us
}
_WITH_SPARK: tuple[tuple[str, str, Any], ...] = (
    ("reconcile", "what was lost, duplicated, reordered or altered between two sides", reconcile),
    ("land", "new messages of topics to Parquet, each batch at one stroke", land),
)
_WITHOUT_SPARK: tuple[tuple[str, str, Any], ...] = (
    ("audit", "backlog, lag and holes of all subscriptions", audit),
    ("replay", "a range of topics to another topic, each message once, at any speed", replay),
    ("dead-letters", "what is in dead letter topics and why, and back to where it came from", dead_letters),
)


def main(words: Sequence[str]) -> int:
    arguments = _parser().parse_args(words)
    try:
        _check_report(arguments.report)
        found: Report = arguments.run(arguments, _options(arguments))
        report = replace(found, is_dry_run=arguments.dry_run)
        print(json.dumps(report.as_json()["facts"], indent=2, default=str), flush=True)
        for sentence in report.findings:
            print(f"pulsar-pipeline {arguments.job}: {printable(sentence)}", file=sys.stderr)
        written = _written(report, arguments.report)
    except PipelineError as error:
        return _failed(arguments, str(error))
    except OSError as error:
        return _failed(arguments, f"{type(error).__name__}: {error}")
    except ImportError as error:
        return _failed(arguments, f"{error}: pip install 'interpulse-pipeline[spark]', where Spark does not bring it")
    except KeyboardInterrupt:
        _failed(arguments, "interrupted; the same words again go on where it was")
        return _INTERRUPTED
    except Exception as error:  # Spark's own, whose types are of many modules: told in its words, with ours inside
        if not type(error).__module__.startswith(("pyspark", "py4j")):
            raise
        return _failed(arguments, reason(str(error)))
    for place in written:
        print(place, file=sys.stderr)
    return _FINE if report.is_fine else _FOUND


def _failed(arguments: argparse.Namespace, why: str) -> int:
    """An error that does not say of which topics it is does so here: a token that is refused, say."""
    topics = getattr(arguments, "topics", "")
    of = f" of {topics}" if topics and not any(each.strip() in why for each in topics.split(",")) else ""
    print(printable(f"pulsar-pipeline {arguments.job}{of}: {why}"), file=sys.stderr)
    return _FAILED


def printable(text: str) -> str:
    """Text with its unprintable characters escaped: names come from others, and may not control the terminal."""
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)


def _written(report: Report, directory: str) -> list[Path]:
    """Paths of the written report. PipelineError: the job is done nevertheless, and its result printed before."""
    try:
        return write(report, Path(directory)) if directory else []
    except OSError as error:
        raise PipelineError(f"--report {directory}: the job is done, and its report cannot be written: {error}") from None


def _check_report(directory: str) -> None:
    """Checks the directory before the work, not after it; makes nothing yet. WrongOption."""
    if not directory:
        return
    there = Path(directory)
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise WrongOption(f"--report {directory}: {there} is no directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise WrongOption(f"--report {directory}: nothing can be written in {there}")


def _parser() -> argparse.ArgumentParser:
    parser = SuggestingParser(prog="pulsar-pipeline", description="Jobs on the data of a broker.")
    parser.add_argument("-v", "--version", action="version", version=_version())
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    for name, text, module in _WITH_SPARK:
        job = _job(jobs, name, text)
        job.add_argument("--master", default="", metavar="URL", help="where Spark runs: local[4], spark://host:port")
        job.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="one more setting of Spark's")
        module.add_arguments(job)
        job.set_defaults(run=functools.partial(_run_with_spark, module))
    for name, text, module in _WITHOUT_SPARK:
        job = _job(jobs, name, text)
        module.add_arguments(job)
        job.set_defaults(run=functools.partial(_run_without_spark, module))
    return parser


def _version() -> str:
    return f"pulsar-pipeline {VERSION}, Python {platform.python_version()}, decoder: {decoder()}"


def _job(jobs: Any, name: str, text: str) -> argparse.ArgumentParser:
    job: argparse.ArgumentParser = jobs.add_parser(name, help=text, description=text)
    job.add_argument("--service-url", default="pulsar://127.0.0.1:6650")
    job.add_argument("--admin-url", default="http://127.0.0.1:8080")
    job.add_argument("--auth-params", default="", help="token:..., file:///path or env:NAME")
    job.add_argument("--report", default="", metavar="DIRECTORY", help="write JOB.json and JOB.html there")
    job.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    job.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="one more option of the source")
    return job


def _options(arguments: argparse.Namespace) -> dict[str, str]:
    given = {"service.url": arguments.service_url, "admin.url": arguments.admin_url}
    if arguments.auth_params:
        given["pulsar.client.authParams"] = arguments.auth_params
    return given | pairs("--option", arguments.option)


def _session(arguments: argparse.Namespace) -> Any:
    """Session that `spark-submit` made, or a new one on this machine or on `--master`. NoJava."""
    check_java(os.environ)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"pulsar-pipeline {arguments.job}")
    if arguments.master:
        builder = builder.master(arguments.master)
    for name, value in {**_SPARKS, **pairs("--conf", arguments.conf)}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _run_with_spark(module: Any, arguments: argparse.Namespace, given: dict[str, str]) -> Report:
    module.check(arguments, given)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs every error of a batch with two stacks
    interruption = Interruption()

    def work() -> Report:
        spark = _session(arguments)
        interruption.check()
        report: Report = module.run(arguments, given, spark)
        return report

    return interruption.run(work, _cancel, _tell)


def _tell() -> None:
    print("\nending; once more Ctrl-C: at once", file=sys.stderr)


def _cancel() -> None:
    from pyspark import SparkContext

    if (context := SparkContext._active_spark_context) is not None:
        context.cancelAllJobs()


def _run_without_spark(module: Any, arguments: argparse.Namespace, given: dict[str, str]) -> Report:
    progress = Progress(arguments.job)
    try:
        report: Report = module.run(arguments, given, progress)
    finally:
        progress.end()
    return report
