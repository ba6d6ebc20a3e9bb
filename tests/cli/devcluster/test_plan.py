"""Decisions of a devcluster without a process: its members, the lines that it shows, its refusals."""

from pathlib import Path

import pytest

from cli.__main__ import main
from cli.devcluster.lines import LINE_BYTES_MAX, Lines, readable, ready_fields
from cli.devcluster.plan import cluster_plan, quorums


@pytest.mark.parametrize(("bookies", "quorum"), [(1, (1, 1, 1)), (2, (2, 2, 2)), (3, (3, 3, 2)), (7, (3, 3, 2))])
def test_quorums_fit_the_bookies(bookies: int, quorum: tuple[int, int, int]) -> None:
    assert quorums(bookies) == quorum


def test_every_member_has_an_address_of_its_own(tmp_path: Path) -> None:
    plan = cluster_plan(tmp_path, 3, 4, "127.3.2", has_proxy=True)
    members = [member for stage in plan.stages for member in stage]
    assert [member.name for member in members if not member.ends] == [
        "zookeeper",
        *(f"bookie-{number}" for number in range(1, 5)),
        *(f"broker-{number}" for number in range(1, 4)),
        "proxy",
    ]
    hosts = [member.urls[0].removeprefix("pulsar://").removeprefix("zk:").split(":")[0] for member in members if member.urls]
    assert len(set(hosts)) == len(hosts) == 9
    assert plan.service_url == "pulsar://127.3.2.1:6650,127.3.2.2:6650,127.3.2.3:6650"
    for broker in plan.stages[3]:
        assert "managedLedgerDefaultAckQuorum=2" in broker.command


def test_lines_are_cut_wherever_the_reads_were() -> None:
    lines = Lines()
    assert list(lines.take(b"one\ntw")) == ["one"]
    assert list(lines.take(b"o\n\nthree")) == ["two", ""]
    assert list(lines.end()) == ["three"]
    assert [len(text) for text in lines.take(bytes(LINE_BYTES_MAX + 1))] == [LINE_BYTES_MAX + 1]
    assert list(lines.end()) == []


LOGGED = 'time=2026-11-21T19:20:17.123Z level={} at=interpulse what={} peer="a b" pid=7'


def test_a_readable_log_line_shows_the_time_and_the_message() -> None:
    assert readable(LOGGED.format("info", "ready"), coloured=True) == '19:20:17 ready peer="a b" pid=7'
    assert readable(LOGGED.format("info", '"ledger rolled"'), coloured=True) == '19:20:17 ledger rolled peer="a b" pid=7'
    assert readable(LOGGED.format("error", "lost"), coloured=False) == '19:20:17 ERROR lost peer="a b" pid=7'
    assert readable("Exception in thread main", coloured=True) == "Exception in thread main"


def test_the_ready_line_of_a_server_is_known() -> None:
    assert ready_fields(LOGGED.format("info", "ready")) == {"peer": "a b", "pid": "7"}
    assert ready_fields(LOGGED.format("info", "reading")) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--brokers", "0"], "--brokers 0: expected 1 to 90"),
        (["--bookies", "91"], "--bookies 91: expected 1 to 90"),
        (["--network", "10.0.0"], "--network 10.0.0: expected the first three numbers of loopback addresses"),
        (["--bookies", "1"], "has the data of 2 bookies: --bookies 2, or --data DIR for a new cluster"),
        (["--kill", "broker-1"], "no devcluster runs on"),
    ],
)
def test_an_impossible_devcluster_is_refused_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bookie-2").mkdir()
    assert main(["devcluster", "--data", str(tmp_path), *words]) == 1
    assert says in capsys.readouterr().err
