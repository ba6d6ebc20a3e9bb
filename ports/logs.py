"""Logs: the standard library's logging, one line an event, on stderr: key=value, or JSON where it is asked for.

Owns the set-up and the two forms; decides nothing about levels of others. A line is `time=... level=... at=<logger> <message>`;
messages are made with `line("journal rolled", file=name)`, whose fields are members of their own in JSON. The environment
chooses for every process alike: PULSAR_LOG_FORMAT=json (else text), PULSAR_LOG_LEVEL=debug, info (default), warn or error, as
Apache's scripts call it. One place in the code says a limited number of lines in a while (`log_limits`), and the value of a
field is cut at VALUE_CHARACTERS_MAX.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from .log_limits import PERIOD_SECONDS, LineLimits

FORMATS = ("text", "json")
VALUE_CHARACTERS_MAX = 4000
"""Length of one field in a line: clients choose names, up to a frame of megabytes. A traceback is not cut."""
_LEVELS = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "warning": "WARNING", "error": "ERROR"}


class BadLogSetting(SystemExit):
    """A format or level that there is not; the message names the variable and what it may be. It ends a process, told on
    stderr: there is no log yet to say it in."""


class LogLine(str):
    """The text of a message, and what it is made of."""

    __slots__ = ("fields", "what")
    what: str
    fields: Mapping[str, object]


def line(what: str, **fields: object) -> LogLine:
    """`what` as the sentence, then the fields as key=value, quoted where needed."""
    text = LogLine(" ".join([f"what={_quote(_cut(what))}", *(f"{key}={_quote(_cut(value))}" for key, value in fields.items())]))
    text.what, text.fields = what, fields
    return text


def _cut(value: object) -> str:
    text = str(value)
    more = len(text) - VALUE_CHARACTERS_MAX
    return text if more <= 0 else f"{text[:VALUE_CHARACTERS_MAX]}... ({more} more characters)"


def _quote(value: object) -> str:
    """Quote a text; unprintable characters are escaped, since clients choose names and a terminal obeys some characters."""
    text = str(value)
    if text and text.isprintable() and not any(character in text for character in ' "='):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        escaped = "".join([each if each.isprintable() else each.encode("unicode_escape").decode() for each in escaped])
    return f'"{escaped}"'


def _moment(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


class KeyValueFormatter(logging.Formatter):
    """One line per record; the number of the process, where it is one of several, and a traceback follow as fields."""

    def __init__(self, process: str = "") -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        message = record.msg if isinstance(record.msg, LogLine) and not record.args else line(record.getMessage())
        text = f"time={_moment(record)} level={record.levelname.lower()} at={record.name} {message}"
        if self._process:
            text += f" process={self._process}"
        if record.exc_info:
            text += f" traceback={_quote(self.formatException(record.exc_info))}"
        return text


class JsonFormatter(logging.Formatter):
    """One object per record and line: time, level, at, what, the message's fields, traceback. Numbers stay numbers; what
    cannot be printed is escaped, as in the other form."""

    def __init__(self, process: str = "") -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {"time": _moment(record), "level": record.levelname.lower(), "at": record.name}
        if isinstance(record.msg, LogLine) and not record.args:
            event["what"] = _cut(record.msg.what)
            event |= {key: _plain(value) for key, value in record.msg.fields.items() if key not in event}
        else:
            event["what"] = _cut(record.getMessage())
        if self._process:
            event["process"] = self._process
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(event, ensure_ascii=False)
        return text if text.isprintable() else json.dumps(event).replace("\x7f", "\\u007f")


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float) else _cut(value)


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes to a stream what the limits let through, and says what they left out."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._limits, self._now = LineLimits(), now

    def emit(self, record: logging.LogRecord) -> None:
        """Called with the handler's lock."""
        now = self._now()
        for place, count in self._limits.ended(now):
            super().emit(_left_out(place, count))
        if record.levelno < logging.INFO or self._limits.lets_through((record.name, record.pathname, record.lineno), now):
            super().emit(record)


def _left_out(place: tuple[str, str, int], count: int) -> logging.LogRecord:
    name, path, number = place
    said = line("log lines were left out", count=count, seconds=round(PERIOD_SECONDS), of=f"{os.path.basename(path)}:{number}")
    return logging.LogRecord(name, logging.WARNING, path, number, said, (), None)


def configure_logs(level: str | None = None, stream: TextIO | None = None, form: str | None = None, process: str = "") -> None:
    """Send everything at `level` or above to `stream` (stderr when None). `level` or `form` None: as the environment says.
    `process`: its number, where several write to one log.

    Calling it again replaces the earlier set-up. BadLogSetting.
    """
    level = (level or os.environ.get("PULSAR_LOG_LEVEL") or "info").lower()
    if level not in _LEVELS:
        raise BadLogSetting(f"PULSAR_LOG_LEVEL={level}: expected one of {', '.join(_LEVELS)}")
    handler = LimitedHandler(stream or sys.stderr)
    handler.setFormatter(_formatter(form, process))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(_LEVELS[level])


def send_to_file(logger: str, path: str, form: str | None = None) -> None:
    """Send this logger's lines to the end of a file alone; a file that is moved away is made anew. OSError."""
    from logging.handlers import WatchedFileHandler

    found = logging.getLogger(logger)
    for old in list(found.handlers):
        found.removeHandler(old)
        old.close()
    handler = WatchedFileHandler(path, encoding="utf-8")
    handler.setFormatter(_formatter(form))
    found.addHandler(handler)
    found.propagate = False


def _formatter(form: str | None, process: str = "") -> logging.Formatter:
    form = (form or os.environ.get("PULSAR_LOG_FORMAT") or "text").lower()
    if form not in FORMATS:
        raise BadLogSetting(f"PULSAR_LOG_FORMAT={form}: expected {' or '.join(FORMATS)}")
    return JsonFormatter(process) if form == "json" else KeyValueFormatter(process)
