"""Files and --set become one checked configuration."""

from dataclasses import dataclass

import pytest

from cli.__main__ import main
from cli.configuration.loading import CONF, environment_settings, known_keys, load_configuration
from ports.settings import BadSetting

ENVIRONMENT = {
    "PATH": "/bin",
    "bindAddress": "10.0.0.1",
    "journalMaxSizeMB": "64",
    "PULSAR_PREFIX_bindAddress": " 10.0.0.2 ",
    "PULSAR_PREFIX_managedLedgerDefaultAckQuorum": "2",
}


@dataclass(frozen=True)
class Ports:
    broker_service_port: int = 6650


def test_later_sources_win_and_set_wins_over_files() -> None:
    configuration = load_configuration([("a", "brokerServicePort=1"), ("b", "brokerServicePort=2")], ["brokerServicePort=0"])
    assert configuration.settings(Ports) == Ports(0)


def test_a_bad_key_in_a_file_is_refused_with_place_and_nearest_name() -> None:
    with pytest.raises(
        BadSetting, match=r"x\.conf line 2: unknown setting brokerServisePort; did you mean brokerServicePort\?"
    ):
        load_configuration([("x.conf", "# c\nbrokerServisePort=1")], [])


def test_a_bad_override_is_refused() -> None:
    with pytest.raises(BadSetting, match="expected KEY=VALUE"):
        load_configuration([], ["brokerServicePort"])


def test_the_shipped_configuration_has_only_known_keys() -> None:
    assert load_configuration([("standalone.conf", (CONF / "standalone.conf").read_text())], []).values["bindAddress"]


def test_apaches_key_names_are_all_known() -> None:
    assert {"brokerServicePort", "journalDirectories", "managedLedgerCacheSizeMB"} <= set(known_keys())


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("journalDirectory=/j", "journalDirectories", "/j"),
        ("zkServers=a:1,b:2", "metadataServiceUri", "zk+hierarchical://a:1;b:2/ledgers"),
        ("metadataServiceUri=\nzkServers=a:1\nzkLedgersRootPath=/p/l", "metadataServiceUri", "zk+hierarchical://a:1/p/l"),
        ("metadataServiceUri=zk+null://c\nzkServers=a:1", "metadataServiceUri", "zk+null://c"),
        ("zookeeperServers=a:1,b:2/root", "metadataStoreUrl", "zk:a:1,b:2/root"),
        ("metadataStoreUrl=zk:c\nzookeeperServers=a:1", "metadataStoreUrl", "zk:c"),
        ("configurationStoreServers=a:1\nglobalZookeeperServers=b:1", "configurationMetadataStoreUrl", "zk:a:1"),
        ("zooKeeperSessionTimeoutMillis=7", "metadataStoreSessionTimeoutMillis", "7"),
    ],
)
def test_an_older_name_counts_where_the_newer_one_is_not_set(text: str, key: str, value: str) -> None:
    assert load_configuration([("a.conf", text)], []).values[key] == value


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
