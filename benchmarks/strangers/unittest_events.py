"""Runs a file of Python's unittest and writes each test's outcome at once as a line of JSON, so that a crash loses no outcome.

    python unittest_events.py EVENTS MODULE [REGEX]

A program of its own: the tests of a stranger run in their own directory, without this project on their path. The first line
of the events lists all tests that the expression chooses.
"""

import json
import re
import signal
import sys
import traceback
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO


class WrittenResult(unittest.TestResult):
    """Results of unittest, written as they come. A part of a test (subTest) that failed is the test's failure."""

    def __init__(self, events: TextIO) -> None:
        super().__init__()
        self._events = events

    def write(self, event: str, **values: Any) -> None:
        self._events.write(json.dumps({"event": event, **values}) + "\n")
        self._events.flush()

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        super().startTest(test)
        print(f"--- {test.id()}", flush=True)
        self.write("began", test=test.id())

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        super().addSuccess(test)
        self.write("passed", test=test.id())

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - unittest's name
        super().addSkip(test, reason)
        self.write("skipped", test=test.id(), note=reason)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - unittest's name
        super().addFailure(test, err)
        self._failed(test, err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - unittest's name
        super().addError(test, err)
        self._failed(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802 - unittest's name
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(test, err)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - unittest's name
        super().addExpectedFailure(test, err)
        self.write("passed", test=test.id())

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        super().addUnexpectedSuccess(test)
        self.write("failed", test=test.id(), note="was expected to fail")

    def _failed(self, test: unittest.TestCase, err: Any) -> None:
        traceback.print_exception(err[1])
        self.write("failed", test=test.id(), note=repr(err[1]))


def tests_of(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests_of(each)
        else:
            yield each


def main(events: str, module: str, pattern: str = "") -> None:
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background jobs ignore it, and one of the tests is about it
    sys.path.insert(0, "")
    every = tests_of(unittest.defaultTestLoader.loadTestsFromName(module))
    chosen = [each for each in every if re.search(pattern, each.id())]
    with Path(events).open("w") as out:
        told = WrittenResult(out)
        told.write("listed", tests=[each.id() for each in chosen])
        unittest.TestSuite(chosen).run(told)


if __name__ == "__main__":
    main(*sys.argv[1:])
