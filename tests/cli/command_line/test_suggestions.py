"""A command or option that is not known is answered with the one that it is near to, by every program."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from cli.__main__ import main as pulsar
from cli.admin.tool import main as admin
from cli.bookkeeper_shell.__main__ import main as bookkeeper
from cli.client.__main__ import main as client
from cli.command_line.suggestions import did_you_mean
from cli.perf.__main__ import main as perf
from pipeline.pyspark_pulsar.jobs.command_line import main as pipeline

PROGRAMS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "pulsar": pulsar,
    "admin": admin,
    "bookkeeper": bookkeeper,
    "client": client,
    "perf": perf,
    "pipeline": pipeline,
}


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("pulsar standalne", "standalone"),
        ("pulsar standalone --conifg x", "--config"),
        ("pulsar config chek x", "check"),
        ("pulsar config check x --jsn", "--json"),
        ("admin tenant list", "tenants"),
        ("admin topics statz", "stats"),
        ("admin topics stats t --get-precise-backlg", "--get-precise-backlog"),
        ("admin --admin-ulr http://a tenants list", "--admin-url"),
        ("client prodce t", "produce"),
        ("client consume t -s s --print-metdata", "--print-metadata"),
        ("perf cosnume t", "consume"),
        ("perf produce t --num-message 5", "--num-messages"),
        ("bookkeeper shel", "shell"),
        ("bookkeeper shell listbookie", "listbookies"),
        ("bookkeeper shell listbookies -writeable", ""),
        ("bookkeeper shell readlegder -l 1", "readledger"),
        ("bookkeeper shell readledger -legderid 1", "-ledgerid"),
        ("pipeline lnd", "land"),
        ("pipeline audit --tpics x", "--topics"),
    ],
)
def test_a_wrong_word_is_answered_with_the_near_one(line: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = line.split()
    try:
        code = PROGRAMS[program](words)
    except SystemExit as ended:  # argparse ends so
        code = int(ended.code or 0)
    assert code != 0
    told = capsys.readouterr().err
    assert f"Did you mean '{near}'" in told if near else "Unrecognized option: -writeable" in told


def test_nothing_is_suggested_where_no_name_is_near() -> None:
    assert did_you_mean("xyzzy", ["produce", "consume"]) == ""
    assert did_you_mean("x", []) == ""


def test_the_beginning_of_a_word_is_near_to_it() -> None:
    assert did_you_mean("part", ["partitioned-stats", "other"]) == " Did you mean 'partitioned-stats'?"
