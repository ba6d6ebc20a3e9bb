"""A standalone with a file of its operator: its defaults stand under the file, and what it could never do ends the start."""

from pathlib import Path

import pytest

from bookkeeper.settings import BookKeeperSettings
from cli.configuration.report import report
from cli.configuration.server_settings import ServerSettings
from cli.configuration.verdicts import BROKER, STANDALONE
from cli.standalone.main import standalone_configuration
from tests.cli.configuration.test_files_people_have import files, text_of
from tests.clients.python_client import quiet_client
from tests.clients.server_process import ServerProcess
from tests.started_process import DidNotStart

QUORUMS = "managedLedgerDefaultEnsembleSize=2\nmanagedLedgerDefaultWriteQuorum=2\nmanagedLedgerDefaultAckQuorum=2\n"
NEVER_WRITABLE = [
    (QUORUMS, "managedLedgerDefaultEnsembleSize=2: a standalone has one bookie"),
    ("forceReadOnlyBookie=true\n", "forceReadOnlyBookie=true: the one bookie of a standalone takes no writes"),
    (
        "brokerServicePort=7000\nwebServicePort=7000\n",
        "brokerServicePort=7000, webServicePort=7000: both would listen on one port",
    ),
    ("brokerServicePort=\n", "brokerServicePort=, brokerServicePortTls=: no client could connect"),
    (
        "enablePersistentTopics=false\nenableNonPersistentTopics=false\n",
        "enablePersistentTopics=false, enableNonPersistentTopics=false: every topic would be refused",
    ),
]


def given(directory: Path, text: str) -> str:
    path = directory / "mine.conf"
    path.write_text(text)
    return str(path)


def test_the_defaults_of_a_standalone_stand_under_any_file(tmp_path: Path) -> None:
    configuration = standalone_configuration(given(tmp_path, "brokerDeduplicationEnabled=true\n"), [])
    ledgers = configuration.settings(BookKeeperSettings)
    assert (ledgers.managed_ledger_default_ensemble_size, ledgers.managed_ledger_default_write_quorum) == (1, 1)
    assert ledgers.managed_ledger_default_ack_quorum == 1
    assert configuration.settings(ServerSettings).bind_address == "127.0.0.1"
    assert configuration.values["brokerDeduplicationEnabled"] == "true"


def test_the_file_wins_over_the_defaults_and_the_command_line_over_the_file(tmp_path: Path) -> None:
    path = given(tmp_path, "bindAddress=0.0.0.0\nwebServicePort=1\n")
    settings = standalone_configuration(path, ["webServicePort=2"]).settings(ServerSettings)
    assert (settings.bind_address, settings.web_service_port) == ("0.0.0.0", 2)


def test_a_standalone_with_a_file_of_its_own_takes_what_is_published(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    server.configuration = given(tmp_path, "topicLevelPoliciesEnabled=true\n")
    with server:
        client = quiet_client(server.start().broker_url)
        client.create_producer("persistent://public/default/t").send(b"m")
        client.close()


@pytest.mark.parametrize("name", ["4.0.8", "client-python"])
def test_a_standalone_with_a_file_of_apaches_takes_what_is_published(tmp_path: Path, name: str) -> None:
    server = ServerProcess(tmp_path, ("bindAddress=127.0.0.1",))
    server.configuration = given(tmp_path, text_of(files()["standalone", name]))
    with server:
        client = quiet_client(server.start().broker_url)
        client.create_producer("persistent://public/default/t").send(b"m")
        client.close()
        assert server.stop() == 0
    assert "settings without effect here" in server.log.read_text()


@pytest.mark.parametrize(("text", "says"), NEVER_WRITABLE)
def test_settings_that_could_never_work_end_the_start_by_the_name_of_the_key(tmp_path: Path, text: str, says: str) -> None:
    server = ServerProcess(tmp_path)
    server.ports = ()
    server.configuration = given(tmp_path, text)
    with server, pytest.raises(DidNotStart, match="exit code 1"):
        server.start()
    assert says in server.log.read_text()
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize(("text", "says"), NEVER_WRITABLE)
def test_config_check_says_what_the_start_would_say(text: str, says: str) -> None:
    found = report("standalone.conf", text, [], STANDALONE)
    assert [error for error in found.errors if error.startswith(says)], found.errors


def test_quorums_of_two_are_right_for_a_broker_of_a_cluster() -> None:
    assert report("broker.conf", QUORUMS, [], BROKER).errors == []


def test_contradictory_settings_that_still_work_are_logged(tmp_path: Path) -> None:
    server = ServerProcess(
        tmp_path, ("exposeTopicLevelMetricsInPrometheus=false", "exposeConsumerLevelMetricsInPrometheus=true")
    )
    with server:
        server.start()
    assert (
        "exposeConsumerLevelMetricsInPrometheus=true: metrics of consumers come with those of topics only"
        in server.log.read_text()
    )
