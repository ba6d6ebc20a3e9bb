"""A job's report is complete by itself, has its facts as text, and its progress is one line."""

import io
import json
import os
import pty
import re
import resource
import signal
import termios
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pipeline.pyspark_pulsar.errors import PipelineError
from pipeline.pyspark_pulsar.jobs import audit
from pipeline.pyspark_pulsar.jobs.command_line import main
from pipeline.pyspark_pulsar.jobs.on_spark.interruptible import Interruption
from pipeline.pyspark_pulsar.jobs.on_spark.spark_errors import reason
from pipeline.pyspark_pulsar.jobs.progress import Progress, line
from pipeline.pyspark_pulsar.jobs.report import Report, Table, write

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
    assert "audit: something was found" in page.text
    told = json.loads(places[0].read_text())
    assert {name: told[name] for name in ("version", "job", "dry run")} == {"version": 1, "job": "audit", "dry run": False}
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


def test_a_page_of_very_many_rows_or_none_and_of_long_names_can_be_looked_at(tmp_path: Path) -> None:
    """The largest are drawn, and all of them are in the table; the end of a name says which partition it is."""
    names = [f"persistent://tenant/namespace/{'long-' * 30}topic-partition-{number}" for number in range(1000)]
    many = Table("many", ("topic", "entries"), [(name, number) for number, name in enumerate(names)], bars="entries")
    few = Table("few", ("topic", "entries"), [("\u4e16" * 60, 3), ("a\ud800\x00b", 0)], bars="entries")
    none = Table("nothing", ("topic", "entries"), [], bars="entries")
    places = write(Report("replay", {}, [many, few, none], is_dry_run=True), tmp_path)
    text = places[1].read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert len(page.bars) == 50 + 2
    assert page.bars[:50] == sorted(page.bars[:50])  # in the order of the table
    assert "The 50 largest of 1000." in page.text
    assert "a dry run: nothing was done" in page.text
    assert all(f">{name}</td>" in text for name in names)
    drawn = re.findall(r"</title>(.*?)</text>", text)
    assert [each for each in drawn if len(each) > 44] == []
    assert drawn[0].startswith("persistent://")
    assert drawn[49].endswith("topic-partition-999")
    assert drawn[50].count("\u4e16") == 21
    assert text.count(">none<") == 2  # no facts, and no rows


def test_a_report_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    """The disk is full at its end, say: here a file may not grow so far."""
    before = write(Report("audit", {"topics": 1}), tmp_path)[0].read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(Report("audit", {"topics": "x" * 5000}), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (tmp_path / "audit.json").read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["audit.html", "audit.json"]


@pytest.mark.parametrize(
    ("columns", "expected"), [(80, "land [#####"), (24, "land [#"), (20, "land 50/1000"), (8, "50/1000"), (6, "")]
)
def test_progress_is_shorter_than_the_line_of_its_terminal(columns: int, expected: str) -> None:
    """One that is as long goes on with the next line, and is not written over."""
    text = line("land", 50, 1000, columns)
    assert text.startswith(expected[:6])
    assert len(text) < columns
    terminal = io.StringIO()
    progress = Progress("land", terminal, True, lambda stream: columns)
    for done in (1, 50, 1000):
        progress.say(done, 1000)
    assert max(map(len, terminal.getvalue().split("\r"))) < columns


@pytest.mark.parametrize(
    ("term", "columns", "expected"), [("xterm", 40, "\rland ["), ("xterm", 12, "\rland 1/2"), ("dumb", 80, "")]
)
def test_progress_asks_its_terminal(monkeypatch: pytest.MonkeyPatch, term: str, columns: int, expected: str) -> None:
    """A dumb one does not go back to the beginning of a line."""
    monkeypatch.setenv("TERM", term)
    ours, theirs = pty.openpty()
    try:
        termios.tcsetwinsize(theirs, (24, columns))
        with open(theirs, "w", closefd=False) as terminal:
            progress = Progress("land", terminal)
            progress.say(1, 2)
            progress.end()
        os.write(theirs, b"<end>\n")
        assert os.read(ours, 1000).decode().startswith(expected or "<end>")
    finally:
        os.close(ours)
        os.close(theirs)


def test_the_reason_is_picked_out_of_a_spark_stack_trace() -> None:
    ours = "Traceback\n  x\npipeline.pyspark_pulsar.errors.DataLost: t: gone\n  at java.lang.Thread"
    assert reason(ours) == "DataLost: t: gone"
    full = "Job aborted\n at x\nCaused by: java.io.IOException: No space left on device\n at y"
    assert reason(full) == "java.io.IOException: No space left on device"
    thrown = "An error occurred while calling o35.mkdirs.\n: x.FileAlreadyExistsException: /a is not a directory\n\tat y\n"
    assert reason(thrown) == "x.FileAlreadyExistsException: /a is not a directory"
    assert reason("something else\n at z") == "something else"
    assert reason("") == "nobody says why"


def test_an_audit_takes_the_options_of_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    """Options for the wait for an absent broker and for certificates are taken; an unknown one is refused."""
    audit = ["audit", "--admin-url", "http://127.0.0.1:9"]
    assert main([*audit, "--option", "pollTimeoutMs=200"]) == 2
    assert "asked again for 0.2 s" in capsys.readouterr().err
    assert main([*audit, "--max-backlog", "-1"]) == 2
    assert "--max-backlog -1: expected a whole number from 0 on" in capsys.readouterr().err
    assert main([*audit, "--namespace", "public"]) == 2
    assert "--namespace public: expected tenant/namespace" in capsys.readouterr().err
    assert main([*audit, "--option", "colour=red"]) == 2
    assert "option colour: not known" in capsys.readouterr().err


def test_ctrl_c_cancels_what_runs_on_spark_and_waits_for_its_end() -> None:
    """The signal comes to the main thread, which is in no call of the JVM; cancelled work takes back what it began."""
    cancelled, ended, said = threading.Event(), threading.Event(), []
    interruption = Interruption()

    def work() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert cancelled.wait(60)
        ended.set()
        raise OSError("cancelled")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever came before in this process
    try:
        with pytest.raises(KeyboardInterrupt):
            interruption.run(work, cancelled.set, lambda: said.append("ending"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.is_set()
    assert said == ["ending"]
    with pytest.raises(KeyboardInterrupt):
        interruption.check()
    assert Interruption().run(lambda: 5, cancelled.set, lambda: None) == 5


def test_an_interrupted_job_says_so_in_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*words: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(audit, "run", interrupted)
    assert main(["audit", "--admin-url", "http://127.0.0.1:9"]) == 130
    assert capsys.readouterr().err.startswith("pulsar-pipeline audit: interrupted;")


def test_names_that_others_made_up_do_not_write_to_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*words: object) -> Report:
        raise PipelineError("topic \x1b]0;evil\x07\x9b2J: no")

    monkeypatch.setattr(audit, "run", refused)
    assert main(["audit"]) == 2
    assert capsys.readouterr().err == "pulsar-pipeline audit: topic \\x1b]0;evil\\x07\\x9b2J: no\n"
