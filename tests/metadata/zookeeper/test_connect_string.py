"""Connect strings of Apache's settings."""

import pytest

from metadata.store import MetadataError
from metadata.zookeeper.connect_string import ServiceUri, parse_service_uri, servers_of


def test_connect_strings_are_those_of_apaches_settings() -> None:
    assert servers_of("zk:h1:2181,h2/pulsar/") == "h1:2181,h2:2181/pulsar"
    assert servers_of("h1:2182") == "h1:2182"
    assert parse_service_uri("zk+hierarchical://h1:2181;h2:2181/ledgers") == ServiceUri(
        "h1:2181,h2:2181", "/ledgers", "hierarchical"
    )
    assert parse_service_uri("metadata-store:zk:h1:2181/my/ledgers") == ServiceUri("h1:2181/my", "/ledgers", "hierarchical")
    for wrong in ("zk:", "zk:h 1", "zk:h:99999", "h1:2181,,h2"):
        with pytest.raises(MetadataError, match="expected zk:"):
            servers_of(wrong)
    with pytest.raises(MetadataError, match="metadataServiceUri"):
        parse_service_uri("etcd:h1")
