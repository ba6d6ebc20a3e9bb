"""Logs: the standard library's logging as key=value lines on stderr. Owns the set-up; decides nothing about levels of others.

A line is `time=... level=... at=<logger> <message>`; messages are made with `line("journal rolled", file=name)`.
"""

import logging
import sys
import time
from typing import TextIO


def line(what: str, **fields: object) -> str:
    """`what` as the sentence, then the fields as key=value, quoted where needed."""
    return " ".join([f"what={_quote(what)}", *(f"{key}={_quote(value)}" for key, value in fields.items())])


def _quote(value: object) -> str:
    text = str(value)
    if text and not any(character in text for character in ' "=\n\r\t'):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'


class KeyValueFormatter(logging.Formatter):
    """One line per record; a traceback follows in one quoted field."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        message = record.getMessage()
        if not message.startswith("what="):
            message = line(message)
        text = f"time={moment}.{int(record.msecs):03d}Z level={record.levelname.lower()} at={record.name} {message}"
        if record.exc_info:
            text += f" traceback={_quote(self.formatException(record.exc_info))}"
        return text


def configure_logs(level: str = "info", stream: TextIO | None = None) -> None:
    """Send everything at `level` or above to `stream` (stderr when None). Calling it again replaces the earlier set-up."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(KeyValueFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
