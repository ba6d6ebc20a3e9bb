"""Java properties files (broker.conf, bookkeeper.conf, standalone.conf) to key, value and line number. Pure.

Understands what those files use: `key=value` (also `key: value`), `#` and `!` comments, a backslash at the end of a line.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Property:
    """One key with its value as text, and the line (from 1) where it starts."""

    key: str
    value: str
    line: int


class MalformedProperties(Exception):
    """A line that is neither a comment nor `key=value`."""


def parse_properties(text: str) -> list[Property]:
    """All properties in order; a key may come twice, the later one counts."""
    return [_parse_line(line, number) for number, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip() if not pending else pending + raw.strip()
        start = start or number
        if line.endswith("\\") and not line.startswith(("#", "!")):
            pending = line[:-1]
            continue
        if line and not line.startswith(("#", "!")):
            yield start, line
        pending, start = "", 0
    if pending:
        yield start, pending


def _parse_line(line: str, number: int) -> Property:
    cut = min((index for index in (line.find("="), line.find(":")) if index > 0), default=-1)
    if cut < 0:
        raise MalformedProperties(f"line {number}: expected key=value, found {line!r}")
    return Property(line[:cut].strip(), line[cut + 1 :].strip(), number)
