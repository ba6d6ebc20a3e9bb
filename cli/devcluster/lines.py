"""Output of a devcluster's members, made readable: bytes to lines, lines to what a person wants to see of them. Pure."""

import re
import shlex
from collections.abc import Iterator

LINE_BYTES_MAX = 64 * 1024
_LOG_LINE = re.compile(r"time=\S*T(\d\d:\d\d:\d\d)\S* level=(\w+) at=\S+ what=(.*)", re.DOTALL)
_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
_PLAIN = "\x1b[0m"


class Lines:
    """Cuts what is read at line ends. A line beyond LINE_BYTES_MAX comes in parts."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, chunk: bytes) -> Iterator[str]:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            whole, self._rest = [*whole, self._rest], b""
        for each in whole:
            yield each.decode(errors="replace")

    def end(self) -> Iterator[str]:
        """The last text, which has no line end."""
        if self._rest:
            yield self._rest.decode(errors="replace")
        self._rest = b""


def readable(text: str, *, coloured: bool) -> str:
    """A log line of ours: the time of day, the level where it is not plain information, the message. Others as they are."""
    match = _LOG_LINE.fullmatch(text)
    if match is None:
        return text
    clock, level, message = match.groups()
    if message.startswith('"'):
        sentence, _, fields = message[1:].partition('"')
        message = sentence + fields
    if level == "info":
        return f"{clock} {message}"
    shown = f"{clock} {level.upper()} {message}"
    return f"{_COLOURS[level]}{shown}{_PLAIN}" if coloured and level in _COLOURS else shown


def ready_fields(text: str) -> dict[str, str] | None:
    """Fields of the line with which a server says that it is ready; None for any other."""
    match = _LOG_LINE.fullmatch(text)
    if match is None or not match[3].startswith("ready "):
        return None
    return dict(word.split("=", 1) for word in shlex.split(match[3]) if "=" in word)


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns as wide as what is in them."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
