"""Log records become lines of key=value."""

import io
import json
import logging
import re
from pathlib import Path

import pytest

from ports.log_limits import LINES_MAX, PERIOD_SECONDS, LineLimits
from ports.logs import VALUE_CHARACTERS_MAX, BadLogSetting, LimitedHandler, configure_logs, line, send_to_file


def test_a_line_quotes_what_needs_it() -> None:
    assert line("journal rolled", file="a.journal", why='say "no"\n', empty="") == (
        'what="journal rolled" file=a.journal why="say \\"no\\"\\n" empty=""'
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("a\x00b", '"a\\x00b"'),
        ("\x1b[2J", '"\\x1b[2J"'),
        ("a\u2028b", '"a\\u2028b"'),
        ("\udc80", '"\\udc80"'),
        ("a\r\nlevel=error", '"a\\r\\nlevel=error"'),
        ("größe-日本", "größe-日本"),
    ],
)
def test_unprintable_characters_are_escaped_since_a_terminal_would_obey_them(given: str, told: str) -> None:
    assert line("x", name=given) == f"what=x name={told}"


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


def test_a_line_in_json_is_an_object_whose_members_are_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_LOG_FORMAT", "json")
    stream = io.StringIO()
    configure_logs(stream=stream)
    logging.getLogger("bookie").info(line("journal rolled", file="a b", size=7, why=ValueError("x"), level="mine"))
    logging.getLogger("other").warning("%s: closed\nbecause", "t")
    try:
        raise ValueError("y")
    except ValueError:
        logging.getLogger("bookie").exception("failed")
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {"level": "info", "at": "bookie", "what": "journal rolled", "file": "a b", "size": 7, "why": "x"}
    assert second["what"] == "t: closed\nbecause"
    assert "ValueError: y" in third["traceback"]


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("nasty", ["a\nb", "\x1b[2J", "\x9b2J", "\x7f", "a\u2028b", "\udc80", "what=forged\nlevel=error"])
def test_each_log_record_is_one_line_without_control_characters(form: str, nasty: str) -> None:
    stream = io.StringIO()
    configure_logs(stream=stream, form=form)
    log = logging.getLogger("broker")
    log.info(line("x", name=nasty))
    log.info(nasty)
    log.info("%s", line("said", of=nasty))
    text = stream.getvalue()
    assert (text.count("\n"), text.replace("\n", "").isprintable()) == (3, True)
    if form == "json":
        told = [json.loads(each) for each in text.splitlines()]
        assert (told[0]["name"], told[1]["what"]) == (nasty, nasty)


def test_the_environment_chooses_the_level_as_apaches_scripts_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_LOG_LEVEL", "WARN")
    stream = io.StringIO()
    configure_logs(stream=stream)
    logging.getLogger("bookie").info("not this")
    logging.getLogger("bookie").warning("this")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize(("name", "value"), [("PULSAR_LOG_FORMAT", "xml"), ("PULSAR_LOG_LEVEL", "loud")])
def test_an_unknown_log_setting_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadLogSetting, match=f"{name}={value}: expected"):
        configure_logs(stream=io.StringIO())


def test_a_logger_with_a_file_of_its_own_writes_there_alone_and_follows_a_rotation(tmp_path: Path) -> None:
    stream, path = io.StringIO(), tmp_path / "audit.log"
    configure_logs(stream=stream)
    audit = logging.getLogger("audit-of-this-test")
    send_to_file(audit.name, str(path))
    audit.info(line("one"))
    path.rename(tmp_path / "audit.log.1")
    audit.info(line("two"))
    for handler in list(audit.handlers):
        audit.removeHandler(handler)
        handler.close()
    assert "what=one" in (tmp_path / "audit.log.1").read_text()
    assert path.read_text().count("\n") == 1
    assert stream.getvalue() == ""


def test_a_place_says_a_limited_number_of_lines_in_a_period_and_how_many_it_left_out() -> None:
    limits, here, there = LineLimits(lines_max=3, period_seconds=60.0), ("broker", "a.py", 1), ("broker", "a.py", 2)
    assert [limits.lets_through(here, 100.0 + each) for each in range(5)] == [True, True, True, False, False]
    assert limits.lets_through(there, 105.0), "another place has lines of its own"
    assert limits.ended(159.9) == []
    assert limits.ended(160.0) == [(here, 2)]
    assert limits.lets_through(here, 160.0)
    assert limits.ended(165.0) == [], "nothing was left out there"
    assert limits.ended(230.0) == []


def test_places_that_said_nothing_for_a_period_are_forgotten() -> None:
    limits = LineLimits(lines_max=3, period_seconds=60.0)
    for number in range(100):
        limits.lets_through(("broker", "a.py", number), float(number))
        limits.ended(float(number))
    assert len(limits._places) <= 61


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_flood_of_lines_does_not_fill_the_disk_and_says_how_many_were_left_out(form: str) -> None:
    now, stream = [1000.0], io.StringIO()
    configure_logs(stream=stream, form=form)
    [handler] = logging.getLogger().handlers
    assert isinstance(handler, LimitedHandler), "whatever a peer causes goes through it"
    handler._now = lambda: now[0]
    for number in range(10_000):
        logging.getLogger("broker").warning(line("connection ended", peer=number))
    assert stream.getvalue().count("\n") == LINES_MAX
    now[0] += PERIOD_SECONDS
    logging.getLogger("bookie").info("another line")
    *_, left_out, another = stream.getvalue().splitlines()
    assert "log lines were left out" in left_out
    assert str(10_000 - LINES_MAX) in left_out
    assert "test_logs.py" in left_out
    assert "another line" in another


def test_lines_that_were_asked_for_by_their_level_have_no_limit() -> None:
    stream = io.StringIO()
    configure_logs("debug", stream)
    for _ in range(2 * LINES_MAX):
        logging.getLogger("broker").debug("a detail")
    assert stream.getvalue().count("\n") == 2 * LINES_MAX


def test_a_name_of_megabytes_is_cut() -> None:
    text = line("x", name="n" * 1_000_000)
    assert len(text) < VALUE_CHARACTERS_MAX + 100
    assert "996000 more characters" in text
