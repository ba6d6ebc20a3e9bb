"""Prometheus' text form, read strictly: families that stand together, each with HELP and TYPE before its samples.

Owns what is wrong with a text; a scraper is more patient than this.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

KINDS = ("gauge", "counter", "summary", "histogram")
_SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(\{(?:\w+="(?:[^"\\\n]|\\[\\n"])*",?)*\})? (NaN|[+-]?Inf|[-+0-9.eE]+)')
_OF_FAMILY = {"summary": ("", "_sum", "_count"), "histogram": ("_bucket", "_sum", "_count")}


@dataclass(slots=True)
class Family:
    """One metric: its name, type and sentence, and its samples by name and labels."""

    name: str
    kind: str
    help: str
    samples: dict[str, float] = field(default_factory=dict)


class NotPrometheus(AssertionError):
    """The text breaks a rule of the form; the message has the line."""


def families(text: str) -> dict[str, Family]:
    """Families by name. NotPrometheus."""
    found: dict[str, Family] = {}
    said = ""
    current: Family | None = None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            said = line.removeprefix("# HELP ")
        elif line.startswith("# TYPE "):
            current = _begun(line, said, found)
            said = ""
        else:
            _add(line, current)
    for family in found.values():
        _check_buckets(family)
    return found


def _begun(line: str, said: str, found: dict[str, Family]) -> Family:
    name, _, kind = line.removeprefix("# TYPE ").partition(" ")
    if kind not in KINDS or name in found:
        raise NotPrometheus(f"{line}: a type that there is not, or a family that does not stand together")
    named, _, sentence = said.partition(" ")
    if named != name or not sentence.strip().endswith("."):
        raise NotPrometheus(f"{line}: no HELP of {name} before it, but {said!r}")
    return found.setdefault(name, Family(name, kind, sentence))


def _add(line: str, family: Family | None) -> None:
    match = _SAMPLE.fullmatch(line)
    if match is None or family is None:
        raise NotPrometheus(f"{line}: no sample, or one without a family")
    ends = _OF_FAMILY.get(family.kind, ("",))
    if match[1] not in [family.name + end for end in ends]:
        raise NotPrometheus(f"{line}: stands among the samples of {family.name}")
    key = match[1] + (match[2] or "")
    if key in family.samples:
        raise NotPrometheus(f"{line}: twice")
    family.samples[key] = float(match[3])


def _check_buckets(family: Family) -> None:
    for series, counts in _buckets(family).items():
        if counts != sorted(counts):
            raise NotPrometheus(f"{family.name}{series}: buckets are not cumulative: {counts}")


def _buckets(family: Family) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for key, value in _bucket_samples(family):
        found.setdefault(re.sub(r',?le="[^"]*"', "", key), []).append(value)
    return found


def _bucket_samples(family: Family) -> Iterator[tuple[str, float]]:
    if family.kind == "histogram":
        yield from ((key, value) for key, value in family.samples.items() if key.startswith(f"{family.name}_bucket"))
