"""Check, Verdict, Finding: an id, the facts that a check needs, a pure function from them to a verdict, and a remedy.

A verdict may bring a remedy of its own, which names the thing; else the check's holds. Data and bookkeeping only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

OK, WARN, FAIL, SKIPPED = "ok", "warn", "fail", "skipped"
LEVELS = (FAIL, WARN, OK, SKIPPED)
NAMED_MAX = 5
"""Things that one finding names; the finding also says how many there are."""


class Verdict(NamedTuple):
    """`evidence` says what was seen, with numbers; `remedy` what to do about just that, and is empty where the check's does."""

    level: str
    evidence: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """`needs` are names of facts, handed to `judge` in their order. `fault` is for the table in the documentation."""

    id: str
    needs: tuple[str, ...]
    judge: Callable[..., Verdict]
    fault: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts by name, and the reasons why others are missing. A fact is never None."""

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
    is_wrong = verdict.level in (WARN, FAIL)
    return Finding(check.id, verdict.level, verdict.evidence, (verdict.remedy or check.remedy) if is_wrong else "")


def by_limits(value: float, warn_at: float, fail_at: float, evidence: str) -> Verdict:
    """The more, the worse."""
    return Verdict(FAIL if value >= fail_at else WARN if value >= warn_at else OK, evidence)


def named(things: Sequence[str]) -> str:
    """The first of them, for evidence and remedies."""
    more = f" and {len(things) - NAMED_MAX} more" if len(things) > NAMED_MAX else ""
    return ", ".join(things[:NAMED_MAX]) + more
