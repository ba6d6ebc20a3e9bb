"""A job's report is whole by itself, says what is in it as text, and its progress is one line."""

import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pipeline.pyspark_pulsar.jobs.command_line import main
from pipeline.pyspark_pulsar.jobs.progress import Progress, line
from pipeline.pyspark_pulsar.jobs.report import Report, Table, write
from pipeline.pyspark_pulsar.jobs.spark_errors import reason

_ALONE = {"meta", "rect"}


class Page(HTMLParser):
    """Tags that are open, attributes that name something, and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.bars: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {name for name, _ in attrs}
        if tag == "rect":
            self.bars.append(int(dict(attrs)["width"] or 0))
        if tag not in _ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _ALONE
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_needs_nothing_from_anywhere_and_names_are_text_in_it(tmp_path: Path) -> None:
    rows = [("<script>alert(1)</script>", 4), ("b & c", 2), (None, 0)]
    report = Report(
        "audit", {"admin": "http://h:1/?a=<b>"}, [Table("the <largest>", ("name", "many"), rows, bars="many")], False
    )
    places = write(report, tmp_path / "new" / "directory")
    page = Page()
    page.feed(places[1].read_text())
    assert page.open == []
    assert not page.names & {"src", "href", "action", "onload"}
    assert "<script>alert(1)</script>" in page.text
    assert page.bars[0] == 2 * page.bars[1] > page.bars[2] > 0
    told = json.loads(places[0].read_text())
    assert (told["fine"], told["tables"]["the <largest>"][1]) == (False, {"name": "b & c", "many": 2})


def test_progress_is_one_line_that_is_written_over_and_only_on_a_terminal() -> None:
    assert line("land", 1, 2).endswith("] 1/2")
    assert line("land", 1, 2).count("#") == line("land", 1, 2).count(".")
    assert line("land", 0, 0).endswith("] 0/0")
    terminal, file = io.StringIO(), io.StringIO()
    for stream, always in ((terminal, True), (file, False)):
        progress = Progress("land", stream, always)
        for done in (0, 1, 1, 2):
            progress.say(done, 2)
        progress.end()
    assert terminal.getvalue().count("\r") == 3
    assert terminal.getvalue().endswith("2/2\n")
    assert file.getvalue() == ""


def test_of_sparks_stacks_the_line_is_told_that_says_why() -> None:
    ours = "Traceback\n  x\npipeline.pyspark_pulsar.errors.DataLost: t: gone\n  at java.lang.Thread"
    assert reason(ours) == "DataLost: t: gone"
    full = "Job aborted\n at x\nCaused by: java.io.IOException: No space left on device\n at y"
    assert reason(full) == "java.io.IOException: No space left on device"
    thrown = "An error occurred while calling o35.mkdirs.\n: x.FileAlreadyExistsException: /a is not a directory\n\tat y\n"
    assert reason(thrown) == "x.FileAlreadyExistsException: /a is not a directory"
    assert reason("something else\n at z") == "something else"
    assert reason("") == "nobody says why"


def test_an_audit_takes_the_options_of_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    """How long a broker that is away is waited for, certificates; and one that is not known is refused."""
    audit = ["audit", "--admin-url", "http://127.0.0.1:9"]
    assert main([*audit, "--option", "pollTimeoutMs=200"]) == 2
    assert "asked again for 0.2 s" in capsys.readouterr().err
    assert main([*audit, "--max-backlog", "-1"]) == 2
    assert "--max-backlog -1: expected a whole number from 0 on" in capsys.readouterr().err
    assert main([*audit, "--option", "colour=red"]) == 2
    assert "option colour: not known" in capsys.readouterr().err
