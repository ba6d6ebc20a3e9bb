"""The report: a table for people, JSON for programs, an exit code for scripts. Pure."""

import json
from collections.abc import Sequence

from cli.doctor.check import FAIL, LEVELS, OK, WARN, Check, Finding

_MARKS = {OK: "ok", WARN: "WARN", FAIL: "FAIL"}


def as_table(findings: Sequence[Finding]) -> str:
    """The worst first; a remedy below what it is for."""
    width = max((len(each.id) for each in findings), default=0)
    lines = []
    for each in sorted(findings, key=lambda finding: LEVELS.index(finding.level)):
        lines.append(f"{_MARKS.get(each.level, each.level):<8}{each.id:<{width}}  {each.evidence}")
        if each.remedy:
            lines.append(f"{'':<8}{'':<{width}}  -> {each.remedy}")
    return "\n".join([*lines, summary(findings)])


def summary(findings: Sequence[Finding]) -> str:
    counts = {level: sum(each.level == level for each in findings) for level in LEVELS}
    return f"{len(findings)} checks: " + ", ".join(f"{count} {level}" for level, count in counts.items())


def as_json(findings: Sequence[Finding]) -> str:
    return json.dumps({"checks": [each._asdict() for each in findings], "ok": exit_code(findings) == 0}, indent=2)


def exit_code(findings: Sequence[Finding]) -> int:
    """1 when a check failed; warnings do not count."""
    return int(any(each.level == FAIL for each in findings))


def checks_table(checks: Sequence[Check]) -> str:
    """All checks in Markdown, for the documentation."""
    rows = [f"| `{check.id}` | {check.fault} | {check.remedy} |" for check in checks]
    return "\n".join(["| check | fault | remedy |", "| --- | --- | --- |", *rows])
