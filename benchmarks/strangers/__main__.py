#!/usr/bin/env python3
"""Software that nobody tuned to this broker, against it: `.venv/bin/python -m benchmarks.strangers SUITE`.

Each starts a standalone on loopback, fetches the stranger from its package registry, runs it within `--seconds`, and prints a
table in Markdown. The exit code is 1 when a test failed that is not known to fail, or one passed that is.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.strangers import go_suite, java_suite, node_suite, python_suite, reactive_suite, rust_suite, spring_application
from benchmarks.strangers.verdicts import Report


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.strangers", description=__doc__)
    options.add_argument("suite", choices=["go", "java", "node", "python", "reactive", "rust", "spring"])
    options.add_argument("--run", default="", metavar="REGEX", help="only the tests whose names match; default: all")
    options.add_argument("--seconds", type=float, default=1200.0, help="when the suite is ended; default: %(default)s")
    options.add_argument(
        "--directory", metavar="DIR", help="a new directory for data and logs, which stays; default: one that goes"
    )
    where = "node, python, reactive: where its tests are; default: Apache's repository"
    options.add_argument("--repository", metavar="URL", help=where)
    compiled = "node: an installed C++ client, against which its native part is compiled; default: the one that npm fetches"
    options.add_argument("--cpp-client", type=Path, metavar="PREFIX", help=compiled)
    options.add_argument("--against", nargs=2, metavar=("URL", "WEB_URL"), help="reactive, spring: a broker that runs already")
    options.add_argument("--messages", type=int, default=10_000, help="spring: sent in each timed check; default: %(default)s")
    given = options.parse_args()
    if given.directory:
        Path(given.directory).mkdir(parents=True)
        return _run(Path(given.directory), given)
    with tempfile.TemporaryDirectory(prefix="strangers-") as scratch:
        return _run(Path(scratch), given)


def _run(scratch: Path, given: argparse.Namespace) -> int:
    report = _report(scratch, given)
    print(report.table())
    return 0 if report.is_as_expected else 1


def _report(scratch: Path, given: argparse.Namespace) -> Report:
    against = given.against and tuple(given.against)
    match given.suite:
        case "go":
            return go_suite.run(scratch, given.run, given.seconds)
        case "java":
            return java_suite.run(scratch, given.run, given.seconds)
        case "node":
            repository = given.repository or node_suite.REPOSITORY
            return node_suite.run(scratch, repository, given.cpp_client, given.run, given.seconds)
        case "python":
            return python_suite.run(scratch, given.repository or python_suite.REPOSITORY, given.run, given.seconds)
        case "reactive":
            repository = given.repository or reactive_suite.REPOSITORY
            return reactive_suite.run(scratch, repository, against, given.run, given.seconds)
        case "rust":
            return rust_suite.run(scratch, given.run, given.seconds)
    return spring_application.run(scratch, against, given.messages, given.seconds)


if __name__ == "__main__":
    sys.exit(main())
