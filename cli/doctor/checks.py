"""What a check is: an id, the facts it needs, a pure function from them to a verdict, a remedy. Data and bookkeeping only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

OK, WARN, FAIL, SKIPPED = "ok", "warn", "fail", "skipped"
LEVELS = (FAIL, WARN, OK, SKIPPED)


class Verdict(NamedTuple):
    """`evidence` says what was seen, with numbers."""

    level: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Check:
    """`needs` are names of facts, handed to `judge` in their order."""

    id: str
    needs: tuple[str, ...]
    judge: Callable[..., Verdict]
    remedy: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found, by name; and why something was not. A fact is never None."""

    found: Mapping[str, Any]
    missing: Mapping[str, str]


class Finding(NamedTuple):
    """One line of the report. `remedy` is empty when all is well."""

    id: str
    level: str
    evidence: str
    remedy: str


def judged(check: Check, facts: Facts) -> Finding:
    for name in check.needs:
        if name not in facts.found:
            return Finding(check.id, SKIPPED, facts.missing.get(name, f"{name} was not looked for"), "")
    verdict = check.judge(*(facts.found[name] for name in check.needs))
    return Finding(check.id, verdict.level, verdict.evidence, check.remedy if verdict.level in (WARN, FAIL) else "")


def by_limits(value: float, warn_at: float, fail_at: float, evidence: str) -> Verdict:
    """The more, the worse."""
    return Verdict(FAIL if value >= fail_at else WARN if value >= warn_at else OK, evidence)
