"""Settings in environment variables: what wins, what is refused."""

import pytest

from cli.__main__ import main
from cli.configuration.environment import environment_settings
from cli.configuration.loading import load_configuration
from ports.settings import BadSetting

ENVIRONMENT = {
    "PATH": "/bin",
    "bindAddress": "10.0.0.1",
    "journalMaxSizeMB": "64",
    "PULSAR_PREFIX_bindAddress": " 10.0.0.2 ",
    "PULSAR_PREFIX_managedLedgerDefaultAckQuorum": "2",
}


def test_prefixed_names_are_keys_and_plain_ones_only_where_asked_for() -> None:
    assert environment_settings(ENVIRONMENT, with_plain_names=False) == [
        "bindAddress=10.0.0.2",
        "managedLedgerDefaultAckQuorum=2",
    ]
    assert sorted(environment_settings(ENVIRONMENT, with_plain_names=True)) == [
        "bindAddress=10.0.0.2",
        "journalMaxSizeMB=64",
        "managedLedgerDefaultAckQuorum=2",
    ]


def test_the_environment_wins_over_a_file_and_the_command_line_over_both() -> None:
    given = environment_settings(ENVIRONMENT, with_plain_names=True)
    file = "bindAddress=0.0.0.0\njournalMaxSizeMB=1\nmanagedLedgerDefaultAckQuorum=1\n"
    values = load_configuration([("broker.conf", file)], [*given, "journalMaxSizeMB=65"]).values
    assert values == {"bindAddress": "10.0.0.2", "journalMaxSizeMB": "65", "managedLedgerDefaultAckQuorum": "2"}


def test_a_value_may_hold_what_it_likes() -> None:
    assert environment_settings({"PULSAR_PREFIX_clusterName": "a=b c"}, with_plain_names=False) == ["clusterName=a=b c"]


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    wrong = "PULSAR_PREFIX_managedLedgerDefaultAckQuorom: unknown setting .* did you mean managedLedgerDefaultAckQuorum"
    with pytest.raises(BadSetting, match=wrong):
        environment_settings({"PULSAR_PREFIX_managedLedgerDefaultAckQuorom": "2"}, with_plain_names=False)


def test_a_server_does_not_start_with_a_setting_that_nobody_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PULSAR_PREFIX_servicePrt", "6650")
    assert main(["proxy"]) == 1
    assert "interpulse proxy: PULSAR_PREFIX_servicePrt: unknown setting servicePrt; did you mean servicePort?" in (
        capsys.readouterr().err
    )
