"""Log records become lines of key=value."""

import io
import logging
import re

import pytest

from ports.logs import configure_logs, line


@pytest.fixture(autouse=True)
def _restore_root() -> object:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in list(root.handlers):
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)


def test_a_line_quotes_what_needs_it() -> None:
    assert line("journal rolled", file="a.journal", why='say "no"\n', empty="") == (
        'what="journal rolled" file=a.journal why="say \\"no\\"\\n" empty=""'
    )


def test_records_become_key_value_lines_and_lower_levels_are_left_out() -> None:
    stream = io.StringIO()
    configure_logs("info", stream)
    configure_logs("info", stream)
    logging.getLogger("bookie").debug("not this")
    logging.getLogger("bookie").warning(line("read only", reason="disk full"))
    assert re.fullmatch(
        r'time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=warning at=bookie what="read only" reason="disk full"\n',
        stream.getvalue(),
    )


def test_a_traceback_stays_on_the_line() -> None:
    stream = io.StringIO()
    configure_logs("info", stream)
    try:
        raise ValueError("x")
    except ValueError:
        logging.getLogger("bookie").exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "ValueError: x" in stream.getvalue()
