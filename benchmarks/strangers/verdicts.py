"""Results of a stranger's tests, beside the tests that are known to fail: a table in Markdown, and whether anything is new.

Owns the comparison alone. Never in here: how a suite is fetched or run.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of one test: `outcome` is PASSED, FAILED or SKIPPED. A passed one with a note has a row in the table as well."""

    test: str
    outcome: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts of one suite, and why tests of it are known to fail."""

    suite: str
    verdicts: tuple[Verdict, ...]
    known: Mapping[str, str]

    def count(self, outcome: str) -> int:
        return sum(each.outcome == outcome for each in self.verdicts)

    @property
    def unexpected(self) -> list[Verdict]:
        """Failures that the list of known ones does not explain."""
        return [each for each in self.verdicts if each.outcome == FAILED and each.test not in self.known]

    @property
    def stale(self) -> list[str]:
        """Known failures that passed: the list only shrinks, so they are to be taken off it."""
        return [each.test for each in self.verdicts if each.outcome == PASSED and each.test in self.known]

    @property
    def is_as_expected(self) -> bool:
        return bool(self.verdicts) and not self.unexpected and not self.stale

    def table(self) -> str:
        lines = ["| suite | tests | passed | failed | of these known | skipped |", "| --- | --- | --- | --- | --- | --- |"]
        failed = self.count(FAILED)
        numbers = (len(self.verdicts), self.count(PASSED), failed, failed - len(self.unexpected), self.count(SKIPPED))
        lines += [
            f"| {self.suite} | {' | '.join(map(str, numbers))} |",
            "",
            "| test | outcome | reason |",
            "| --- | --- | --- |",
        ]
        lines += [_row(each, self.known) for each in self.verdicts if each.outcome != PASSED or each.note]
        lines += [f"| {test} | passed | take it off the list of known failures |" for test in self.stale]
        return "\n".join(lines)


def _row(verdict: Verdict, known: Mapping[str, str]) -> str:
    told = verdict.note if verdict.outcome != FAILED else known.get(verdict.test, f"NOT KNOWN: {verdict.note}")
    return f"| {verdict.test} | {verdict.outcome} | {' '.join(told.split()).replace('|', '/')[:300]} |"
