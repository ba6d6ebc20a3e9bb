"""Ports, listeners and directories of each of several processes, and what is refused by name."""

import pytest

from cli.configuration.loading import load_configuration
from cli.processes.plan import (
    PROCESSES_MAX,
    Front,
    ProcessesPlan,
    bookie_plan,
    broker_plan,
    checked_count,
    dealt,
    shifted_ports,
)
from ports.settings import BadSetting


def brokers(count: int, *sets: str) -> ProcessesPlan:
    return broker_plan(load_configuration([], sets), "host", count)


def bookies(count: int, *sets: str) -> ProcessesPlan:
    return bookie_plan(load_configuration([], sets), count)


TWO = ("journalDirectories=j1,j2", "ledgerDirectories=l1,l2,l3")


def test_each_broker_has_the_ports_plus_its_number_and_the_ports_themselves_are_in_front() -> None:
    plan = brokers(2, "bindAddress=127.0.0.1")
    assert plan.settings == {
        1: ("brokerServicePort=6651", "webServicePort=8081"),
        2: ("brokerServicePort=6652", "webServicePort=8082"),
    }
    assert plan.fronts == (
        Front("brokerServicePort", "127.0.0.1", 6650, is_web=False, is_tls=False),
        Front("webServicePort", "127.0.0.1", 8080, is_web=True, is_tls=False),
    )
    assert plan.urls == {"brokerServiceUrl": "pulsar://host:6650", "webServiceUrl": "http://host:8080"}


def test_ports_of_tls_are_shifted_as_the_others() -> None:
    sets = (
        "brokerServicePortTls=6750",
        "webServicePortTls=8443",
        "webServicePort=",
        "tlsCertificateFilePath=c",
        "tlsKeyFilePath=k",
    )
    plan = brokers(2, *sets)
    assert plan.settings[2] == ("brokerServicePort=6652", "brokerServicePortTls=6752", "webServicePortTls=8445")
    assert [(each.key, each.is_tls) for each in plan.fronts if each.is_tls] == [
        ("brokerServicePortTls", True),
        ("webServicePortTls", True),
    ]


def test_apaches_own_ports_for_tls_are_too_near_and_that_is_said() -> None:
    with pytest.raises(BadSetting, match=r"port 6651 .* brokerServicePort \+ 1, and of brokerServicePortTls=6651.*3 apart"):
        brokers(2, "brokerServicePortTls=6651", "tlsCertificateFilePath=c", "tlsKeyFilePath=k")


def test_ports_that_any_process_is_to_choose_are_refused() -> None:
    with pytest.raises(BadSetting, match="brokerServicePort=0: with --processes every port is fixed"):
        brokers(2, "brokerServicePort=0")


def test_a_port_beyond_the_last_one_is_refused() -> None:
    with pytest.raises(BadSetting, match="webServicePort=65534: process 2 would have port 65536: set it to 65533 or lower"):
        brokers(2, "webServicePort=65534")


def test_without_a_port_for_clients_there_is_nothing_to_serve() -> None:
    with pytest.raises(BadSetting, match="brokerServicePort and brokerServicePortTls are both empty"):
        brokers(2, "brokerServicePort=")


def test_advertised_listeners_have_the_ports_of_their_process() -> None:
    plan = brokers(2, "advertisedListeners=internal:pulsar://10.0.0.1:6650,external:pulsar://example.org:16650")
    assert "advertisedListeners=internal:pulsar://10.0.0.1:6652,external:pulsar://example.org:16652" in plan.settings[2]
    with pytest.raises(BadSetting, match=r"external:pulsar://example\.org: with --processes each URL needs its port"):
        brokers(2, "advertisedListeners=external:pulsar://example.org")


def test_each_bookie_has_directories_of_its_own_and_none_is_left() -> None:
    plan = bookies(2, *TWO)
    assert plan.settings == {
        1: ("bookiePort=3182", "journalDirectories=j1", "ledgerDirectories=l1,l3"),
        2: ("bookiePort=3183", "journalDirectories=j2", "ledgerDirectories=l2"),
    }
    assert plan.fronts == ()


def test_bookies_with_too_few_directories_are_refused_by_the_key() -> None:
    with pytest.raises(BadSetting, match="journalDirectories=j1,j2: 2 for 3 processes: name one for each or more"):
        bookies(3, *TWO)
    with pytest.raises(BadSetting, match="ledgerDirectories=l1,l1: a directory stands there twice"):
        dealt("ledgerDirectories", ("l1", "l1"), 1, 2)


def test_a_bookies_http_and_its_name_are_each_processs_own() -> None:
    plan = bookies(2, *TWO, "httpServerEnabled=true", "httpServerPort=8000", "bookieId=b", "httpServerHost=127.0.0.1")
    assert plan.settings[2][-1] == "bookieId=b-2"
    assert "httpServerPort=8002" in plan.settings[2]
    assert plan.fronts == (Front("httpServerPort", "127.0.0.1", 8000, is_web=True, is_tls=False),)
    assert plan.urls == {"metricsUrl": "http://127.0.0.1:8000/metrics"}


def test_no_two_processes_share_a_port_however_many_there_are() -> None:
    found = shifted_ports({"a": 1000, "b": 2000}, PROCESSES_MAX)
    ports = [port for own in found.values() for port in own.values()]
    assert len({*ports, 1000, 2000}) == 2 * PROCESSES_MAX + 2


@pytest.mark.parametrize("text", ["0", "65", "-1", "two", ""])
def test_numbers_of_processes_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(BadSetting, match=f"--processes {text}: expected 1 to 64"):
        checked_count("bin/pulsar broker", text)
