"""`bin/pulsar bookie --processes 2`: directories of its own for each, metrics in front, and a killed one that comes back."""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.python_client import names, publish, quiet_client, receive, until
from tests.clients.several_processes import Several, free_ports
from tests.prometheus_text import families

pytestmark = [pytest.mark.clients, pytest.mark.timeout(240)]

QUORUMS = tuple(f"managedLedgerDefault{name}=2" for name in ("EnsembleSize", "WriteQuorum", "AckQuorum"))


class SeveralBookies(Several):
    """Bookie processes with two journal and two ledger directories."""

    def __init__(self, directory: Path, servers: str, count: int = 2) -> None:
        self.port, self.web_port = free_ports(), free_ports()
        super().__init__(
            directory,
            "bookie",
            count,
            f"bookiePort={self.port}",
            f"metadataServiceUri=zk+hierarchical://{servers}/ledgers",
            "advertisedAddress=127.0.0.1",
            f"journalDirectories={directory}/journal-1,{directory}/journal-2",
            f"ledgerDirectories={directory}/ledgers-1,{directory}/ledgers-2",
            "autoRecoveryDaemonEnabled=false",
            "httpServerEnabled=true",
            "httpServerHost=127.0.0.1",
            f"httpServerPort={self.web_port}",
        )


@pytest.fixture
def bookies(tmp_path: Path, servers: str) -> Iterator[SeveralBookies]:
    with SeveralBookies(tmp_path / "bookies", servers) as several:
        yield several.start()


def asked(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return str(answer.read().decode())


def test_messages_are_on_both_bookies_and_are_there_after_one_was_killed(
    bookies: SeveralBookies, tmp_path: Path, servers: str, topic: str
) -> None:
    before = bookies.pids()
    assert [each["bookieId"] for each in bookies.told()["processes"]] == [
        f"127.0.0.1:{bookies.port + number}" for number in (1, 2)
    ]
    with BrokerProcess(tmp_path / "broker", servers, *QUORUMS) as broker:
        client = quiet_client(broker.start().ready.broker_url)
        try:
            consumer = client.subscribe(topic, "s")
            publish(client, topic, 50)
            os.kill(before[1], signal.SIGKILL)
            until(lambda: bookies.pids()[1] != before[1])
            publish(client, topic, 50, first=50)
            assert receive(consumer, 100) == names(0, 100)
            found = families(asked(bookies.web_port, "/metrics"))
            assert found["supervised_process_starts_total"].samples == {
                'supervised_process_starts_total{process="1"}': 2,
                'supervised_process_starts_total{process="2"}': 1,
            }
            assert found["bookie_SERVER_STATUS"].samples == {
                f'bookie_SERVER_STATUS{{process="{number}"}}': 1 for number in (1, 2)
            }
        finally:
            client.close()
        assert broker.stop() == 0
    assert bookies.stop() == 0
    assert sorted(each.name for each in (tmp_path / "bookies").glob("ledgers-*")) == ["ledgers-1", "ledgers-2"]


def test_requests_about_one_bookie_are_answered_at_its_own_port(bookies: SeveralBookies) -> None:
    assert '"totalSpace"' in asked(bookies.web_port + 2, "/api/v1/bookie/info")
    assert asked(bookies.web_port, "/heartbeat") == "OK\n"
    assert f"127.0.0.1:{bookies.port + 2}" in asked(bookies.web_port, "/api/v1/bookie/list_bookies?type=rw")
    with pytest.raises(urllib.error.HTTPError) as refused:
        asked(bookies.web_port, "/api/v1/bookie/info")
    assert refused.value.code == 404
    assert b"ask the one that is meant, at this port + 1 to + 2" in refused.value.read()


def test_another_number_of_processes_on_the_same_directories_is_refused(bookies: SeveralBookies, servers: str) -> None:
    assert bookies.stop() == 0
    words = [*bookies.command]
    words[words.index("--processes") + 1] = "1"
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 1
    assert "ended before all were ready" in ended.stderr


def test_more_processes_than_directories_are_refused_by_the_key(tmp_path: Path) -> None:
    bookies = SeveralBookies(tmp_path, "127.0.0.1:1", 3)
    ended = subprocess.run(bookies.command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "2 for 3 processes: name one for each or more" in ended.stderr
    assert "journalDirectories=" in ended.stderr
