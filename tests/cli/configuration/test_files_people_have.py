"""Files that people bring: every one that Apache's artifacts carry, and those of its clients' repositories, is taken whole.

`apache/files.txt` holds their keys and values. For a class (`class-4.0.8`) these are the defaults of its fields.
"""

import functools
from collections.abc import Mapping
from pathlib import Path

import pytest

from broker.security.own_credentials import own_certificate
from cli.configuration.loading import load_configuration
from cli.configuration.report import report
from cli.configuration.verdicts import BROKER, PROXY, STANDALONE, Verdict

FILES = Path(__file__).parents[1] / "apache" / "files.txt"
CLUSTER_QUORUMS = "managedLedgerDefaultEnsembleSize="


@functools.cache
def files() -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Keys and values, by kind of process and name. A row begins with the letters of the files that have it."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    names: dict[str, tuple[str, str]] = {}
    for row in FILES.read_text().splitlines():
        if row.startswith("["):
            kind, *letters = row.strip("[]").split()
            names = {letter: (kind, name) for letter, _, name in (each.partition("=") for each in letters)}
            found.update({each: {} for each in names.values()})
        elif row and not row.startswith("#"):
            letters_of, _, setting = row.partition(" ")
            key, _, value = setting.partition("=")
            for letter in letters_of:
                found[names[letter]][key] = value
    return found


def text_of(values: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())


def test_the_table_holds_the_files_of_all_kinds() -> None:
    assert {kind for kind, _ in files()} == {"broker", "standalone", "bookie", "proxy"}
    assert {"4.0.8", "2.10.1", "2.8.2", "class-5.0.0-M1", "class-4.2.4"} <= {name for kind, name in files() if kind == "broker"}
    assert min(len(values) for values in files().values()) > 20


@pytest.mark.parametrize(("kind", "name"), list(files()))
def test_a_file_that_apache_ships_or_its_clients_test_with_is_taken_whole(kind: str, name: str) -> None:
    found = report(f"{name}.conf", text_of(files()[kind, name]), [], kind)
    assert found.errors == []
    assert [one.key for one in found.judged if one.verdict is Verdict.WITHOUT_EFFECT and not one.reason] == []


@pytest.mark.parametrize("name", [name for kind, name in files() if kind == "broker"])
def test_a_broker_conf_given_to_a_standalone_is_refused_for_its_quorums_alone(name: str) -> None:
    found = report("broker.conf", text_of(files()["broker", name]), [], STANDALONE)
    assert [error.partition(";")[0] for error in found.errors if not error.startswith(CLUSTER_QUORUMS)] == []
    assert len(found.errors) == 1


def values_of(text: str) -> Mapping[str, str]:
    return load_configuration([("a.conf", text)], []).values


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        (
            "zooKeeperSessionTimeoutMillis=7000\nmetadataStoreSessionTimeoutMillis=9000",
            "metadataStoreSessionTimeoutMillis",
            "7000",
        ),
        (
            "zooKeeperSessionTimeoutMillis=-1\nmetadataStoreSessionTimeoutMillis=9000",
            "metadataStoreSessionTimeoutMillis",
            "9000",
        ),
        (
            "zooKeeperOperationTimeoutSeconds=7\nmetadataStoreOperationTimeoutSeconds=9",
            "metadataStoreOperationTimeoutSeconds",
            "7",
        ),
        ("zookeeperSessionTimeoutMs=7000", "metadataStoreSessionTimeoutMillis", "7000"),
        ("zookeeperServers=a:1\nmetadataStoreUrl=zk:b:2", "metadataStoreUrl", "zk:b:2"),
        (
            "managedLedgerMaxUnackedRangesToPersistInZooKeeper=77\nmanagedLedgerMaxUnackedRangesToPersistInMetadataStore=88",
            "managedLedgerMaxUnackedRangesToPersistInMetadataStore",
            "77",
        ),
        ("subscriptionKeySharedEnable=false", "subscriptionTypesEnabled", "Exclusive,Shared,Failover"),
        ("subscriptionKeySharedEnable=false\nsubscriptionTypesEnabled=Key_Shared,Shared", "subscriptionTypesEnabled", "Shared"),
    ],
)
def test_an_older_name_means_what_it_means_to_apache_4_0_8(text: str, key: str, value: str) -> None:
    assert values_of(text)[key] == value


def test_an_older_name_that_says_nothing_leaves_the_newer_one_alone() -> None:
    assert "subscriptionTypesEnabled" not in values_of("subscriptionKeySharedEnable=true")
    assert "metadataStoreSessionTimeoutMillis" not in values_of("zooKeeperSessionTimeoutMillis=-1")


TLS_PLUGIN = "brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationTls\n"
FILES_IN_PARAMETERS = 'brokerClientAuthenticationParameters={"tlsCertFile":"/c.pem","tlsKeyFile":"/k.pem"}\n'


@pytest.mark.parametrize("kind", [BROKER, PROXY])
def test_a_plugin_for_certificates_without_one_ends_the_start_where_brokers_are_asked(kind: str) -> None:
    over_tls = "brokerClientTlsEnabled=true\n" if kind == BROKER else "tlsEnabledWithBroker=true\n"
    assert [
        error for error in report("a", TLS_PLUGIN + over_tls, [], kind).errors if "there is no certificate to show" in error
    ]
    assert [error for error in report("a", TLS_PLUGIN + FILES_IN_PARAMETERS, [], kind).errors if "over TLS alone" in error]
    assert report("a", TLS_PLUGIN + over_tls + FILES_IN_PARAMETERS, [], kind).errors == []


def test_a_plugin_for_certificates_without_one_is_a_warning_for_a_standalone() -> None:
    found = report("a", TLS_PLUGIN, [], STANDALONE)
    assert found.errors == []
    assert [warning for warning in found.warnings if "there is no certificate to show" in warning]


@pytest.mark.parametrize("kind", [BROKER, STANDALONE])
def test_endpoints_for_websockets_are_there_for_a_file_that_asks_for_them(kind: str) -> None:
    assert report("a", "webSocketServiceEnabled=true\n", [], kind).errors == []


def test_a_provider_that_nothing_is_made_of_does_no_harm() -> None:
    assert report("a", "authenticationProviders=false\n", [], STANDALONE).errors == []
    assert report("a", "authenticationEnabled=true\nauthenticationProviders=false\n", [], STANDALONE).errors != []


PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationTls"


@pytest.mark.parametrize(
    ("plugin", "parameters", "files"),
    [
        (PLUGIN, '{"tlsCertFile":"/c","tlsKeyFile":"/k"}', ("/c", "/k")),
        (PLUGIN, "tlsCertFile:/c,tlsKeyFile:/k", ("/c", "/k")),
        (PLUGIN, '{"tlsCertFile":"/c"}', ("/cert", "/key")),
        (PLUGIN, '{"broken', ("/cert", "/key")),
        ("token", '{"tlsCertFile":"/c","tlsKeyFile":"/k"}', ("/cert", "/key")),
    ],
)
def test_a_certificate_that_the_parameters_name_comes_before_that_of_its_own_keys(
    plugin: str, parameters: str, files: tuple[str, str]
) -> None:
    assert own_certificate(plugin, parameters, "/cert", "/key") == files
