"""Files and --set become one checked configuration."""

from dataclasses import dataclass

import pytest

from cli.configuration.loading import CONF, known_keys, load_configuration
from ports.settings import BadSetting


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
