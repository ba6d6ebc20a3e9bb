r"""Java properties files (broker.conf, bookkeeper.conf, standalone.conf) to key, value and line number. Pure.

As java.util.Properties reads them: `key=value`, `key: value` or `key value`, `#` and `!` comments, a backslash at the end of a
line that goes on, and `\t`, `\n`, `\r`, `\f`, `\u0041` and `\=` within one.
"""

import re
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
        if _goes_on(line):
            pending = line[:-1]
            continue
        if line and not line.startswith(("#", "!")):
            yield start, line
        pending, start = "", 0
    if pending:
        yield start, pending


def _goes_on(line: str) -> bool:
    """An even number of backslashes at the end are characters of the value."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1 and not line.startswith(("#", "!"))


_PARTS = re.compile(r"((?:[^\\=:\s]|\\.)+)(?:\s*[=:]\s*|\s+)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_WHITE = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _parse_line(line: str, number: int) -> Property:
    found = _PARTS.fullmatch(line)
    if found is None:
        raise MalformedProperties(f"line {number}: expected key=value, found {line!r}")
    return Property(_unescaped(found[1]), _unescaped(found[2]).strip(), number)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_meaning, text) if "\\" in text else text


def _meaning(escape: re.Match[str]) -> str:
    said = escape[1]
    return chr(int(said[1:], 16)) if len(said) == 5 else _WHITE.get(said, said)
