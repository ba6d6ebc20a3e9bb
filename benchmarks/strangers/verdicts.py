"""Results of a stranger's tests, beside the tests that are known to fail: a table in Markdown, and whether anything is new.

Owns the comparison alone. Never in here: how a suite is fetched or run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of one test: `outcome` is PASSED, FAILED or SKIPPED. A passed one with a note has a row in the table as well."""

    test: str
    outcome: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts of one suite, why tests of it are known to fail, and why others fail on some machines or runs alone."""

    suite: str
    verdicts: tuple[Verdict, ...]
    known: Mapping[str, str]
    may_fail: Mapping[str, str] = field(default_factory=dict)

    @property
    def reasons(self) -> Mapping[str, str]:
        return {**self.may_fail, **self.known}

    def count(self, outcome: str) -> int:
        return sum(each.outcome == outcome for each in self.verdicts)

    @property
    def unexpected(self) -> list[Verdict]:
        """Failures without a reason."""
        return [each for each in self.verdicts if each.outcome == FAILED and each.test not in self.reasons]

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
        lines += [_row(each, self.reasons) for each in self.verdicts if each.outcome != PASSED or each.note]
        lines += [f"| {test} | passed | take it off the list of known failures |" for test in self.stale]
        return "\n".join(lines)


def with_those_that_did_not_run(verdicts: Iterable[Verdict], listed: Iterable[str]) -> tuple[Verdict, ...]:
    """Return the verdicts, and a failure for each listed test without one: none is left out silently."""
    had = tuple(verdicts)
    seen = {each.test for each in had}
    return (*had, *(Verdict(test, FAILED, "did not run") for test in listed if test not in seen))


def _row(verdict: Verdict, reasons: Mapping[str, str]) -> str:
    told = verdict.note if verdict.outcome != FAILED else reasons.get(verdict.test, f"NOT KNOWN: {verdict.note}")
    return f"| {verdict.test} | {verdict.outcome} | {' '.join(told.split()).replace('|', '/')[:300]} |"
