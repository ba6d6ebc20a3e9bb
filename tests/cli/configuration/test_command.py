"""`bin/pulsar config`: Apache's own files are judged key by key, mistakes are named all at once, nothing secret is shown."""

import json
from pathlib import Path

import pytest

from cli.__main__ import main
from cli.configuration.keys import apache_broker_keys
from cli.configuration.loading import CONF, known_keys
from cli.configuration.report import SETTINGS, explain, kind_of, report
from cli.configuration.verdicts import BROKER, Verdict


def write(directory: Path, text: str, name: str = "broker.conf") -> str:
    path = directory / name
    path.write_text(text)
    return str(path)


def test_a_file_with_every_key_of_apaches_at_its_default_is_taken() -> None:
    text = "".join(f"{key.name}={key.default}\n" for key in apache_broker_keys().values())
    found = report("broker.conf", text, [], BROKER)
    assert [error for error in found.errors if not error.startswith("managedLedgerDefault")] == []
    assert len(found.judged) == len(apache_broker_keys())
    assert {one.verdict for one in found.judged} == {Verdict.IN_EFFECT, Verdict.WITHOUT_EFFECT}


@pytest.mark.parametrize("name", ["broker.conf", "standalone.conf", "bookkeeper.conf"])
def test_the_shipped_files_are_taken_whole(name: str) -> None:
    found = report(name, (CONF / name).read_text(), [], kind_of(name))
    assert (found.errors, found.warnings) == ([], [])
    assert [one.key for one in found.judged if one.verdict is not Verdict.IN_EFFECT] == []


def test_check_names_everything_that_is_wrong_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "brokerServisePort=1\nstrictAuthMethod=true\nmaxMessageSize=huge\nnumIOThreads=9\ndefaultNumPartitions=-1\n"
    assert main(["config", "check", write(tmp_path, text)]) == 1
    out = capsys.readouterr().out
    assert "error: broker.conf line 1: unknown setting brokerServisePort; did you mean brokerServicePort?" in out
    assert "error: strictAuthMethod: a client is known by the method that it names" in out
    assert "error: maxMessageSize=huge: expected a whole number" in out
    assert "error: defaultNumPartitions: expected at least 1" in out
    assert "no effect: numIOThreads: there are no threads to size" in out
    assert "a broker would refuse this" in out


def test_check_tells_of_settings_that_contradict_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "maxMessageSize=6000000\nttlDurationDefaultInSeconds=60\n"
    text += "backlogQuotaDefaultLimitSecond=30\nexposeTopicLevelMetricsInPrometheus=false\n"
    text += "exposeConsumerLevelMetricsInPrometheus=true\n"
    assert main(["config", "check", "--json", write(tmp_path, text)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [warning.split(":")[0] for warning in told["warnings"]] == [
        "maxMessageSize=6000000, dispatcherMaxReadSizeBytes=5242880",
        "ttlDurationDefaultInSeconds=60, backlogQuotaDefaultLimitSecond=30",
        "exposeTopicLevelMetricsInPrometheus=false, exposeConsumerLevelMetricsInPrometheus=true",
    ]


def test_a_key_that_stands_twice_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", write(tmp_path, "webServicePort=1\nwebServicePort=01\nwebServicePort=2\n")]) == 0
    assert "warning: webServicePort stands in line 2 and in line 3: the later one counts" in capsys.readouterr().out


def test_diff_shows_what_differs_and_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "maxMessageSize=5242880\nkeepAliveIntervalSeconds=31\nmanagedLedgerPassword=canary\nnumIOThreads=9\n"
    assert main(["config", "diff", write(tmp_path, text)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "keepAliveIntervalSeconds=31 (default 30)",
        "managedLedgerPassword=***** (default empty)",
        "numIOThreads=9 (means nothing here, Apache's 4)",
    ]


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("defaultNumPartitions", "takes effect in: broker, standalone; default: 1"),
        ("defaultNumPartitions", "changes while brokers run"),
        ("journalMaxSizeMB", "takes effect in: standalone, bookie"),
        ("numIOThreads", "broker: no effect: there are no threads to size"),
        ("strictAuthMethod", "broker: refused when it is changed: a client is known by the method that it names"),
    ],
)
def test_explain_says_what_a_key_does(key: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", key]) == 0
    assert says in capsys.readouterr().out


def test_every_key_is_explained_by_a_sentence() -> None:
    """The effect of the key, or the reason why it has none; and our default and Apache's where it takes effect."""
    found = [explain(key) for key in dict.fromkeys(known_keys())]
    assert [one.key for one in found if not one.note and not one.reasons] == []
    assert [one.key for one in found if one.read_by and not (one.note and one.form)] == []
    assert len(found) > 900


def test_explain_says_value_unit_and_why_the_default_is_not_apaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "flushInterval"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "flushInterval",
        "Longest time before entries in memory are written to entry logs.",
        "value: a whole number, in milliseconds",
        "takes effect in: standalone, bookie; default: 60000",
        "Apache's default: 10000; Pulsar sets 60000 (ours: as Pulsar)",
    ]


def test_explain_says_of_a_dynamic_key_that_it_is_read_at_a_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "superUserRoles"]) == 0
    assert "read when a broker starts" in capsys.readouterr().out


def test_explain_knows_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "explain", "defaultNumPartition"]) == 1
    assert "did you mean defaultNumPartitions?" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", str(tmp_path / "none.conf")]) == 2
    assert "none.conf" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("client.conf", "pulsar-client and pulsar-perf read it"),
        ("zookeeper.conf", "ZooKeeper reads it"),
        ("websocket.conf", "a WebSocket proxy reads it, and there is none here"),
        ("functions_worker.yml", "there is none here"),
    ],
)
def test_a_file_of_another_program_of_apaches_is_not_judged_as_a_brokers(
    name: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "check", write(tmp_path, "webServiceUrl=http://localhost:8080/\n", name)]) == 0
    out = capsys.readouterr().out
    assert says in out
    assert "broker would" not in out


def test_every_process_has_settings() -> None:
    assert {"broker", "standalone", "bookie", "proxy"} == set(SETTINGS)
